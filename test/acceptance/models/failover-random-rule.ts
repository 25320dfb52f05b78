import assert from 'node:assert/strict'
import type { JournalEntry } from '../../../sandbox/src/journal.ts'
import type { Attempted } from '../recorded-attempts.ts'
import {
  type Charge,
  type ConversationUpstream,
  costOf,
  type Heard,
  type Question,
  question,
  streamed,
  tokensIn,
  tokensOf,
} from './streams.ts'

/**
 * What can be asked: a row for each endpoint and form. The protocol is that by which the sandbox's upstream is called. A scarce one has a
 * limit of requests of its own, for each key.
 */
export const ENDPOINTS: readonly [Endpoint, ...Endpoint[]] = [
  { name: 'chat completions', protocol: 'openai', ask: (model, about) => question('openai', model, about) },
  { name: 'chat completions, streamed', protocol: 'openai', ask: (model, about) => streamed('openai', model, about) },
  { name: 'responses', protocol: 'openai', ask: (model, about) => question('openai_responses', model, about) },
  {
    name: 'responses, streamed',
    protocol: 'openai',
    ask: (model, about) => streamed('openai_responses', model, about),
  },
  { name: 'messages', protocol: 'anthropic', ask: (model, about) => question('anthropic', model, about) },
  { name: 'messages, streamed', protocol: 'anthropic', ask: (model, about) => streamed('anthropic', model, about) },
  {
    name: 'generateContent',
    protocol: 'gemini',
    isScarce: true,
    ask: (model, about) => question('gemini', model, about),
  },
  {
    name: 'streamGenerateContent',
    protocol: 'gemini',
    isScarce: true,
    ask: (model, about) => streamed('gemini', model, about),
  },
  {
    name: 'embeddings',
    protocol: 'openai',
    ask: (model, about) => ({ path: '/v1/embeddings', body: { model, input: `a short story ${about}` } }),
  },
  {
    name: 'pictures',
    protocol: 'openai',
    isScarce: true,
    ask: (model, about) => ({ path: '/v1/images/generations', body: { model, prompt: `a short story ${about}` } }),
  },
]
/** What makes no conversation: models that spoil one have nothing to spoil there. */
const NO_CONVERSATION = /\/(embeddings|images\/generations)$/

export type Endpoint = {
  readonly name: string
  readonly protocol: ConversationUpstream
  readonly isScarce?: boolean
  /** About something that no other call is about, so that each is a conversation of its own. */
  readonly ask: (model: string, about: string) => Question
}

/**
 * What has to come of a call by what the failing upstream did to it. `refused`: it certainly did not take the call, so
 * the other is asked. After everything else nobody is: the answer is passed on, or the call is lost or broken off.
 */
type Verdict = 'answered' | 'refused' | 'passed on' | 'unreadable' | 'lost' | 'broken off'
type Rule = { readonly whole: Verdict; readonly streamed: Verdict; readonly noConversation?: Verdict }

const always = (verdict: Verdict): Rule => ({ whole: verdict, streamed: verdict })
const BREAKS: Rule = { whole: 'lost', streamed: 'broken off' }

/** What the failing upstream is told to do, and what follows from it. */
export const FAULTS: Readonly<Record<string, Rule>> = {
  'delay=0': always('answered'),
  'status=401': always('refused'),
  'status=404': always('refused'),
  'status=429': always('refused'),
  'status=503': always('refused'),
  'status=529': always('refused'),
  'status=500': always('passed on'),
  garbage: { whole: 'unreadable', streamed: 'broken off' },
  'close-early': always('lost'),
  'reset=before-headers': always('lost'),
  'reset=in-body': BREAKS,
  truncate: BREAKS,
}

/** Only for a while: nobody waits until an upstream that hangs is given up. */
export const HANG = 'hang=headers'

/** What its models do by themselves, where it was told nothing. */
export const ORDINARY = 'sandbox/text'
export const ENDINGS: Readonly<Record<string, Rule>> = {
  'sandbox/cut-mid-stream': BREAKS,
  'sandbox/error-mid-stream': { whole: 'passed on', streamed: 'broken off', noConversation: 'answered' },
  'sandbox/no-end': { whole: 'answered', streamed: 'broken off' },
}

const RULES: Readonly<Record<string, Rule>> = {
  ...FAULTS,
  ...ENDINGS,
  [HANG]: always('lost'),
  [ORDINARY]: always('answered'),
}

/** A call, as everybody has it who knows something of it. */
export type Known = {
  readonly id: string
  readonly slots: { readonly failing: string; readonly well: string }
  /** What each of the two upstreams was asked for it. */
  readonly failing: readonly JournalEntry[]
  readonly well: readonly JournalEntry[]
  readonly attempts: readonly Attempted[]
  readonly charge: Charge
  /** Undefined where the caller left before there was anything to hear. */
  readonly heard: Heard | undefined
  /** Whether the failing upstream had a process at the time, and one that went on. */
  readonly state: 'there' | 'paused' | 'gone'
}

export type Judged = { readonly way: string; readonly outcome: string; readonly isServed: boolean }

/** That what became of a call is what the rule says, no more and no less. */
export function judgeCall(call: Known): Judged {
  const { failing, well, id } = call
  assert.ok(failing.length <= 1 && well.length <= 1, `${id} was asked twice of one upstream`)
  assert.ok([...failing, ...well].filter(({ billed }) => billed).length <= 1, `${id} was billed twice`)
  const [entry] = failing
  return entry === undefined ? withoutIt(call) : withIt(call, entry)
}

/** The failing one has never heard of the call: the other has answered it. */
function withoutIt({ id, slots, attempts, state, ...call }: Known): Judged {
  const unheard = attempts.filter(({ slot }) => slot === slots.failing)
  assert.deepEqual(attempts, [...unheard, answered(slots.well, 200)], id)
  isServedBy(call.well[0], call)
  const [first] = unheard
  if (first === undefined) return { way: 'the other was asked first', outcome: 'answered', isServed: true }
  const { outcome, status, reason } = first
  assert.deepEqual([unheard.length, outcome, status], [1, 'not_sent', null], id)
  assert.ok(reason === 'breaker' || (reason === 'connect' && state === 'gone'), `${id} ${reason}`)
  return { way: `not reached: ${reason}`, outcome: 'answered by the other', isServed: true }
}

/** What the failing one did to the call decides. */
function withIt(call: Known, entry: JournalEntry): Judged {
  const { id, slots, attempts, heard, charge } = call
  const way = entry.directives[0] ?? entry.model ?? ''
  const verdict = verdictOn(RULES[way] ?? assert.fail(`${id}: ${way}`), entry)
  const isLost = verdict === 'lost'
  const first: Attempted = isLost
    ? { slot: slots.failing, outcome: 'unknown', status: null, reason: way === 'truncate' ? 'protocol' : 'reset' }
    : answered(slots.failing, entry.status)
  const isPassed = verdict === 'refused'
  assert.deepEqual(attempts, isPassed ? [first, answered(slots.well, 200)] : [first], `${id} ${way}`)
  assert.equal(call.well.length, isPassed ? 1 : 0, `${id} ${way}`)

  if (isPassed) isServedBy(call.well[0], call)
  else if (verdict === 'answered') isServedBy(entry, call)
  else if (verdict === 'broken off') isBrokenOff(entry, call)
  else if (verdict === 'unreadable') isCounted(call, way)
  else {
    // Nothing is charged. What it may have cost is our loss, unless it is certain that it cost nothing.
    const loss = verdict === 'passed on' ? 0n : charge.held
    assert.deepEqual([charge.amount, charge.overrun], [0n, loss], `${id} ${way}`)
    const told = verdict === 'passed on' ? 500 : 502
    if (heard !== undefined) assert.deepEqual([heard.status, heard.end], [told, 'clean'], `${id} ${way}`)
  }
  const outcome = isPassed ? 'answered by the other' : heard === undefined ? `${verdict}, the caller had left` : verdict
  const isPaused = way === ORDINARY && call.state === 'paused'
  return {
    way: isPaused ? 'paused' : way,
    outcome,
    isServed: isPassed || verdict === 'answered' || verdict === 'unreadable',
  }
}

/** The caller has something that does not say what it used, and pays for it as it was counted; for pictures, the hold. */
function isCounted({ id, heard, charge, failing }: Known, way: string): void {
  assert.deepEqual([charge.amount > 0n, charge.overrun], [true, 0n], `${id} ${way}`)
  if (failing[0]?.path.endsWith('/images/generations')) assert.equal(charge.amount, charge.held, `${id} ${way}`)
  if (heard !== undefined) assert.deepEqual([heard.status, heard.end], [200, 'clean'], `${id} ${way}`)
}

function verdictOn(
  { whole, streamed: inFrames, noConversation = whole }: Rule,
  { stream, path }: JournalEntry,
): Verdict {
  if (stream === true) return inFrames
  return NO_CONVERSATION.test(path) ? noConversation : whole
}

function answered(slot: string, status: number | null): Attempted {
  return { slot, outcome: 'answered', status, reason: null }
}

/** The caller has a whole answer, and pays what was reported of it. */
function isServedBy(entry: JournalEntry | undefined, { heard, charge }: Pick<Known, 'heard' | 'charge'>): void {
  assert.ok(entry?.billed === true && entry.status === 200, charge.id)
  const tokens = tokensIn(entry.usage)
  assert.deepEqual([charge.outcome, charge.amount, charge.overrun], ['posted', costOf(tokens), 0n], charge.id)
  assert.deepEqual(charge.tokens, tokens)
  if (heard !== undefined) assert.deepEqual([heard.status, heard.end], [200, 'clean'], charge.id)
}

/** The caller has a part, which nobody can take for all of it, and pays that part: as counted, or as its last frame reports. */
function isBrokenOff(entry: JournalEntry, { heard, charge }: Pick<Known, 'heard' | 'charge'>): void {
  assert.ok(heard !== undefined)
  assert.deepEqual([heard.status, heard.end], [200, 'broken'], charge.id)
  const tokens = { input: entry.input_tokens ?? 0, output: tokensOf(heard.text), cacheRead: 0, cacheWrite: 0 }
  assert.equal(charge.amount, heard.text === '' ? 0n : costOf(tokens), charge.id)
}

/** What was delivered to a caller of a served call; of all others nothing may look like it. */
export const hasWholeAnswer = ({ heard, charge }: Known): boolean =>
  charge.amount > 0n && (heard === undefined || heard.end === 'clean')

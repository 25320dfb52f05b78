import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { type Gateway, startGateway } from '../../../harness/gateways.ts'
import { count, isFullProof, recordProof, seed, sometimes } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import type { JournalEntry } from '../../../sandbox/src/journal.ts'
import { hashOf, Random } from '../../../sandbox/src/random.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { makeCustomer, makeKey, startInstallation } from '../installation.ts'
import {
  ALL_PROTOCOLS,
  byCall,
  type Charge,
  chargesOf,
  costOf,
  eachOf,
  type Heard,
  hear,
  type Leaving,
  leftOver,
  limited,
  type Protocol,
  type Question,
  settled,
  socketsOf,
  streamed,
  tokensIn,
  tokensOf,
} from './streams.ts'

const CUTS = count({ full: 500, reduced: 15 })
const AT_ONCE = count({ full: 25, reduced: 6 })
const MONEY = 1_000_000_000_000n
/** One protocol takes 30 calls a minute of each key. */
const CALLS_OF_A_KEY = 25
/** One in so many leaves right after asking. */
const ONE_IN = 8
/** Some cuts lie behind the end: those callers hear everything. */
const BEYOND_THE_END = 1.15
/** What was on its way when the caller left is not charged: so much of what the upstream sent at the most. */
const ON_THE_WAY = 0.05

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox, masterKey, gateways } = installation
/** One that gives an upstream up as soon as the caller has left. */
const impatient = await startGateway({
  databaseUrl: database.url,
  env: {
    FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(),
    FAREBOX_LOG_LEVEL: 'warn',
    FAREBOX_HTTP_ABANDONED_STREAM_MS: '0',
  },
})
after(async () => {
  await impatient.stop()
  await installation.stop()
})

const isText = (name: string) => name === 'content' || name === 'text'

/** The same without pauses, to learn how long it is. */
const unpaused = ({ path, body }: Question): Question => ({
  path,
  body: JSON.parse(JSON.stringify(body), (name, value) => (isText(name) ? `${value} sandbox:delta-ms=0` : value)),
})

type Cut = Heard & { readonly entry: JournalEntry; readonly charge: Charge }

/** Asks again and again and leaves at a random byte; each call with what it was charged and what the upstream knows of it. */
async function cutStreams(at: string, name: string, questions: readonly [Question, ...Question[]]): Promise<Cut[]> {
  const random = new Random(hashOf(seed, name))
  const { workspaceId, accountId } = await makeCustomer(pool, { money: MONEY })
  let calls = 0
  let key = makeKey(pool, workspaceId)
  const listen = async (one: Question, leaving?: Leaving) => {
    calls += 1
    if (calls % CALLS_OF_A_KEY === 0) key = makeKey(pool, workspaceId)
    return hear(at, (await key).secret, one, leaving)
  }
  const lengths = new Map<Question, number>()
  const heard: Heard[] = []
  await eachOf(questions, AT_ONCE, async (one) => {
    const whole = await listen(unpaused(one))
    assert.deepEqual([whole.status, whole.end], [200, 'clean'], JSON.stringify(one))
    lengths.set(one, whole.bytes)
    heard.push(whole)
  })
  const cuts = Array.from({ length: CUTS }, (_, number) => {
    const one = random.pick(questions)
    const bytes = Math.round((lengths.get(one) ?? 0) * BEYOND_THE_END * random.fraction())
    return { one, atByte: number % ONE_IN === 0 ? 0 : bytes }
  })
  await eachOf(cuts, AT_ONCE, async ({ one, atByte }) => {
    heard.push(await listen(one, { atByte }))
  })
  await settled(pool, accountId)

  const charges = [...(await chargesOf(pool, { accountId })).values()]
  const journal = await whenOver(charges)
  const told = new Map(heard.map((one) => [one.id, one]))
  return charges.map((charge) => {
    const entry = journal.get(charge.id)
    assert.ok(entry !== undefined, 'nobody pays for what was not asked')
    return { ...(told.get(charge.id) ?? NOTHING), entry, charge }
  })
}

/** What the upstream knows of calls, when it knows of all of them that they are over. */
async function whenOver(charges: readonly Charge[]): Promise<ReadonlyMap<string, JournalEntry>> {
  let journal: ReadonlyMap<string, JournalEntry> = new Map()
  await until(
    async () => {
      journal = byCall(await sandbox.journal())
      return charges.every(({ id }) => journal.get(id)?.outcome !== 'open')
    },
    PATIENCE_MS,
    'the upstream learns that callers have left',
  )
  return journal
}

/** Who left before the call had an id. */
const NOTHING: Heard = { status: 0, id: '', bytes: 0, events: [], text: '', end: 'cut', overAtMs: 0 }

/** Short and long, quick and slow, in all kinds of tokens. */
const DRAINED: Readonly<Record<Protocol, readonly [Question, ...Question[]]>> = {
  openai: [
    streamed('openai', 'sandbox/text'),
    streamed('openai', 'sandbox/long', '', { stream_options: { include_usage: true } }),
    streamed('openai', 'sandbox/slow'),
    streamed('openai', 'sandbox/checksum', 'sandbox:output-tokens=100'),
    streamed('openai', 'sandbox/text', 'sandbox:delta-bytes=1', { n: 3 }),
    streamed('openai', 'sandbox/text', 'sandbox:slow-first-byte=300 sandbox:input-tokens=90 sandbox:cache-read=40'),
    streamed('openai', 'sandbox/tools', 'sandbox:cache-write=5'),
    streamed('openai', 'sandbox/text', 'sandbox:delay=200', { reasoning_effort: 'high' }),
  ],
  openai_responses: [
    streamed('openai_responses', 'sandbox/text'),
    streamed('openai_responses', 'sandbox/long', '', { stream_options: { include_obfuscation: false } }),
    streamed('openai_responses', 'sandbox/slow'),
    streamed('openai_responses', 'sandbox/checksum', 'sandbox:output-tokens=100'),
    streamed('openai_responses', 'sandbox/text', 'sandbox:delta-bytes=1'),
    streamed('openai_responses', 'sandbox/text', 'sandbox:slow-first-byte=300 sandbox:cache-read=4'),
    streamed('openai_responses', 'sandbox/tools', 'sandbox:cache-write=5'),
    streamed('openai_responses', 'sandbox/text', 'sandbox:delay=200', {
      reasoning: { effort: 'high', summary: 'auto' },
      include: ['reasoning.encrypted_content'],
    }),
  ],
  anthropic: [
    streamed('anthropic', 'sandbox/text'),
    streamed('anthropic', 'sandbox/long'),
    streamed('anthropic', 'sandbox/slow'),
    streamed('anthropic', 'sandbox/checksum', 'sandbox:output-tokens=100'),
    streamed('anthropic', 'sandbox/text', 'sandbox:delta-bytes=1'),
    streamed('anthropic', 'sandbox/text', 'sandbox:slow-first-byte=300 sandbox:cache-read=40 sandbox:cache-write=7'),
    streamed('anthropic', 'sandbox/tools', 'sandbox:cache-write=5'),
    streamed('anthropic', 'sandbox/text', 'sandbox:delay=200', {
      max_tokens: 3_000,
      thinking: { type: 'enabled', budget_tokens: 1_024 },
    }),
  ],
  gemini: [
    streamed('gemini', 'sandbox/text'),
    streamed('gemini', 'sandbox/long'),
    streamed('gemini', 'sandbox/slow'),
    streamed('gemini', 'sandbox/checksum', 'sandbox:output-tokens=100', limited('gemini', 100)),
    streamed('gemini', 'sandbox/text', 'sandbox:delta-bytes=1'),
    streamed('gemini', 'sandbox/text', 'sandbox:slow-first-byte=300 sandbox:input-tokens=90 sandbox:cache-read=40'),
    streamed('gemini', 'sandbox/tools'),
    streamed('gemini', 'sandbox/text', 'sandbox:delay=200', {
      generationConfig: { thinkingConfig: { thinkingBudget: 20 } },
    }),
  ],
}

/**
 * They go on for seconds, in pieces of a thirtieth that come so seldom that one of them at the most is on its way when a
 * caller leaves. Where fewer than twenty were sent, one is more than the twentieth that is allowed otherwise.
 */
const UNHURRIED = [
  ['sandbox/slow', 'sandbox:delta-bytes=100 sandbox:delta-ms=100 sandbox:output-tokens=1000'],
  ['sandbox/long', 'sandbox:delta-bytes=200 sandbox:delta-ms=100'],
  ['sandbox/text', 'sandbox:delta-bytes=50 sandbox:delta-ms=100 sandbox:output-tokens=500'],
  ['sandbox/text', 'sandbox:delta-bytes=50 sandbox:delta-ms=100 sandbox:output-tokens=300 sandbox:slow-first-byte=400'],
] as const

const deltaTokens = ({ entry }: Cut) =>
  Math.ceil(Number(/delta-bytes=(\d+)/.exec(entry.directives.join(' '))?.[1] ?? 8) / 3)

/** What had been sent and was not delivered, so that nobody pays for it. */
const onTheWay = ({ entry, charge }: Cut) => (entry.tokens ?? 0) - charge.tokens.output

/** Whether more than a twentieth, and more than one piece, was not charged. */
const isShort = (cut: Cut) => onTheWay(cut) > Math.max(ON_THE_WAY * (cut.entry.tokens ?? 0), deltaTokens(cut))

/** Processes on a busy machine are late, and an upstream that learns late that nobody listens sends more. */
const isLate = ({ entry, overAtMs }: Cut) => entry.at_ms + (entry.took_ms ?? 0) - overAtMs >= LATE_MS
const LATE_MS = 50

/** Of streams so long that one piece is less than that share. */
function percent(cuts: readonly Cut[]): number {
  const long = cuts.filter((cut) => ON_THE_WAY * (cut.entry.tokens ?? 0) >= deltaTokens(cut))
  const shares = long.map((cut) => onTheWay(cut) / (cut.entry.tokens ?? 1))
  return Math.round(1_000 * Math.max(0, ...shares)) / 10
}

describe('MODEL-3 a stream whose caller leaves at a random byte', { concurrency: true }, () => {
  for (const protocol of ALL_PROTOCOLS)
    it(`is charged exactly what the upstream reports, where it ends within the time that it is listened to: ${protocol}`, async () => {
      const cuts = await cutStreams(url, `drained ${protocol}`, DRAINED[protocol])
      for (const { entry, charge } of cuts) {
        const tokens = tokensIn(entry.usage)
        assert.equal(entry.outcome, 'answered')
        assert.equal(charge.amount, costOf(tokens), JSON.stringify(entry))
        assert.deepEqual(charge.tokens, tokens)
        assert.deepEqual([charge.outcome, charge.overrun, charge.failed], ['posted', 0n, false])
      }
      const left = cuts.filter(({ end }) => end === 'cut')
      assert.ok(left.length > 0 && left.length < cuts.length, `${left.length} of ${cuts.length} were cut`)
      sometimes(left.length > CUTS / 2, `more than half are cut (${left.length} of ${cuts.length})`)
      recordProof('stream-cuts', `drained, ${protocol}`, {
        streams: cuts.length,
        cut_by_the_caller: left.length,
        read_to_the_end: cuts.length - left.length,
        charged_otherwise_than_reported: 0,
        seed,
      })
    })
})

describe('MODEL-3 a stream whose caller leaves at a random byte, and whose upstream is given up', {
  concurrency: true,
}, () => {
  for (const protocol of ALL_PROTOCOLS)
    it(`is charged what was delivered as counted, and exactly where it was read to the end: ${protocol}`, async () => {
      const [first, ...others] = UNHURRIED.map(([model, text]) => streamed(protocol, model, text))
      assert.ok(first !== undefined)
      const cuts = await cutStreams(impatient.url, `aborted ${protocol}`, [first, ...others])
      const ended = cuts.filter(({ entry }) => entry.outcome === 'answered')
      const aborted = cuts.filter((cut) => !ended.includes(cut))
      for (const { entry, charge, end } of ended) {
        assert.equal(charge.amount, costOf(tokensIn(entry.usage)), end)
        assert.equal(charge.outcome, 'posted')
      }
      assert.ok(cuts.every((cut) => cut.end !== 'clean' || ended.includes(cut)))

      const unheard = aborted.filter(({ charge }) => charge.tokens.output === 0)
      for (const { entry, charge, text, end } of aborted) {
        assert.deepEqual([entry.outcome, end], ['left', 'cut'])
        assert.ok(charge.amount <= charge.held)
        // Who left before anything was delivered pays the question alone.
        assert.equal(charge.outcome, 'posted')
        assert.equal(charge.amount, costOf(charge.tokens))
        assert.deepEqual([charge.overrun, charge.tokens.input], [0n, entry.input_tokens])
        // What the caller has was delivered, and what was delivered had been sent.
        const { output } = charge.tokens
        assert.ok(tokensOf(text) <= output && output <= (entry.tokens ?? 0), JSON.stringify(entry))
      }
      const short = aborted.filter(isShort)
      if (isFullProof) assert.ok(short.every(isLate), JSON.stringify(short.filter((cut) => !isLate(cut))[0]))
      // Of some protocols half of the bytes repeat the answer, when the upstream has ended already.
      assert.ok(aborted.length > 0 && ended.length > 0, `${aborted.length} were given up, ${ended.length} ended`)
      sometimes(aborted.length > CUTS / 8, `more than an eighth are given up (${aborted.length} of ${cuts.length})`)
      recordProof('stream-cuts', `aborted, ${protocol}`, {
        streams: cuts.length,
        charged_as_counted: aborted.length - unheard.length,
        left_before_anything_was_delivered_and_charged_for_the_input_alone: unheard.length,
        read_to_the_end_or_ended_before_that_was_known: ended.length,
        most_not_charged_of_what_was_sent_percent: percent(aborted.filter((cut) => !isLate(cut))),
        of_more_because_the_upstream_learnt_late_that_the_caller_had_left: short.length,
        charged_above_the_hold: 0,
        seed,
      })
    })
})

describe('MODEL-3 streams whose callers have left', () => {
  it('each have a row, and leave no hold, no place taken, no socket, and a ledger that adds up', async () => {
    await settled(pool)
    const charges = await chargesOf(pool)
    const journal = await sandbox.journal()
    assert.ok(journal.length > 2 * ALL_PROTOCOLS.length * CUTS * 0.9)
    assert.ok(journal.every(({ request_id, outcome }) => charges.has(request_id ?? '') && outcome !== 'open'))

    const left = await leftOver(pool)
    assert.deepEqual(left, { holds: 0, claims: 0 })
    const ofCallers = () => socketsOfAll((gateway) => gateway.url)
    await until(() => ofCallers() === 0, PATIENCE_MS, 'no connection of a caller')
    // Those that were given up are closed, as the upstream has seen; the others wait for the next call. A process has a
    // connection for a moment longer than the upstream needs for the answer.
    const idle = socketsOfAll(() => sandbox.url)
    const isGivenUp = ({ directives }: JournalEntry) => directives.includes('delta-ms=100')
    const [ofOne = [], ofOther = []] = [false, true].map((one) => journal.filter((entry) => isGivenUp(entry) === one))
    const atOnce = mostAtOnce(ofOne) + mostAtOnce(ofOther)
    assert.ok(idle <= 2 * atOnce && idle < journal.length / 2, `${idle} connections of ${atOnce} calls at once`)
    await sandbox.stop()
    await until(() => socketsOfAll(() => sandbox.url) === 0, PATIENCE_MS, 'no connection to an upstream that has gone')

    const violations = await verifyLedger(pool)
    assert.deepEqual(violations, [])
    recordProof('stream-cuts', 'what is left afterwards', {
      calls: journal.length,
      ...left,
      sockets_of_callers: 0,
      idle_sockets_to_the_upstream: idle,
      most_calls_at_once: atOnce,
      sockets_to_the_upstream_once_it_has_closed: 0,
      violations_of_the_ledger: violations.length,
    })
  })
})

function socketsOfAll(end: (gateway: Gateway) => string): number {
  return [...gateways, impatient].reduce(
    (sum, gateway) => sum + socketsOf(gateway.pid, Number(new URL(end(gateway)).port)),
    0,
  )
}

/** How many calls the upstream answered at once at the most. */
function mostAtOnce(journal: readonly JournalEntry[]): number {
  const changes = journal.flatMap(({ at_ms, took_ms }) => [
    { atMs: at_ms, by: 1 },
    { atMs: at_ms + (took_ms ?? 0), by: -1 },
  ])
  let open = 0
  let most = 0
  for (const { by } of changes.toSorted((a, b) => a.atMs - b.atMs || b.by - a.by)) {
    open += by
    most = Math.max(most, open)
  }
  return most
}

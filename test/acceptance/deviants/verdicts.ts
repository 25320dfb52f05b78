import type { JournalEntry } from '../../../sandbox/src/journal.ts'
import { type Charge, protocolOf } from '../models/streams.ts'
import { billedNanos, claimOf, INPUT_NANOS, OUTPUT_NANOS, unsoldIn } from './bills.ts'
import type { Heard } from './exchange.ts'
import type { Request } from './requests.ts'
import { OUTPUT_MOST, vendorOf } from './vendors.ts'

/** A call that reached its vendor, as everybody concerned has it. */
export type Call = {
  readonly charge: Charge
  /** What the vendor was asked for it. */
  readonly entries: readonly JournalEntry[]
  /** Undefined where the caller left before being told which call it was. */
  readonly done: { readonly request: Request; readonly heard: Heard } | undefined
}

export type Verdict = {
  /** Of the vendor, and of the protocol or slot. */
  readonly deviant: string
  readonly speech: string
  /** Whether the route says of its vendor what bounds it. */
  readonly isRight: boolean
  readonly bill: bigint
  readonly held: bigint
  readonly loss: bigint
  readonly problems: readonly string[]
}

/** What a gateway reads at once of a stream. */
const PIECE_BYTES = 65_536
/** Of text that a vendor may have sent while nobody reads; it takes ten seconds to write so much at the pace of those without end. */
const UNDER_WAY_BYTES = 1_048_576
/** When the output of a stream is looked at first; and then each time that it has doubled. */
const QUIET_BYTES = { perToken: 6, most: 4_096 }
const BYTES_PER_TOKEN = 3
const CHOICES_MOST = 128

export function judge(call: Call): Verdict {
  const { charge, entries } = call
  const [entry] = entries
  if (entry === undefined) throw new Error(`${charge.id} has reached nobody`)
  const bill = entries.reduce((sum, one) => sum + billedNanos(one), 0n)
  const loss = bill - charge.amount
  const { deviant, speech, isRight } = whoIs(entry)
  const judged = { deviant, speech, isRight, bill, held: charge.held, loss }
  return { ...judged, problems: problemsOf(call, entry, judged) }
}

function whoIs(entry: JournalEntry): Pick<Verdict, 'deviant' | 'speech' | 'isRight'> {
  const { upstream, model, deviant, stream } = entry
  const speech = `${protocolOf(entry) ?? upstream}${stream === true ? ' stream' : ''}`
  const vendor = vendorOf(model ?? '')
  if (vendor === undefined || model === null) return { deviant: deviant.join('+'), speech, isRight: true }
  const isRight = isRightOf(entry)
  return { deviant: vendor.name, speech: model.endsWith('/chat') ? speech : kindIn(model), isRight }
}

/** Whether the route by which a vendor was asked says how it limits output. */
export function isRightOf(entry: Pick<JournalEntry, 'model' | 'upstream' | 'path'>): boolean {
  const { model } = entry
  const protocol = protocolOf(entry)
  if (protocol === undefined || model?.endsWith('/chat') !== true) return true
  return vendorOf(model)?.isWrongIn.includes(protocol) !== true
}

const kindIn = (model: string) => model.slice(model.indexOf('/') + 1)

type Judged = Omit<Verdict, 'problems'>

function problemsOf(call: Call, entry: JournalEntry, judged: Judged): string[] {
  const { charge, entries, done } = call
  const { amount, held, overrun } = charge
  const { bill, loss, isRight } = judged
  const problems = entries.flatMap(unsoldIn).map((what) => `${what} was bought`)
  if (amount > held) problems.push(`charged ${amount} of a hold of ${held}`)
  if (entries.length > 1) problems.push(`asked ${entries.length} times`)
  if (isRight && bill > held) problems.push(`got ${bill} for a hold of ${held}`)
  const most = lossMost(held, entry, choicesOf(done?.request))
  if (loss > most) problems.push(`lost ${loss}, which is beyond ${most}`)
  if (bill > 0n && amount === 0n && !isWithheld(entry)) problems.push(`got ${bill} for nothing`)
  if (done?.heard.end !== 'clean' || done.heard.status !== 200 || entry.outcome !== 'answered') return problems
  const claim = misreports(entry) ? claimOf(entry) : bill
  if (claim === undefined || charge.outcome !== 'posted' || !isMetered(entry)) return problems
  const due = claim < held ? claim : held
  const doubted = inDoubt(entry)
  if (doubted > 0n && amount === claim - doubted) return problems
  if (amount !== due) problems.push(`charged ${amount} and not ${due} of ${claim}`)
  if (overrun !== claim - due) problems.push(`an overrun of ${overrun} and not ${claim - due}`)
  return problems
}

/**
 * Where nobody knows that a vendor counts reasoning apart, and it is by chance as much as caches have, it reads like caches that are counted beside the prompt. In such a
 * doubt the caller pays less, by this.
 */
function inDoubt({ model, bill }: JournalEntry): bigint {
  const { cache_read = 0, cache_write_5m = 0 } = bill ?? {}
  if (vendorOf(model ?? '')?.name !== 'reasoning-apart-unknown') return 0n
  return BigInt(cache_read + cache_write_5m) * (OUTPUT_NANOS - INPUT_NANOS)
}

const misreports = ({ deviant }: JournalEntry) => deviant.includes('over-reports') || deviant.includes('under-reports')

/** Those that say what they count in their answers, in a form that is read here; a task says it later. */
function isMetered(entry: JournalEntry): boolean {
  if (entry.upstream === 'video' || entry.directives.includes('no-usage')) return false
  return !misreports(entry) || entry.model?.endsWith('/chat') === true
}

/** An answer of data that can not be read is not handed over, and costs nothing. */
function isWithheld({ deviant, model }: JournalEntry): boolean {
  return model === null && deviant.includes('unreadable')
}

/**
 * What one call can take where nobody knows how its vendor limits output, beside what its hold buys. In one piece: the longest answers
 * that the model gives. In a stream: what has come until it is counted the second time, and is under way by then.
 */
export function lossMost(held: bigint, { stream }: Pick<JournalEntry, 'stream'>, choices?: number): bigint {
  const limit = Number(held / OUTPUT_NANOS)
  const longest = (choices ?? Math.min(limit, CHOICES_MOST)) * OUTPUT_MOST
  if (stream !== true) return held + BigInt(longest) * OUTPUT_NANOS
  const countedBytes = 2 * (QUIET_BYTES.perToken * limit + QUIET_BYTES.most) + PIECE_BYTES
  const cut = Math.ceil((countedBytes + UNDER_WAY_BYTES) / BYTES_PER_TOKEN)
  return held + BigInt(cut) * OUTPUT_NANOS
}

function choicesOf(request: Request | undefined): number | undefined {
  if (request?.body === undefined) return undefined
  try {
    const { n, generationConfig } = Object(JSON.parse(request.body))
    const { candidateCount, candidate_count } = Object(generationConfig)
    return Math.max(1, Number(generationConfig === undefined ? (n ?? 1) : (candidateCount ?? candidate_count ?? 1)))
  } catch {
    return undefined
  }
}

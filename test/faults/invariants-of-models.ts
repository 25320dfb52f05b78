import { SANDBOX_PRICE } from '../../harness/seed.ts'
import type { JournalEntry } from '../../sandbox/src/journal.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { usd } from '../../server/src/kernel/money.ts'
import type { ChargeRow, Evidence } from './evidence.ts'
import type { Operation } from './history.ts'
import { chargedFor, inWords, tokensIn } from './invariants-of-money.ts'
import { isOfSettlement } from './invariants-of-processes.ts'
import { REPORTS_ZERO } from './questions.ts'
import { type Speech, sentOf, speechOf, type Tokens } from './speeches.ts'

const MILLION = 1_000_000n
const BYTES_PER_TOKEN = 3
/** What counting the pieces of an answer, and not the whole, can differ by. */
const ROUNDING_TOKENS = 2
/** How long a stream is heard out, and its settlement tried. */
const SETTLED_WITHIN_MS = 15_000

/**
 * Of an answer that its caller has whole: what the upstream reported, or else what was sent. Of any other: that where it
 * came to be known, or else what was delivered, which is at least what the caller has and at most what was sent. Nothing, where
 * the caller heard nothing of it, or something kept it from being settled.
 */
export function usedIsPaid(evidence: Evidence): string[] {
  const { charges, askedById, operations, resolutions, reports, troubles } = evidence
  const chargeOf = chargedFor(evidence)
  const toldOf = Map.groupBy(operations, ({ told }) => told.id ?? '')
  return [...charges.values()].flatMap((row) => {
    const speech = speechOf(row.operation)
    const entry = askedById.get(row.id)?.find(({ billed }) => billed)
    if (speech === undefined || entry === undefined) return []
    const told = toldOf.get(row.id) ?? []
    const about = `${row.id} (${row.operation} of ${entry.model}, ${entry.outcome})`
    const wrong = [
      ...(row.amount > row.held ? [`${row.amount} of ${row.held} held`] : []),
      ...(chargeOf(row.id) === 0n && entry.model !== REPORTS_ZERO && told.some(isFreeForNoReason)
        ? ['nothing, though its caller heard some of it and nothing kept it from being settled']
        : []),
      ...wrongAmount(speech, entry, told, chargeOf(row.id)),
      ...(resolutions.byId.has(row.id) ? [] : wrongTokens(row, sourceOf(row.id), speech.reported(entry))),
    ]
    return wrong.map((what) => `${about} is charged ${what}`)
  })

  function isFreeForNoReason({ invokedAtMs, endedAtMs, told: { heardBytes = 0 } }: Operation): boolean {
    const untilMs = endedAtMs + SETTLED_WITHIN_MS
    const around = troubles.filter(({ fromMs, toMs }) => fromMs <= untilMs && toMs >= invokedAtMs)
    return heardBytes > 0 && !around.some(isOfSettlement)
  }

  function sourceOf(id: Id): string | undefined {
    return reports.tokens.get(id)?.source
  }
}

function wrongAmount(speech: Speech, entry: JournalEntry, told: readonly Operation[], amount: bigint): string[] {
  const sent = sentOf(speech, entry)
  const whole = costOf(speech.reported(entry) ?? sent)
  if (told.some(({ outcome }) => outcome === 'ok'))
    return amount === whole ? [] : [`${amount}, and ${whole} is what its whole answer is worth`]
  if (amount === 0n || amount === whole) return []
  const heardBytes = Math.max(0, ...told.map(({ told: { heardBytes = 0 } }) => heardBytes))
  const output = Math.max(0, Math.ceil(heardBytes / BYTES_PER_TOKEN) - ROUNDING_TOKENS)
  // What was reported of the input may not have come; then all of it is counted, from wherever it was read.
  const inputs = [sent, { input: entry.input_tokens ?? 0, cacheRead: 0, cacheWrite: 0 }]
  const least = entry.model === REPORTS_ZERO ? 0n : smallest(inputs.map((input) => costOf({ ...input, output })))
  const most = largest(inputs.map((input) => costOf({ ...input, output: sent.output + ROUNDING_TOKENS })))
  if (entry.stream === true && amount >= least && amount <= most) return []
  return [`${amount}, and ${least} was heard of it, ${most} sent`]
}

const smallest = (amounts: readonly bigint[]) => amounts.reduce((a, b) => (a < b ? a : b))
const largest = (amounts: readonly bigint[]) => amounts.reduce((a, b) => (a > b ? a : b))

/** The ledger's tokens are what the amount is for, and those that the upstream reported where they are said to be. */
function wrongTokens(row: ChargeRow, source: string | undefined, reported: Tokens | undefined): string[] {
  const tokens = tokensIn([row])
  if (row.outcome === 'posted' && row.amount > 0n && costOf(tokens) !== row.amount)
    return [`${row.amount} for ${inWords(tokens)}`]
  if (source !== 'provider' || row.amount === 0n) return []
  if (reported === undefined) return [`for ${inWords(tokens)}, which nobody reported`]
  return inWords(tokens) === inWords(reported) ? [] : [`for ${inWords(tokens)}, and ${inWords(reported)} were reported`]
}

function costOf({ input, output, cacheRead, cacheWrite }: Tokens): bigint {
  const { input: reading, output: writing, cacheRead: cached, cacheWrite: caching } = SANDBOX_PRICE
  const nanos =
    BigInt(input) * usd(reading) +
    BigInt(output) * usd(writing) +
    BigInt(cacheRead) * usd(cached) +
    BigInt(cacheWrite) * usd(caching)
  return nanos / MILLION
}

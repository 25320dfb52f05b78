import { formatUsd, type UnitPrice } from '../kernel/money.ts'
import { decimalText } from '../kernel/rational.ts'
import type { Measured } from '../pricing/priced.ts'
import type { Terms } from '../pricing/terms.ts'
import type { Growth, Slice } from './growth.ts'
import type { Outcome } from './judge.ts'
import type { Attempt, Plan, Sent } from './plan.ts'
import type { RecordDetail, RecordedAttempt, RecordedHold, RecordedRouting } from './records.ts'
import type { Stopwatch } from './stopwatch.ts'

type CallFacts = {
  readonly plan: Pick<Plan, 'model'>
  /** What it was begun with, and how that grew. */
  readonly first: Pick<Slice, 'held'>
  readonly growth: Pick<Growth, 'steps'> | undefined
  readonly sent: Sent
  /** As the caller was told it. */
  readonly status: number
  readonly times: Stopwatch
}

/** What is kept of how a call ran, for its owner to look up. Nothing of its bodies is. */
export function runOf(facts: CallFacts): Omit<RecordDetail, keyof PriceDetail | 'balance_after'> {
  const { plan, sent, status, times } = facts
  const { firstByte = null, ...timeline } = times.noted
  return {
    model: plan.model ?? null,
    status,
    upstream: attemptsOf(sent, times),
    routing: routingOf(sent),
    hold: holdOf(facts),
    timeline,
    first_byte_ms: firstByte,
  }
}

export type PriceDetail = Pick<RecordDetail, 'price_version' | 'formula' | 'evidence'>

/** And of why it cost what it did. */
export function priceOf(terms: Terms, { measured }: Pick<Outcome, 'measured'>): PriceDetail {
  return { price_version: terms.version, formula: formulaOf(terms, measured), evidence: evidenceOf(measured) }
}

function holdOf({ first, growth, times }: CallFacts): readonly RecordedHold[] {
  const begun = { at_ms: times.noted.begun ?? 0, usd: formatUsd(first.held.most) }
  if (growth === undefined) return [begun]
  return [begun, ...growth.steps().map(({ atMs, amount }) => ({ at_ms: times.since(atMs), usd: formatUsd(amount) }))]
}

function routingOf({ routing }: Sent): RecordedRouting | null {
  if (routing === undefined) return null
  return { slot: routing.slot, upstream_model: routing.upstreamModel, reason: routing.reason }
}

function attemptsOf(sent: Sent, times: Stopwatch): readonly RecordedAttempt[] {
  const recorded = sent.attempts.map((attempt) => asRecorded(attempt, attempt.endedMs, times))
  const [last] = sent.attempts.slice(-1)
  if (sent.outcome !== 'streaming' || last === undefined) return recorded
  // A stream was an answer from its first frame on, and its request ends with its last.
  const endedMs = sent.stream.reply.timing.endedAtMs || times.lastMs()
  return [...recorded.slice(0, -1), asRecorded(last, endedMs, times)]
}

function asRecorded(
  { slot, upstreamId, outcome, status, reason, beganMs }: Attempt,
  endedMs: number,
  times: Stopwatch,
) {
  const [began_ms, ended_ms] = [times.since(beganMs), times.since(endedMs)]
  return { slot, upstream_id: upstreamId, outcome, status, reason, began_ms, ended_ms }
}

function formulaOf({ rates }: Terms, measured: Measured | undefined): string | null {
  if (measured === undefined) return null
  const terms = rates.flatMap(({ unit, price }, at) => {
    const count = measured.counts[at] ?? 0n
    // Of several kinds, those that were used; of one, that one.
    if (count === 0n && rates.length > 1) return []
    return [`${count} ${unit}${count === 1n ? '' : 's'} × ${inUsd(price)} USD`]
  })
  return terms.length === 0 ? '0 tokens' : terms.join(' + ')
}

/** Prices stay the same for long, and to write one takes longer than the rest of the record. */
const written = new WeakMap<UnitPrice, string>()

function inUsd(price: UnitPrice): string {
  const known = written.get(price) ?? decimalText(price, 9)
  written.set(price, known)
  return known
}

function evidenceOf(measured: Measured | undefined): Record<string, string | number> {
  if (measured === undefined) return {}
  const { counts, source, ...tokens } = measured
  const units = counts.length === 1 ? { units: String(counts[0]) } : {}
  return { ...units, ...tokens, ...(source !== undefined && { usage_source: source }) }
}

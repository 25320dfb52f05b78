import type { UnitPrice } from '../kernel/money.ts'
import { decimalText } from '../kernel/rational.ts'
import type { Measured } from '../pricing/priced.ts'
import type { Terms } from '../pricing/terms.ts'
import type { Outcome } from './judge.ts'
import type { Sent } from './plan.ts'
import type { RecordDetail } from './records.ts'

type CallFacts = {
  readonly terms: Terms
  readonly sent: Pick<Sent, 'attempts'>
  readonly outcome: Pick<Outcome, 'measured'>
  /** As the caller was told it. */
  readonly status: number
  readonly timeline: RecordDetail['timeline']
}

/** What is kept of a call for its owner to look up. Nothing of its bodies is. */
export function detailOf({ terms, sent, outcome: { measured }, status, timeline }: CallFacts): RecordDetail {
  return {
    status,
    formula: formulaOf(terms, measured),
    evidence: evidenceOf(measured),
    upstream: sent.attempts,
    timeline,
  }
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

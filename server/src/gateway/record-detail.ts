import type { Operation } from '../catalogue/operation.ts'
import type { Measured } from '../catalogue/price.ts'
import { decimalText } from '../kernel/rational.ts'
import { UpstreamFailure } from '../upstreams/transport.ts'
import type { Outcome, Sent } from './judge.ts'
import type { Terms } from './prices.ts'
import type { Attempt, RecordDetail } from './records.ts'

type Told = {
  readonly operation: Operation
  readonly terms: Terms
  readonly sent: Sent
  readonly outcome: Outcome
  readonly timeline: RecordDetail['timeline']
}

/** What is kept of a call for its owner to look up. Nothing of its bodies is. */
export function detailOf({ operation, terms, sent, outcome, timeline }: Told): RecordDetail {
  return {
    status: outcome.fault?.status ?? outcome.answer?.status ?? 500,
    formula: formulaOf(terms, outcome.measured),
    evidence: evidenceOf(outcome.measured),
    upstream: [attemptOf(operation, sent)],
    timeline,
  }
}

function formulaOf({ unit, unitPrice }: Terms, measured: Measured | undefined): string | null {
  if (measured === undefined) return null
  const { units } = measured
  return `${units} ${unit}${units === 1n ? '' : 's'} × ${decimalText(unitPrice, 9)} USD`
}

function evidenceOf(measured: Measured | undefined): Record<string, string | number> {
  if (measured === undefined) return {}
  const { units, ...tokens } = measured
  return { units: String(units), ...tokens }
}

function attemptOf({ upstream: { slot } }: Operation, sent: Sent): Attempt {
  if (sent.reply !== undefined) return { slot, outcome: 'answered', status: sent.reply.status, reason: null }
  const reason = sent.failure instanceof UpstreamFailure ? sent.failure.reason : 'internal'
  return { slot, outcome: sent.certainty, status: null, reason }
}

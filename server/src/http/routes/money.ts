import { formatUsd, type Nanos, wholeMicros } from '../../kernel/money.ts'

/** An amount as callers read it: exact, and in whole micros as the usage report has it. */
export function money(amount: Nanos) {
  return { usd: formatUsd(amount), micros_usd: Number(wholeMicros(amount)) }
}

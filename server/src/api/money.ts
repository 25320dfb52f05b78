import { z } from 'zod'
import { formatUsd, type Nanos, wholeMicros } from '../kernel/money.ts'

export const moneyBody = z
  .strictObject({
    usd: z.string().regex(/^-?\d+\.\d{9}$/),
    micros_usd: z.int(),
  })
  .meta({ id: 'Money', description: 'An amount: exact decimal USD, and whole micro-USD.' })

/** An amount as callers read it: exact, and in whole micros as the usage report has it. */
export function money(amount: Nanos) {
  return { usd: formatUsd(amount), micros_usd: Number(wholeMicros(amount)) }
}

import { z } from 'zod'
import { type Nanos, usd } from '../../kernel/money.ts'

/** What the overview reads of the account API. */

const amount = z.object({ usd: z.string() }).transform(({ usd: text }): Nanos => usd(text))
const time = z.string().transform((text) => new Date(text))

export const balanceForm = z.object({ available: amount, held: amount, charged: amount, debt: amount })
export type ShownBalance = z.output<typeof balanceForm>

const sums = {
  requests: z.number(),
  failed_requests: z.number(),
  input_tokens: z.number(),
  output_tokens: z.number(),
  charged: amount,
}
const bucket = z.object({ start: time, ...sums })

export const usageForm = z.object({
  totals: z.object(sums),
  buckets: z.array(bucket),
  groups: z.array(
    z.object({
      kind: z.enum(['group', 'other', 'none']),
      value: z.string().nullable(),
      label: z.string().nullable(),
      totals: z.object(sums),
      buckets: z.array(bucket),
    }),
  ),
})
export type ShownUsage = z.output<typeof usageForm>

export const budgetsForm = z.object({
  data: z.array(
    z.object({
      kind: z.string(),
      period: z.enum(['day', 'week', 'month', 'total']),
      amount,
      state: z.object({ spent: amount, held: amount, left: amount, resets_at: time.nullable() }).nullable(),
    }),
  ),
})
export type ShownBudget = z.output<typeof budgetsForm>['data'][number]

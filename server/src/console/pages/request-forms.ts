import { z } from 'zod'

/** Calls as the account API tells of them, as far as pages show it. */

const amount = z.object({ usd: z.string() })
const call = {
  id: z.string(),
  operation: z.string().nullable(),
  model: z.string().nullable(),
  end_user: z.object({ id: z.string(), label: z.string().nullable() }).nullable(),
  tags: z.record(z.string(), z.string()),
  made_by: z.object({ id: z.string(), kind: z.enum(['key', 'grant']), name: z.string() }).nullable(),
}
const refusal = z.object({
  code: z.string(),
  status: z.number(),
  message: z.string(),
  needed: amount.nullable(),
  left: amount.nullable(),
  budget: z.object({ kind: z.string(), subject: z.string().nullable(), period: z.string() }).nullable(),
  limited_by: z.string().nullable(),
  fix: z.object({
    output_limit: z.number().nullable(),
    retry_after_seconds: z.number().nullable(),
    url: z.string().nullable(),
  }),
})
const ended = z.object({
  ...call,
  outcome: z.enum(['posted', 'voided', 'refused']),
  refusal: refusal.optional(),
  failed: z.boolean(),
  cost: amount,
  begun_at: z.string().nullable(),
  ended_at: z.string(),
})
const open = z.object({
  ...call,
  outcome: z.enum(['running', 'unsettled']),
  held: amount,
  begun_at: z.string(),
  unsettled_at: z.string().nullable(),
})

export const requestListForm = z.object({
  data: z.array(ended),
  open: z.array(open),
  next_cursor: z.string().nullable(),
})
export type RequestPage = z.output<typeof requestListForm>

const milliseconds = z.number().nullable()
const place = z.enum(['available', 'held', 'charged'])
const full = ended.omit({ refusal: true }).extend({
  outcome: z.enum(['posted', 'voided']),
  executed: z.boolean(),
  route: z.string().nullable(),
  held: amount,
  published_value: amount,
  overrun: amount,
  postings: z.array(z.object({ at: z.string(), entry: z.string(), debit: place, credit: place, amount })),
  terms: z.array(z.object({ count: z.string(), unit: z.string(), price_usd: z.string(), cost_usd: z.string() })),
  ledger: z.array(z.object({ kind: z.string(), charged: amount, promotional: amount.optional() })),
  detail: z
    .object({
      status: z.number().nullable(),
      formula: z.string().nullable(),
      evidence: z.record(z.string(), z.unknown()),
      upstream: z.array(
        z.object({
          slot: z.string(),
          outcome: z.string(),
          status: z.number().nullable(),
          reason: z.string().nullable(),
          began_ms: milliseconds,
          ended_ms: milliseconds,
        }),
      ),
      routing: z.object({ slot: z.string(), upstream_model: z.string(), reason: z.string() }).nullable(),
      timeline: z.record(z.string(), z.number()),
      first_byte_ms: milliseconds,
    })
    .nullable(),
})
export type ShownRequest = z.output<typeof full>
export type OpenRequest = z.output<typeof open>
const refused = ended.extend({ outcome: z.literal('refused'), refusal })
export type RefusedRequest = z.output<typeof refused>
export const requestForm = z.union([refused, full, open])

import { z } from 'zod'

/** An amount as callers read it. */
const amount = z.object({ usd: z.string(), micros_usd: z.int() })

/** The body that answers a request for a quote. */
export const quoteBody = z
  .strictObject({
    operation: z.string(),
    currency: z.literal('USD'),
    expected: amount.meta({ description: 'What it will probably cost.' }),
    max: amount.meta({ description: 'What a call would hold, and the most that it can cost.' }),
    exact: z.boolean().meta({ description: 'Whether it will cost just that.' }),
    assumption: z
      .string()
      .optional()
      .meta({ description: 'What `expected` takes for granted, in a sentence; left out where the price is exact.' }),
    price_version: z.string(),
    prices: z
      .array(z.object({ unit: z.string(), usd: z.string() }))
      .optional()
      .meta({ description: 'Of several units what each costs.' }),
    contract_hash: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .nullable()
      .meta({ description: 'The contentHash of the contract that the operation has; null where none is verified.' }),
    admission: z
      .strictObject({
        fits: z.boolean(),
        code: z.enum(['insufficient_balance', 'budget_exceeded', 'budget_required']).optional(),
        left_usd: z.string().optional(),
        budget_kind: z.string().optional(),
        budget_subject: z.string().optional(),
        budget_period: z.string().optional(),
        budget_resets_at: z.iso.datetime().optional(),
      })
      .meta({
        description:
          'Whether balance and budgets cover `max` at this moment, and what a call would be refused with where they do not.',
      }),
    expires_at: z.iso.datetime(),
    quote_id: z.string().nullable().meta({ description: 'What a call sends to be charged by this quote.' }),
  })
  .meta({ id: 'Quote' })

export type Quote = z.output<typeof quoteBody>

import { z } from 'zod'
import type { Budget } from '../budgets/budgets.ts'
import { invalidRequest } from '../kernel/fault.ts'
import { UUID } from '../kernel/ids.ts'
import { usd } from '../kernel/money.ts'
import { PERIODS } from '../kernel/period.ts'

/** What bodies and queries of the account API are made of. */

export const idForm = z.string().regex(UUID, 'must be an id')

/** A moment in UTC, such as 2027-01-31T00:00:00Z. */
export const timeForm = z.iso
  .datetime({ error: 'must be a time in UTC, such as 2027-01-31T00:00:00Z' })
  .transform((text) => new Date(text))
  .meta({ type: 'string', format: 'date-time' })

/** A day of UTC. */
export const dayForm = z.iso
  .date({ error: 'must be a day, such as 2027-01-31' })
  .transform((text) => new Date(`${text}T00:00:00Z`))
  .meta({ type: 'string', format: 'date' })

/** Exact decimal USD. */
export const amountForm = z
  .string()
  .regex(/^\d{1,9}(\.\d{1,9})?$/, 'must be a decimal amount of USD, such as 12.50')
  .transform((text) => usd(text))
  .meta({ type: 'string', description: 'Decimal USD, such as 12.50.' })

export const budgetForm = z.strictObject({ period: z.enum(PERIODS), amount_usd: amountForm })

export function budgetOf({ period, amount_usd: amount }: z.output<typeof budgetForm>): Budget {
  return { period, amount }
}

/** What a parser of ours says is wrong, as a refusal. */
export function orFault<T>(param: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw invalidRequest(`"${param}": ${error.message}.`, param)
  }
}

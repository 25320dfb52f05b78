import { z } from 'zod'
import { pageLimit, wholeNumber } from '../api/query-forms.ts'
import { isKey } from '../gateway/idempotency.ts'
import { invalidRequest } from '../kernel/fault.ts'
import { isId } from '../kernel/ids.ts'
import { usd } from '../kernel/money.ts'
import type { Position, RequestFilter } from '../ledger/list-requests.ts'

/** By what lists of calls are looked through, for callers and for members. */

const DAY_MS = 86_400_000
/** For how long records are kept. */
const KEPT_DAYS = 30

const seconds = wholeNumber(0, 999_999_999_999)

const text = z
  .string()
  .min(1)
  .max(200)
  .refine((value) => !value.includes('\0'), 'must have no zero byte')
const cost = z
  .string()
  .regex(/^\d{1,9}(\.\d{1,9})?$/, 'must be a decimal amount of USD, such as 0.01')
  .transform((value) => usd(value))
  .meta({ type: 'string' })

export const requestFilters = z.strictObject({
  limit: pageLimit,
  cursor: z
    .string()
    .max(200)
    .transform(readCursor)
    .optional()
    .meta({ description: 'The next_cursor of the page before.' }),
  operation: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,62}$/, 'must be the id of an operation')
    .optional()
    .meta({ description: 'Calls of this operation alone.' }),
  outcome: z
    .enum(['posted', 'voided', 'refused'])
    .optional()
    .meta({ description: 'Charged, carried out and not charged, or refused before anything was held.' }),
  model: text.optional().meta({ description: 'Calls of this model alone, by the name that was asked for.' }),
  tag: text
    .regex(/^[^=]+=/, 'must be written name=value')
    .optional()
    .meta({ description: 'Calls with this tag alone: name=value.' }),
  end_user: z
    .string()
    .regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, 'must be an id, as a record has it')
    .optional()
    .meta({ description: 'Calls for this end user alone, by its id.' }),
  min_cost_usd: cost.optional().meta({ description: 'Calls that cost this much or more, less what was given back.' }),
  max_cost_usd: cost.optional().meta({ description: 'Calls that cost this much or less.' }),
  start_time: seconds.optional().meta({ description: 'Ended at this time or later, in Unix seconds.' }),
  end_time: seconds.optional().meta({ description: 'Ended before this time, in Unix seconds.' }),
  idempotency_key: z.string().max(255).refine(isKey, 'must have 1 to 255 visible ASCII characters').optional().meta({
    description:
      'The calls that have this Idempotency-Key, those that run among them (in `open`). It goes with `operation` and with nothing else.',
  }),
})

type Times = { readonly startMs: number | undefined; readonly endMs: number | undefined; readonly nowMs: number }
type Filters = Omit<z.output<typeof requestFilters>, 'start_time' | 'end_time' | 'idempotency_key'>
type Whose = Pick<RequestFilter, 'accountId' | 'credentialIds'>

/** As those that ended are looked through, and refused ones beside them. */
export type ListFilter = Omit<RequestFilter, 'outcome'> & { readonly outcome?: 'posted' | 'voided' | 'refused' }

/** What both APIs look for by the filters of a query. */
export function filterOf<W extends Whose>(whose: W, data: Filters, times: Times): ListFilter & W {
  const { startMs = 0, endMs = Number.MAX_SAFE_INTEGER, nowMs } = times
  if (startMs > endMs) throw invalidRequest('start_time is after end_time. Swap them.', 'start_time')
  return {
    ...whose,
    ...(data.operation !== undefined && { operation: data.operation }),
    ...(data.outcome !== undefined && { outcome: data.outcome }),
    sinceMs: Math.max(nowMs - KEPT_DAYS * DAY_MS, startMs),
    untilMs: Math.min(nowMs + 1_000, endMs),
    ...(data.cursor !== undefined && { after: data.cursor }),
    ...(data.model !== undefined && { model: data.model }),
    ...(data.tag !== undefined && { tag: data.tag }),
    ...(data.end_user !== undefined && { endUserId: data.end_user }),
    ...(data.min_cost_usd !== undefined && { costAtLeast: data.min_cost_usd }),
    ...(data.max_cost_usd !== undefined && { costAtMost: data.max_cost_usd }),
    limit: data.limit,
  }
}

/** Where a page ended, in a form that says nothing to anybody else. */
export function cursorOf({ endedUs, id }: Position): string {
  return Buffer.from(`${endedUs} ${id}`).toString('base64url')
}

/** Undefined for what is none. */
export function positionOf(cursor: string): Position | undefined {
  const [, us, id] = /^(\d{1,18}) ([0-9a-f-]{36})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? []
  return us !== undefined && id !== undefined && isId(id) ? { endedUs: BigInt(us), id } : undefined
}

function readCursor(text: string, context: z.RefinementCtx): Position {
  const position = positionOf(text)
  if (position !== undefined) return position
  context.addIssue({ code: 'custom', message: 'is not a valid cursor: use one that this endpoint returned' })
  return z.NEVER
}

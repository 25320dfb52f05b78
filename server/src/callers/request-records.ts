import type pg from 'pg'
import { z } from 'zod'
import { money, moneyBody } from '../api/money.ts'
import { pageLimit, wholeNumber } from '../api/query-forms.ts'
import { isKey } from '../gateway/idempotency.ts'
import { ROUTE_REASONS } from '../gateway/plan.ts'
import { Fault, invalidRequest } from '../kernel/fault.ts'
import { type Id, isId } from '../kernel/ids.ts'
import { nanos, usd } from '../kernel/money.ts'
import {
  correctionsOf,
  type EndedRequest,
  findEnded,
  findOpen,
  type LedgerLine,
  listRequests,
  type OpenRequest,
  type Position,
  type RequestFilter,
  type WhoseRequests,
} from '../ledger/requests.ts'

/** Records of calls, as callers, members and agents read them. */

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
  outcome: z.enum(['posted', 'voided']).optional().meta({ description: 'Charged, or not charged.' }),
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

const time = z.iso.datetime()
export const requestInShort = z.strictObject({
  id: z.string(),
  operation: z.string().nullable(),
  model: z.string().nullable(),
  outcome: z.enum(['posted', 'voided']),
  failed: z.boolean(),
  cost: moneyBody,
  begun_at: time.nullable(),
  ended_at: time,
  end_user: z
    .strictObject({ id: z.string(), label: z.string().nullable() })
    .nullable()
    .meta({ description: 'For whom the call was made.' }),
  tags: z.record(z.string(), z.string()).meta({ description: 'What the call was made for.' }),
})
const milliseconds = z.number().nullable()
export const requestInFull = requestInShort.extend({
  executed: z.boolean(),
  route: z.string().nullable().meta({ description: 'Whom the call went to, by the slot of the upstream.' }),
  published_value: moneyBody,
  tokens: z.strictObject({ input: z.int(), output: z.int(), cache_read: z.int(), cache_write: z.int() }),
  ledger: z.array(
    z.strictObject({
      id: z.string(),
      kind: z.string(),
      charged: moneyBody,
      promotional: moneyBody.optional(),
      at: time,
    }),
  ),
  detail: z
    .strictObject({
      status: z.number().nullable(),
      formula: z.string().nullable().meta({ description: 'How the price was worked out.' }),
      evidence: z.record(z.string(), z.unknown()),
      upstream: z.array(
        z.strictObject({
          slot: z.string(),
          outcome: z.string(),
          status: z.number().nullable(),
          reason: z.string().nullable(),
          began_ms: milliseconds,
          ended_ms: milliseconds,
        }),
      ),
      routing: z
        .strictObject({ slot: z.string(), upstream_model: z.string(), reason: z.enum(ROUTE_REASONS) })
        .nullable()
        .meta({ description: 'By which route of the model the call went, and why.' }),
      timeline: z.record(z.string(), z.number()),
      first_byte_ms: milliseconds,
    })
    .nullable()
    .meta({ description: 'How the call ran; null where that was not kept.' }),
})
export const openRequest = z.strictObject({
  id: z.string(),
  operation: z.string().nullable(),
  outcome: z.enum(['running', 'unsettled']),
  held: moneyBody,
  begun_at: time,
  unsettled_at: time.nullable(),
})
/** One of somebody's calls, as it ended or as it stands. */
export async function requestOf(pool: pg.Pool, whose: WhoseRequests, id: Id) {
  // In this order: one that ends between the two is found by the second.
  const open = await findOpen(pool, whose, id)
  if (open !== undefined) return ofOpen(open)
  const ended = await findEnded(pool, whose, id)
  if (ended !== undefined) return inFull(ended, await correctionsOf(pool, id))
  throw new Fault('resource_not_found')
}

type Times = { readonly startMs: number | undefined; readonly endMs: number | undefined; readonly nowMs: number }
type Filters = Omit<z.output<typeof requestFilters>, 'start_time' | 'end_time' | 'idempotency_key'>

/** A page of somebody's calls that have ended, as both APIs tell it. */
export async function pageOfRequests(
  pool: pg.Pool,
  whose: Pick<RequestFilter, 'accountId' | 'credentialIds'>,
  data: Filters,
  { startMs = 0, endMs = Number.MAX_SAFE_INTEGER, nowMs }: Times,
) {
  if (startMs > endMs) throw invalidRequest('start_time is after end_time. Swap them.', 'start_time')
  const { rows, next } = await listRequests(pool, {
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
  })
  return { data: rows.map(inShort), next_cursor: next === null ? null : cursorOf(next) }
}

export function inShort(row: EndedRequest) {
  return {
    id: row.id,
    operation: row.operation,
    // Of a call that ended before the ledger had it, how it went may say so.
    model: row.model ?? row.detail?.model ?? null,
    outcome: row.outcome,
    failed: row.failed,
    cost: money(nanos(row.amount - row.given_back)),
    begun_at: row.begun_at?.toISOString() ?? null,
    ended_at: row.ended_at.toISOString(),
    end_user: row.end_user === null ? null : { id: row.end_user, label: row.end_user_label },
    tags: Object.fromEntries((row.tags ?? []).map(partedTag)),
  }
}

function partedTag(tag: string): [name: string, value: string] {
  const at = tag.indexOf('=')
  return [tag.slice(0, at), tag.slice(at + 1)]
}

function inFull(row: EndedRequest, corrections: readonly LedgerLine[]) {
  return {
    ...inShort(row),
    // What is free was executed too, and is counted nowhere.
    executed: row.executed || row.outcome === 'posted',
    route: row.route,
    published_value: money(row.value),
    tokens: {
      input: Number(row.input_tokens),
      output: Number(row.output_tokens),
      cache_read: Number(row.cache_read_tokens),
      cache_write: Number(row.cache_write_tokens),
    },
    ledger: [
      {
        id: row.id,
        kind: row.outcome,
        charged: money(row.amount),
        promotional: money(row.promo),
        at: row.ended_at.toISOString(),
      },
      ...corrections
        .filter(({ charged }) => charged !== 0n)
        .map(({ id, kind, charged, entered_at }) => ({
          id,
          kind,
          charged: money(charged),
          at: entered_at.toISOString(),
        })),
    ],
    // The reason is one of ours: the gateway wrote it.
    detail: row.detail && (shownTo(row.detail) as z.input<typeof requestInFull>['detail']),
  }
}

/** Which of a slot's upstreams was asked is for operators alone. */
function shownTo({ model, upstream, ...detail }: NonNullable<EndedRequest['detail']>) {
  return { ...detail, upstream: upstream.map(({ upstream_id, ...attempt }) => attempt) }
}

export function ofOpen({ id, operation, amount, begun_at, unsettled_at }: OpenRequest) {
  return {
    id,
    operation,
    outcome: unsettled_at === null ? ('running' as const) : ('unsettled' as const),
    held: money(amount),
    begun_at: begun_at.toISOString(),
    unsettled_at: unsettled_at?.toISOString() ?? null,
  }
}

/** Where a page ended, in a form that says nothing to anybody else. */
function cursorOf({ endedUs, id }: Position): string {
  return Buffer.from(`${endedUs} ${id}`).toString('base64url')
}

function readCursor(text: string, context: z.RefinementCtx): Position {
  const [, us, id] = /^(\d{1,18}) ([0-9a-f-]{36})$/.exec(Buffer.from(text, 'base64url').toString('latin1')) ?? []
  if (us !== undefined && id !== undefined && isId(id)) return { endedUs: BigInt(us), id }
  context.addIssue({ code: 'custom', message: 'is not a valid cursor: use one that this endpoint returned' })
  return z.NEVER
}

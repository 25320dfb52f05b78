import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { type Nanos, nanos } from '../kernel/money.ts'

/** The calls of a key, as the ledger has them, with what else was kept of how they went. */

const amount = z.bigint().transform((value): Nanos => nanos(value))

const recordedAttempt = z.object({
  slot: z.string(),
  upstream_id: z.string().nullable().default(null),
  outcome: z.string(),
  status: z.number().nullable(),
  reason: z.string().nullable(),
  began_ms: z.number().nullable().default(null),
  ended_ms: z.number().nullable().default(null),
})

/** What was kept of how a call went. What was written by an earlier release, or lost by a process that died, lacks some of it. */
export const recordDetail = z.object({
  model: z.string().nullable().default(null),
  status: z.number().nullable().default(null),
  formula: z.string().nullable().default(null),
  evidence: z.record(z.string(), z.unknown()).default({}),
  upstream: z.array(recordedAttempt).default([]),
  timeline: z.record(z.string(), z.number()).default({}),
  first_byte_ms: z.number().nullable().default(null),
})

const endedRow = z.object({
  id: z.string(),
  operation: z.string().nullable(),
  outcome: z.enum(['posted', 'voided']),
  amount,
  promo: amount,
  overrun: amount,
  value: amount,
  failed: z.boolean(),
  executed: z.boolean(),
  input_tokens: z.bigint(),
  output_tokens: z.bigint(),
  cache_read_tokens: z.bigint(),
  cache_write_tokens: z.bigint(),
  begun_at: z.date().nullable(),
  ended_at: z.date(),
  /** Microseconds, by which the list is continued. */
  ended_us: z.bigint(),
  given_back: amount,
  detail: recordDetail.nullable(),
})

export type EndedRequest = z.output<typeof endedRow>

export type RequestFilter = {
  readonly credentialIds: readonly Id[]
  readonly operation?: string
  readonly outcome?: 'posted' | 'voided'
  /** From this moment on. */
  readonly sinceMs: number
  /** Before this moment. */
  readonly untilMs: number
  /** Continues after this one. */
  readonly after?: { readonly endedUs: bigint; readonly id: Id }
  readonly limit: number
}

/** What a charge was corrected by, as a sum. */
const GIVEN_BACK = 'coalesce((select -sum(e.charged) from entries e where e.corrects = c.id), 0)::bigint'

const COLUMNS = `c.id, c.operation, c.outcome, c.amount, c.promo, c.overrun, c.value, c.failed, c.executed,
  c.input_tokens, c.output_tokens, c.cache_read_tokens, c.cache_write_tokens, c.begun_at, c.ended_at,
  (extract(epoch from c.ended_at) * 1000000)::bigint as ended_us,
  ${GIVEN_BACK} as given_back, r.detail`

/** A call ends within days of the time that its id carries; other days' charges are not looked at. */
const DAYS_APART_MS = 8 * 86_400_000

/** Of one, as it is as a rule, the index has them in order. */
const isOf = (ids: readonly Id[]) => (ids.length === 1 ? 'c.credential_id = $1' : 'c.credential_id = any ($1::uuid[])')
const whose = (ids: readonly Id[]) => (ids.length === 1 ? ids[0] : ids)

/** Those that have ended, the latest first. */
export async function listRequests(pool: pg.Pool, filter: RequestFilter): Promise<readonly EndedRequest[]> {
  const { credentialIds, operation, outcome, sinceMs, untilMs, after, limit } = filter
  // It has no name, so that it is planned for its values: only the days that it asks for are opened.
  const { rows } = await pool.query({
    text: `select ${COLUMNS} from charges c left join request_records r on r.id = c.id
      where ${isOf(credentialIds)} and c.ended_at >= to_timestamp($2::float8 / 1000) and c.ended_at < to_timestamp($3::float8 / 1000)
        and c.id >= first_id_at(to_timestamp($4::float8 / 1000)) and c.id < first_id_at(to_timestamp($5::float8 / 1000))
        and ($6::text is null or c.operation = $6) and ($7::text is null or c.outcome = $7)
        and ($8::bigint is null or (c.ended_at, c.id) < ('epoch'::timestamptz + $8 * interval '1 microsecond', $9::uuid))
      order by c.ended_at desc, c.id desc limit $10`,
    values: [
      whose(credentialIds),
      sinceMs,
      untilMs,
      Math.max(0, sinceMs - DAYS_APART_MS),
      untilMs + DAYS_APART_MS,
      operation ?? null,
      outcome ?? null,
      after?.endedUs ?? null,
      after?.id ?? null,
      limit,
    ],
  })
  return z.array(endedRow).parse(rows)
}

export async function findEnded(
  pool: pg.Pool,
  credentialIds: readonly Id[],
  id: Id,
): Promise<EndedRequest | undefined> {
  const { rows } = await pool.query({
    text: `select ${COLUMNS} from charges c left join request_records r on r.id = c.id where c.id = $1 and c.credential_id = any ($2::uuid[])`,
    values: [id, credentialIds],
  })
  return rows[0] && endedRow.parse(rows[0])
}

const costRow = z.object({ id: z.string(), cost: amount })

/** What calls cost, as the list says it, by their ids. One that has not ended is not among them. */
export async function costsOf(pool: pg.Pool, ids: readonly Id[]): Promise<ReadonlyMap<Id, Nanos>> {
  if (ids.length === 0) return new Map()
  // It has no name, so that it is planned for its values: only the days of these ids are opened.
  const { rows } = await pool.query({
    text: `select c.id, c.amount - ${GIVEN_BACK} as cost from charges c where c.id = any ($1)`,
    values: [ids],
  })
  return new Map(
    z
      .array(costRow)
      .parse(rows)
      .map(({ id, cost }) => [id, cost]),
  )
}

const openRow = z.object({
  id: z.string(),
  operation: z.string(),
  amount,
  begun_at: z.date(),
  unsettled_at: z.date().nullable(),
})

export type OpenRequest = z.output<typeof openRow>

/** One that runs, or of which nobody knows what it used. */
export async function findOpen(pool: pg.Pool, credentialIds: readonly Id[], id: Id): Promise<OpenRequest | undefined> {
  const { rows } = await pool.query(
    'select id, operation, amount, begun_at, unsettled_at from holds where id = $1 and credential_id = any ($2::uuid[])',
    [id, credentialIds],
  )
  return rows[0] && openRow.parse(rows[0])
}

const claimRow = z.object({ call_id: z.string() })

/** The calls of a key that hold claims of a scope, the latest first. A claim that its call has freed, or that has expired, is nobody's. */
export async function findClaiming(
  pool: pg.Pool,
  credentialId: Id,
  scope: string,
  keys: readonly string[],
): Promise<readonly Id[]> {
  const { rows } = await pool.query({
    text: `select call_id from claims where credential_id = $1 and scope = $2 and key = any ($3)
      and (kept_until is null or kept_until > clock_timestamp()) order by call_id desc`,
    values: [credentialId, scope, keys],
  })
  return z
    .array(claimRow)
    .parse(rows)
    .map(({ call_id }) => call_id)
}

const lineRow = z.object({ id: z.string(), kind: z.string(), charged: amount, overrun: amount, entered_at: z.date() })
export type LedgerLine = z.output<typeof lineRow>

/** What was corrected about a call after it had ended. */
export async function correctionsOf(pool: pg.Pool, id: Id): Promise<readonly LedgerLine[]> {
  const { rows } = await pool.query(
    'select id, kind, charged, overrun, entered_at from entries where corrects = $1 order by entered_at, id',
    [id],
  )
  return z.array(lineRow).parse(rows)
}

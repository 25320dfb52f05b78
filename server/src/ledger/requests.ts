import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { type Nanos, nanos } from '../kernel/money.ts'

/** What a call was, as the ledger has it, with what else was kept of how it went: for callers, members and operators alike. Each is shown a part of it. */

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
const recordDetail = z.object({
  model: z.string().nullable().default(null),
  status: z.number().nullable().default(null),
  formula: z.string().nullable().default(null),
  evidence: z.record(z.string(), z.unknown()).default({}),
  upstream: z.array(recordedAttempt).default([]),
  routing: z.object({ slot: z.string(), upstream_model: z.string(), reason: z.string() }).nullable().default(null),
  price_version: z.string().nullable().default(null),
  hold: z.array(z.object({ at_ms: z.number(), usd: z.string() })).default([]),
  balance_after: z.string().nullable().default(null),
  timeline: z.record(z.string(), z.number()).default({}),
  first_byte_ms: z.number().nullable().default(null),
})

export const endedRow = z.object({
  id: z.string(),
  account_id: z.string(),
  /** Null of what keeps an id from being used, and is no call. */
  credential_id: z.string().nullable(),
  operation: z.string().nullable(),
  outcome: z.enum(['posted', 'voided']),
  /** The most that was held. */
  held: amount,
  amount,
  promo: amount,
  overrun: amount,
  value: amount,
  /** What the upstream charges the operator. */
  upstream_cost: amount,
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
  model: z.string().nullable(),
  route: z.string().nullable(),
  end_user: z.string().nullable(),
  end_user_label: z.string().nullable(),
  tags: z.array(z.string()).nullable(),
  detail: recordDetail.nullable(),
})

export type EndedRequest = z.output<typeof endedRow>

/** What a charge was corrected by, as a sum. */
export const GIVEN_BACK = 'coalesce((select -sum(e.charged) from entries e where e.corrects = c.id), 0)::bigint'

export const ENDED_COLUMNS = `c.id, c.account_id, c.credential_id, c.operation, c.outcome, c.held, c.amount, c.promo, c.overrun, c.value, c.upstream_cost, c.failed, c.executed,
  c.input_tokens, c.output_tokens, c.cache_read_tokens, c.cache_write_tokens, c.begun_at, c.ended_at,
  (extract(epoch from c.ended_at) * 1000000)::bigint as ended_us,
  ${GIVEN_BACK} as given_back, c.model, c.route, c.end_user, c.end_user_label, c.tags, r.detail`

/** By some credentials, by whatever credential of an account, or, for operators, by anybody's. */
export type WhoseRequests = readonly Id[] | { readonly accountId: Id } | 'everybody'

export function owned(whose: WhoseRequests): { readonly condition: string; readonly owners: readonly unknown[] } {
  if (whose === 'everybody') return { condition: 'true', owners: [] }
  return 'accountId' in whose
    ? { condition: 'c.account_id = $2', owners: [whose.accountId] }
    : { condition: 'c.credential_id = any ($2::uuid[])', owners: [whose] }
}

export async function findEnded(pool: pg.Pool, whose: WhoseRequests, id: Id): Promise<EndedRequest | undefined> {
  const { condition, owners } = owned(whose)
  const { rows } = await pool.query({
    text: `select ${ENDED_COLUMNS} from charges c left join request_records r on r.id = c.id where c.id = $1 and ${condition}`,
    values: [id, ...owners],
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

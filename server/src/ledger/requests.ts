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
  routing: z.object({ slot: z.string(), upstream_model: z.string(), reason: z.string() }).nullable().default(null),
  timeline: z.record(z.string(), z.number()).default({}),
  first_byte_ms: z.number().nullable().default(null),
})

const endedRow = z.object({
  id: z.string(),
  credential_id: z.string().nullable(),
  operation: z.string().nullable(),
  outcome: z.enum(['posted', 'voided']),
  held: amount,
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
  model: z.string().nullable(),
  route: z.string().nullable(),
  end_user: z.string().nullable(),
  end_user_label: z.string().nullable(),
  tags: z.array(z.string()).nullable(),
  detail: recordDetail.nullable(),
})

export type EndedRequest = z.output<typeof endedRow>

export type RequestFilter = {
  /** Whose the credentials are, where they may be several; all of its calls where none are named. */
  readonly accountId?: Id
  readonly credentialIds?: readonly Id[]
  readonly operation?: string
  readonly outcome?: 'posted' | 'voided'
  readonly model?: string
  /** name=value */
  readonly tag?: string
  readonly endUserId?: Id
  /** What it cost, less what was given back. */
  readonly costAtLeast?: Nanos
  readonly costAtMost?: Nanos
  /** From this moment on. */
  readonly sinceMs: number
  /** Before this moment. */
  readonly untilMs: number
  /** Continues after this one. */
  readonly after?: Position
  readonly limit: number
}

/** What a charge was corrected by, as a sum. */
const GIVEN_BACK = 'coalesce((select -sum(e.charged) from entries e where e.corrects = c.id), 0)::bigint'

const COLUMNS = `c.id, c.credential_id, c.operation, c.outcome, c.held, c.amount, c.promo, c.overrun, c.value, c.failed, c.executed,
  c.input_tokens, c.output_tokens, c.cache_read_tokens, c.cache_write_tokens, c.begun_at, c.ended_at,
  (extract(epoch from c.ended_at) * 1000000)::bigint as ended_us,
  ${GIVEN_BACK} as given_back, c.model, c.route, c.end_user, c.end_user_label, c.tags, r.detail`

/** A call ends within days of the time that its id carries; other days' charges are not looked at. */
const DAYS_APART_MS = 8 * 86_400_000

/** How many calls are looked at for a page: what few calls match would else be looked for in all of them. */
const LOOKED_AT = 20_000

export type RequestPage = {
  readonly rows: readonly EndedRequest[]
  /** Where the next page begins; null where there is no more to look at. */
  readonly next: Position | null
}

export type Position = { readonly endedUs: bigint; readonly id: Id }

/** Those that have ended, the latest first. A page of a filter that few match can have fewer than asked for, and not be the last. */
export async function listRequests(pool: pg.Pool, filter: RequestFilter): Promise<RequestPage> {
  const { limit } = filter
  const { text, values } = listStatement(filter)
  const { rows: found } = await pool.query({ text, values: [...values] })
  const rows = z.array(listedRow).parse(found)
  const matching = rows.flatMap(({ matches, ...row }) => (matches ? [endedRow.parse(row)] : []))
  const shown = matching.slice(0, limit)
  if (matching.length > limit) return { rows: shown, next: positionOf(shown.at(-1)) }
  // The last that was looked at is there, whether it matches or not.
  return { rows: shown, next: positionOf(rows.find(({ is_last: isLast }) => isLast)) }
}

const listedRow = z.looseObject({
  matches: z.boolean(),
  is_last: z.boolean(),
  ended_us: z.bigint(),
  id: z.string(),
})

function positionOf(row: { readonly ended_us: bigint; readonly id: Id } | undefined): Position | null {
  return row === undefined ? null : { endedUs: row.ended_us, id: row.id }
}

/** It has no name, so that it is planned for its values: only the days that it asks for are opened. */
function listStatement(filter: RequestFilter): { readonly text: string; readonly values: readonly unknown[] } {
  const { accountId, credentialIds, sinceMs, untilMs, after, limit } = filter
  const values: unknown[] = []
  const parameter = (value: unknown) => `$${values.push(value)}`
  const time = (ms: number) => `to_timestamp(${parameter(ms)}::float8 / 1000)`
  // Of one, as it is as a rule, the index has them in order; of an account, another one has.
  const ofAccount = () => (accountId === undefined ? 'true' : `c.account_id = ${parameter(accountId)}`)
  if (accountId === undefined && credentialIds === undefined) throw new Error('calls of nobody in particular')
  const whose =
    credentialIds === undefined
      ? ofAccount()
      : credentialIds.length === 1
        ? `c.credential_id = ${parameter(credentialIds[0])}`
        : `${ofAccount()} and c.credential_id = any (${parameter(credentialIds)}::uuid[])`
  const beyond =
    after === undefined
      ? ''
      : `and (c.ended_at, c.id) < ('epoch'::timestamptz + ${parameter(after.endedUs)}::bigint * interval '1 microsecond', ${parameter(after.id)}::uuid)`
  const calls = `select c.* from charges c
    where ${whose} and c.ended_at >= ${time(sinceMs)} and c.ended_at < ${time(untilMs)}
      and c.id >= first_id_at(${time(Math.max(0, sinceMs - DAYS_APART_MS))}) and c.id < first_id_at(${time(untilMs + DAYS_APART_MS)})
      ${beyond}
    order by c.ended_at desc, c.id desc`
  const matches = matchesOf(filter, parameter)
  // One more than is shown tells whether there is more.
  const most = parameter(limit + 1)
  // Where all match, no more are looked at than are shown. Else the last one that was looked at is looked for, only where it takes its place as the
  // end of the page.
  const looked = matches === 'true' ? most : LOOKED_AT
  const last = `(select *, false from (${calls} offset ${LOOKED_AT - 1} limit 1) c where (select count(*) from found) < ${most})`
  return {
    text: `with found as materialized (select * from (${calls} limit ${looked}) c where ${matches} limit ${most})
      select ${COLUMNS}, c.matches, not c.matches as is_last from (
        select *, true as matches from found ${matches === 'true' ? '' : `union all ${last}`}
      ) c left join request_records r on r.id = c.id order by c.ended_at desc, c.id desc, c.matches desc`,
    values,
  }
}

function matchesOf(filter: RequestFilter, parameter: (value: unknown) => string): string {
  const { operation, outcome, model, tag, endUserId, costAtLeast, costAtMost } = filter
  const conditions = [
    operation !== undefined && `c.operation = ${parameter(operation)}`,
    outcome !== undefined && `c.outcome = ${parameter(outcome)}`,
    model !== undefined && `c.model = ${parameter(model)}`,
    tag !== undefined && `${parameter(tag)} = any (c.tags)`,
    endUserId !== undefined && `c.end_user = ${parameter(endUserId)}`,
    // What is given back is never more than the amount: what costs too little already is not looked up.
    costAtLeast !== undefined &&
      `c.amount >= ${parameter(costAtLeast)}::bigint and c.amount - ${GIVEN_BACK} >= ${parameter(costAtLeast)}::bigint`,
    costAtMost !== undefined && `c.amount - ${GIVEN_BACK} <= ${parameter(costAtMost)}::bigint`,
  ].filter((condition) => condition !== false)
  return conditions.length === 0 ? 'true' : conditions.join(' and ')
}

const latelyRow = endedRow.extend({ account_id: z.string() })

/** The latest calls of each of some accounts that ended since a moment, the latest first. */
export async function endedLately(
  pool: pg.Pool,
  {
    accountIds,
    sinceMs,
    ofEach,
  }: { readonly accountIds: readonly Id[]; readonly sinceMs: number; readonly ofEach: number },
): Promise<readonly z.output<typeof latelyRow>[]> {
  // It has no name, so that it is planned for its values: only the days that it asks for are opened.
  const { rows } = await pool.query({
    text: `select c.account_id, ${COLUMNS} from unnest($1::uuid[]) account (id) cross join lateral (
        select * from charges
        where account_id = account.id and ended_at >= to_timestamp($2::float8 / 1000) and id >= first_id_at(to_timestamp($3::float8 / 1000))
        order by ended_at desc, id desc limit $4) c
      left join request_records r on r.id = c.id order by c.ended_at desc, c.id desc`,
    values: [accountIds, sinceMs, sinceMs - DAYS_APART_MS, ofEach],
  })
  return z.array(latelyRow).parse(rows)
}

/** By some credentials, or by whatever credential of an account. */
export type WhoseRequests = readonly Id[] | { readonly accountId: Id }

export function owned(whose: WhoseRequests): { readonly condition: string; readonly owner: unknown } {
  return 'accountId' in whose
    ? { condition: 'account_id = $2', owner: whose.accountId }
    : { condition: 'credential_id = any ($2::uuid[])', owner: whose }
}

export async function findEnded(pool: pg.Pool, whose: WhoseRequests, id: Id): Promise<EndedRequest | undefined> {
  const { condition, owner } = owned(whose)
  const { rows } = await pool.query({
    text: `select ${COLUMNS} from charges c left join request_records r on r.id = c.id where c.id = $1 and c.${condition}`,
    values: [id, owner],
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

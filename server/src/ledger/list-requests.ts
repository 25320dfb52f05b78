import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import type { Nanos } from '../kernel/money.ts'
import { ENDED_COLUMNS, type EndedRequest, endedRow, GIVEN_BACK } from './requests.ts'

/** Lists of calls, page by page: of a key and of an account by when they ended, and of everybody by their ids. */

export type RequestFilter = {
  /** Whose the credentials are, where they may be several; all of its calls where none are named. With neither it is nobody's, but for an operator. */
  readonly accountId?: Id
  /** Calls of all accounts, by their ids instead of by when they ended. */
  readonly ofEverybody?: boolean
  readonly credentialIds?: readonly Id[]
  readonly operation?: string
  readonly mode?: Mode
  readonly outcome?: 'posted' | 'voided'
  /** Whether it counts as a failed one in the usage report. */
  readonly failed?: boolean
  readonly model?: string
  /** Whom the call went to, by the slot of the upstream. */
  readonly route?: string
  /** name=value */
  readonly tag?: string
  readonly endUserId?: Id
  /** What it cost, less what was given back. */
  readonly costAtLeast?: Nanos
  readonly costAtMost?: Nanos
  /** Whether the two times are about when calls began, which their ids say, or about when they ended. */
  readonly byBeginning?: boolean
  /** From this moment on. */
  readonly sinceMs: number
  /** Before this moment. */
  readonly untilMs: number
  /** Continues after this one. */
  readonly after?: Position
  readonly limit: number
}

/** A call ends within days of the time that its id carries; other days' charges are not looked at. */
const DAYS_APART_MS = 8 * 86_400_000

/** How many calls are looked at for a page: what few calls match would else be looked for in all of them. */
export const LOOKED_AT = 20_000

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
  // The last that was looked at is there, whether it matches or not.
  const last = matching.length > limit ? shown.at(-1) : rows.find(({ is_last: isLast }) => isLast)
  return { rows: shown, next: last === undefined ? null : positionOf(last) }
}

const listedRow = z.looseObject({
  matches: z.boolean(),
  is_last: z.boolean(),
  ended_us: z.bigint(),
  id: z.string(),
})

export function positionOf({ ended_us: endedUs, id }: { readonly ended_us: bigint; readonly id: Id }): Position {
  return { endedUs, id }
}

/**
 * It has no name, so that it is planned for its values: only the days that it asks for are opened. Of one key or account an index has the calls in the order
 * in which they ended. Of everybody no index has: the ids are in the order in which the calls began, and the days of an id are partitions in that order.
 */
export function listStatement(filter: RequestFilter): { readonly text: string; readonly values: readonly unknown[] } {
  const { ofEverybody = false, after, limit } = filter
  const values: unknown[] = []
  const parameter = (value: unknown) => `$${values.push(value)}`
  const time = (ms: number) => `to_timestamp(${parameter(ms)}::float8 / 1000)`
  const { firstMs, lastMs, endedSinceMs, endedUntilMs } = boundsOf(filter)
  const calls = `select c.* from charges c
    where ${whoseOf(filter, parameter)} and c.ended_at >= ${time(endedSinceMs)} and c.ended_at < ${time(endedUntilMs)}
      and c.id >= first_id_at(${time(firstMs)}) and c.id < first_id_at(${time(lastMs)})
      ${after === undefined ? '' : `and ${beyondOf(after, ofEverybody, parameter)}`}
    order by ${ofEverybody ? 'c.id desc' : 'c.ended_at desc, c.id desc'}`
  const matches = matchesOf(filter, parameter)
  // One more than is shown tells whether there is more.
  const most = parameter(limit + 1)
  // Where all match, no more are looked at than are shown. Else the last one that was looked at is looked for, only where it takes its place as the
  // end of the page.
  const looked = matches === 'true' ? most : LOOKED_AT
  const last = `(select *, false from (${calls} offset ${LOOKED_AT - 1} limit 1) c where (select count(*) from found) < ${most})`
  return {
    text: `with found as materialized (select * from (${calls} limit ${looked}) c where ${matches} limit ${most})
      select ${ENDED_COLUMNS}, c.matches, not c.matches as is_last from (
        select *, true as matches from found ${matches === 'true' ? '' : `union all ${last}`}
      ) c left join request_records r on r.id = c.id order by ${ofEverybody ? '' : 'c.ended_at desc, '}c.id desc, c.matches desc`,
    values,
  }
}

type Parameter = (value: unknown) => string

/** Of one key, as it is as a rule, one index has the calls in order; of an account, another one has. */
function whoseOf({ ofEverybody, accountId, credentialIds }: RequestFilter, parameter: Parameter): string {
  // What only keeps an id from being used is nobody's call.
  if (ofEverybody === true) return 'c.credential_id is not null'
  if (accountId === undefined && credentialIds === undefined) throw new Error('calls of nobody in particular')
  const ofAccount = () => (accountId === undefined ? 'true' : `c.account_id = ${parameter(accountId)}`)
  if (credentialIds === undefined) return ofAccount()
  if (credentialIds.length === 1) return `c.credential_id = ${parameter(credentialIds[0])}`
  return `${ofAccount()} and c.credential_id = any (${parameter(credentialIds)}::uuid[])`
}

/** The days to open, by the times that ids carry, and between which times calls ended. */
function boundsOf({ byBeginning = false, sinceMs, untilMs }: RequestFilter) {
  if (byBeginning)
    return { firstMs: sinceMs, lastMs: untilMs, endedSinceMs: sinceMs, endedUntilMs: untilMs + DAYS_APART_MS }
  const firstMs = Math.max(0, sinceMs - DAYS_APART_MS)
  return { firstMs, lastMs: untilMs + DAYS_APART_MS, endedSinceMs: sinceMs, endedUntilMs: untilMs }
}

function beyondOf({ endedUs, id }: Position, ofEverybody: boolean, parameter: Parameter): string {
  if (ofEverybody) return `c.id < ${parameter(id)}::uuid`
  return `(c.ended_at, c.id) < ('epoch'::timestamptz + ${parameter(endedUs)}::bigint * interval '1 microsecond', ${parameter(id)}::uuid)`
}

function matchesOf(filter: RequestFilter, parameter: Parameter): string {
  const { mode, operation, outcome, failed, model, route, tag, endUserId, costAtLeast, costAtMost } = filter
  const conditions = [
    mode !== undefined && `(select a.mode from accounts a where a.id = c.account_id) = ${parameter(mode)}`,
    operation !== undefined && `c.operation = ${parameter(operation)}`,
    outcome !== undefined && `c.outcome = ${parameter(outcome)}`,
    failed !== undefined && `c.failed = ${parameter(failed)}`,
    model !== undefined && `c.model = ${parameter(model)}`,
    route !== undefined && `c.route = ${parameter(route)}`,
    tag !== undefined && `${parameter(tag)} = any (c.tags)`,
    endUserId !== undefined && `c.end_user = ${parameter(endUserId)}`,
    // What is given back is never more than the amount: what costs too little already is not looked up.
    costAtLeast !== undefined &&
      `c.amount >= ${parameter(costAtLeast)}::bigint and c.amount - ${GIVEN_BACK} >= ${parameter(costAtLeast)}::bigint`,
    costAtMost !== undefined && `c.amount - ${GIVEN_BACK} <= ${parameter(costAtMost)}::bigint`,
  ].filter((condition) => condition !== false)
  return conditions.length === 0 ? 'true' : conditions.join(' and ')
}

/** The latest calls of each of some accounts that ended since a moment, the latest first. */
export async function endedLately(
  pool: pg.Pool,
  {
    accountIds,
    sinceMs,
    ofEach,
  }: { readonly accountIds: readonly Id[]; readonly sinceMs: number; readonly ofEach: number },
): Promise<readonly EndedRequest[]> {
  // It has no name, so that it is planned for its values: only the days that it asks for are opened.
  const { rows } = await pool.query({
    text: `select ${ENDED_COLUMNS} from unnest($1::uuid[]) account (id) cross join lateral (
        select * from charges
        where account_id = account.id and ended_at >= to_timestamp($2::float8 / 1000) and id >= first_id_at(to_timestamp($3::float8 / 1000))
        order by ended_at desc, id desc limit $4) c
      left join request_records r on r.id = c.id order by c.ended_at desc, c.id desc`,
    values: [accountIds, sinceMs, sinceMs - DAYS_APART_MS, ofEach],
  })
  return z.array(endedRow).parse(rows)
}

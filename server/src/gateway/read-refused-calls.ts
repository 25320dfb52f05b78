import type pg from 'pg'
import { z } from 'zod'
import { firstIdAt, type Id, idTimeMs } from '../kernel/ids.ts'
import { type Nanos, nanos } from '../kernel/money.ts'
import type { Position } from '../ledger/list-requests.ts'
import type { WhoseRequests } from '../ledger/requests.ts'

/** For how long refused calls can be read. */
export const REFUSED_CALLS_KEPT_DAYS = 7

const amount = z.bigint().transform((value): Nanos => nanos(value))

const refusedRow = z
  .object({
    id: z.string(),
    account_id: z.string(),
    credential_id: z.string(),
    operation: z.string().nullable(),
    model: z.string().nullable(),
    code: z.string(),
    status: z.int(),
    needed: amount.nullable(),
    left_over: amount.nullable(),
    budget_kind: z.string().nullable(),
    budget_subject: z.string().nullable(),
    budget_period: z.string().nullable(),
    limited_by: z.string().nullable(),
    fitting_output: z.bigint().nullable(),
    retry_after_seconds: z.int().nullable(),
    fix_url: z.string().nullable(),
  })
  .transform((row) => ({
    id: row.id,
    accountId: row.account_id,
    credentialId: row.credential_id,
    /** When the request came. */
    at: new Date(idTimeMs(row.id)),
    operation: row.operation,
    model: row.model,
    code: row.code,
    status: row.status,
    needed: row.needed,
    left: row.left_over,
    budget:
      row.budget_kind === null || row.budget_period === null
        ? null
        : { kind: row.budget_kind, subject: row.budget_subject, period: row.budget_period },
    limitedBy: row.limited_by,
    fittingOutput: row.fitting_output === null ? null : Number(row.fitting_output),
    retryAfterSeconds: row.retry_after_seconds,
    fixUrl: row.fix_url,
  }))

const COLUMNS = `id, account_id, credential_id, operation, model, code, status, needed, left_over, budget_kind, budget_subject, budget_period, limited_by,
  fitting_output, retry_after_seconds, fix_url`

/** A call that was refused before it began: why, what was missing, and what would have let it through. */
export type RefusedCall = z.output<typeof refusedRow>

export type RefusedFilter = {
  /** All customers' where neither an account nor credentials are named. */
  readonly accountId?: Id | undefined
  readonly credentialIds?: readonly Id[] | undefined
  readonly operation?: string | undefined
  readonly model?: string | undefined
  readonly code?: string | undefined
  /** From this moment on. */
  readonly sinceMs: number
  /** Before this moment. */
  readonly untilMs: number
  /** Continues after this one, which may be a call that was carried out. */
  readonly after?: Position | undefined
  readonly limit: number
}

/** Where a refused call stands among those that ended. */
export function positionOfRefused({ id }: Pick<RefusedCall, 'id'>): Position {
  return { endedUs: BigInt(idTimeMs(id)) * 1_000n, id }
}

export type RefusedPage = {
  readonly rows: readonly RefusedCall[]
  /** Where the next page begins; null where there is no more to look at. */
  readonly next: Position | null
}

/** How many are looked at for a page: what few match would else be looked for in all of them. */
const LOOKED_AT = 20_000

const listedRow = z.looseObject({ id: z.string().nullable(), last_looked: z.string().nullable() })

/** The latest first. A page of a filter that few match can have fewer than asked for, and not be the last. */
export async function listRefusedCalls(pool: pg.Pool, filter: RefusedFilter): Promise<RefusedPage> {
  const { rows: found } = await pool.query(listStatement(filter))
  const listed = z.array(listedRow).parse(found)
  const rows = listed.flatMap(({ last_looked: _, ...row }) => (row.id === null ? [] : [refusedRow.parse(row)]))
  const shown = rows.slice(0, filter.limit)
  const last = rows.length > filter.limit ? shown.at(-1)?.id : listed[0]?.last_looked
  return { rows: shown, next: last === null || last === undefined ? null : positionOfRefused({ id: last }) }
}

/** It has no name, so that it is planned for its values. */
function listStatement(filter: RefusedFilter): { text: string; values: unknown[] } {
  const { accountId, credentialIds, operation, model, code, sinceMs, untilMs, after, limit } = filter
  const values: unknown[] = []
  const parameter = (value: unknown) => `$${values.push(value)}`
  const until = firstIdAt(untilMs)
  const whose = [
    `id >= ${parameter(firstIdAt(sinceMs))} and id < ${parameter(after === undefined ? until : lesser(until, idBehind(after)))}`,
    accountId !== undefined && `account_id = ${parameter(accountId)}`,
    credentialIds !== undefined && `credential_id = any (${parameter(credentialIds)}::uuid[])`,
  ].filter((condition) => condition !== false)
  const matches = [
    operation !== undefined && `operation = ${parameter(operation)}`,
    model !== undefined && `model = ${parameter(model)}`,
    code !== undefined && `code = ${parameter(code)}`,
  ].filter((condition) => condition !== false)
  // One more than is shown tells whether there is more; where all match, no others are looked at.
  const most = parameter(limit + 1)
  const text = `with looked as materialized (
      select ${COLUMNS} from refused_calls where ${whose.join(' and ')} order by id desc limit ${matches.length === 0 ? most : LOOKED_AT}),
    found as (select * from looked ${matches.length === 0 ? '' : `where ${matches.join(' and ')}`} order by id desc limit ${most})
    select found.*, last.looked as last_looked
    from (select (select id from looked order by id desc offset ${LOOKED_AT - 1} limit 1) as looked) last left join found on true order by found.id desc`
  return { text, values }
}

const lesser = (one: Id, other: Id) => (one < other ? one : other)

/** Those behind a position, in the order of a list whose latest come first, have lesser ids than this one. */
function idBehind({ endedUs, id }: Position): Id {
  const ms = Number(endedUs / 1_000n)
  const [first, next] = [firstIdAt(ms), firstIdAt(ms + 1)]
  if (endedUs % 1_000n > 0n || id > next) return next
  return id < first ? first : id
}

export async function findRefusedCall(pool: pg.Pool, whose: WhoseRequests, id: Id): Promise<RefusedCall | undefined> {
  const [condition, owner] =
    whose === 'everybody'
      ? ['$2::uuid is null', null]
      : 'accountId' in whose
        ? ['account_id = $2', whose.accountId]
        : ['credential_id = any ($2::uuid[])', whose]
  const { rows } = await pool.query(`select ${COLUMNS} from refused_calls where id = $1 and ${condition}`, [id, owner])
  return refusedRow.optional().parse(rows[0])
}

const WITH_KEY = 20

/** The latest with an Idempotency-Key of a credential, of one operation or of any. */
export async function findRefusedWithKey(
  pool: pg.Pool,
  credentialId: Id,
  { idempotencyKey, operation }: { readonly idempotencyKey: string; readonly operation?: string | undefined },
): Promise<readonly RefusedCall[]> {
  const { rows } = await pool.query(
    `select ${COLUMNS} from refused_calls
     where credential_id = $1 and idempotency_key = $2 and ($3::text is null or operation = $3) order by id desc limit $4`,
    [credentialId, idempotencyKey, operation ?? null, WITH_KEY],
  )
  return z.array(refusedRow).parse(rows)
}

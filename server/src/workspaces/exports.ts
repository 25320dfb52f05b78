import { z } from 'zod'
import { Fault } from '../kernel/fault.ts'
import { type Id, type Ids, isId } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import { type By, record } from '../storage/audit.ts'
import { inTransaction, type Query, queryOn, type Transactions } from '../storage/transaction.ts'
import { requireFewToday } from './few-a-day.ts'
import { lockWorkspace } from './stops.ts'

/**
 * A workspace takes its data along. Nothing is stored but the moment up to which it is told: whoever downloads it reads the tables, so that no
 * process that dies loses any of it.
 */

export const EXPORT_DAYS = 7
export const EXPORTS_PER_DAY = 10
const ASKED_TODAY = {
  table: 'exports',
  at: 'as_of',
  most: EXPORTS_PER_DAY,
  what: `${EXPORTS_PER_DAY} exports per day for a workspace. One that is there can be downloaded again.`,
} as const

export const EXPORT_STATES = ['preparing', 'ready', 'expired'] as const

const FACTS = `id, mode, person_id as "personId", as_of as "asOf", (extract(epoch from as_of) * 1000000)::bigint as "asOfUs", expires_at as "expiresAt"`

/**
 * What was open at the moment may still add what is earlier: it has ended as soon as the oldest that is open has a higher number than the moment.
 * A database that was restored elsewhere counts its transactions anew, and has nothing open of those before: a number that it has not reached is from there.
 * When it comes to that number, the export is not ready while what is open then is, and ready again after.
 */
const IS_SETTLED =
  'pg_snapshot_xmin(pg_current_snapshot()) > asked_in or pg_snapshot_xmax(pg_current_snapshot()) <= asked_in'
const COLUMNS = `${FACTS}, case when expires_at <= clock_timestamp() then 'expired' when ${IS_SETTLED} then 'ready' else 'preparing' end as state`

const row = z.object({
  id: z.string(),
  /** Null for both. */
  mode: z.enum(['live', 'test']).nullable(),
  personId: z.string().nullable(),
  asOf: z.date(),
  asOfUs: z.bigint(),
  expiresAt: z.date(),
  state: z.enum(EXPORT_STATES),
})
export type Export = Readonly<z.output<typeof row>>

type Asked = { readonly workspaceId: Id; readonly personId: Id; readonly mode: Mode | null }

/**
 * The moment is taken under the locks of the accounts: calls are settled under them too, and read the time then. So whatever was charged by then
 * is committed, and whatever comes later says a later time.
 */
export function askExport(
  { pool, ids }: { readonly pool: Transactions; readonly ids: Ids },
  by: By,
  { workspaceId, personId, mode }: Asked,
): Promise<Export> {
  const id = ids.next()
  return inTransaction(pool, async (query) => {
    const { accounts } = await lockWorkspace(query, workspaceId)
    await requireFewToday(query, workspaceId, ASKED_TODAY)
    for (const accountId of accounts.toSorted())
      await query('select from accounts where id = $1 for no key update', [accountId])
    await query(
      `insert into exports (id, workspace_id, person_id, mode, as_of, expires_at)
       values ($1, $2, $3, $4, clock_timestamp(), clock_timestamp() + make_interval(days => $5))`,
      [id, workspaceId, personId, mode, EXPORT_DAYS],
    )
    await numberMoment(query, id)
    const { rows } = await query(`select ${FACTS}, 'preparing' as state from exports where id = $1`, [id])
    const asked = row.parse(rows[0])
    const after = { asOf: asked.asOf.toISOString(), mode }
    await record(query, by, { action: 'export.asked', of: workspaceId, subject: id, before: null, after })
    return asked
  })
}

/**
 * Keeps the moment as a number of a transaction. Whoever wrote a row by then was numbered by then; we were, too, perhaps long before it. So a part of
 * ours that begins now takes the next number, which PostgreSQL tells by its lower half alone. One gap is left: the time of a row by default is read just
 * before its insert takes a number, so a first insert may say a time before the moment and have a later number. It is missed by who downloads before its commit.
 */
async function numberMoment(query: Query, id: Id): Promise<void> {
  await query('savepoint moment')
  await query('update exports set asked_in = asked_in where id = $1', [id])
  await query(
    `update exports set asked_in = (own + ((xmin::text::bigint - own) & 4294967295))::text::xid8
     from (select pg_current_xact_id()::text::bigint as own) number where id = $1`,
    [id],
  )
  await query('release savepoint moment')
}

type Page = {
  readonly workspaceId: Id
  readonly mode: Mode | null
  readonly after?: Id | undefined
  readonly most: number
}

/** The newest first. A client sees those of its own mode alone. */
export async function listExports(
  on: Transactions,
  { workspaceId, mode, after, most }: Page,
): Promise<readonly Export[]> {
  const { rows } = await queryOn(on)(
    `select ${COLUMNS} from exports where workspace_id = $1 and ($2::text is null or mode = $2) and ($3::uuid is null or id < $3)
     order by id desc limit $4`,
    [workspaceId, mode, after ?? null, most],
  )
  return z.array(row).parse(rows)
}

type Sought = { readonly workspaceId: Id; readonly mode: Mode | null; readonly id: string }

/** That of another workspace is as absent as one that never was. */
export async function findExport(on: Transactions, { workspaceId, mode, id }: Sought): Promise<Export> {
  if (!isId(id)) throw new Fault('resource_not_found')
  const { rows } = await queryOn(on)(
    `select ${COLUMNS} from exports where id = $1 and workspace_id = $2 and ($3::text is null or mode = $3)`,
    [id, workspaceId, mode],
  )
  if (rows[0] === undefined) throw new Fault('resource_not_found')
  return row.parse(rows[0])
}

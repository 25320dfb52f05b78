import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { type By, record } from '../storage/audit.ts'
import { inPortions } from '../storage/in-portions.ts'
import type { SendMail } from '../storage/mail.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { lockWorkspace, mailboxesOf } from './closures.ts'
import { revokeGrantsOfWorkspace } from './grants.ts'

/**
 * Closes workspaces whose grace period is over. What may be much is done in portions, each of which can be done again; the last transaction
 * says that it is closed, with the letters and the row of the audit log. So a process that dies leaves a workspace that the next one closes,
 * and of two at it at the same time one finds it closed.
 */

type Parts = {
  readonly pool: pg.Pool
  readonly by: By
  readonly sendMail: SendMail
  /** Where people reach the pages. */
  readonly siteUrl: string
  /** Erases what the ledger knows of people, and nothing of money. */
  readonly eraseLabels: (accountId: Id) => Promise<unknown>
}

const dueRow = z.object({ id: z.string(), workspaceId: z.string(), accounts: z.array(z.string()) })
type Due = z.output<typeof dueRow>

/** Those looked at in one go. What can not be closed now is tried again the next time. */
const AT_ONCE = 20
const PORTION = 500
const ERASED = 'erased'

/** How many that were. */
export async function closeWorkspaces(parts: Parts): Promise<number> {
  const failures: unknown[] = []
  let closed = 0
  for (const due of await listDue(parts.pool)) {
    // What keeps one from being closed keeps no other.
    const isClosed = await close(parts, due).catch((error: unknown) => {
      failures.push(error)
      return false
    })
    if (isClosed) closed += 1
  }
  if (failures.length > 0) throw new Error(`${failures.length} workspaces could not be closed`, { cause: failures[0] })
  return closed
}

/** One with a call that runs, or whose outcome is not known yet, waits for it: nobody begins another. */
async function listDue(pool: pg.Pool): Promise<readonly Due[]> {
  const { rows } = await pool.query(
    `select c.id, c.workspace_id as "workspaceId", array[w.live_account_id, w.test_account_id]::text[] as accounts
     from closures c join workspaces w on w.id = c.workspace_id
     where c.state = 'asked' and c.closes_at <= clock_timestamp()
       and not exists (select from accounts a where a.id in (w.live_account_id, w.test_account_id) and a.held > 0)
     order by c.closes_at limit $1`,
    [AT_ONCE],
  )
  return z.array(dueRow).parse(rows)
}

async function close(parts: Parts, due: Due): Promise<boolean> {
  const { pool, eraseLabels } = parts
  await endKeys(pool, due.workspaceId)
  for (const accountId of due.accounts) {
    await eraseEndUsers(pool, accountId)
    await eraseLabels(accountId)
  }
  return inTransaction(pool, (query) => closeForGood(query, parts, due))
}

/** Calls are refused already, so no account is locked for it. Names go with it, also of those that had ended before. */
function endKeys(pool: pg.Pool, workspaceId: Id): Promise<number> {
  return inPortions(PORTION, (most) =>
    inTransaction(pool, async (query) => {
      const { rows } = await query(
        `update api_keys set revoked_at = coalesce(revoked_at, clock_timestamp()), name = '${ERASED}', member_email = null
         where id in (
           select id from api_keys where workspace_id = $1 and (revoked_at is null or name <> '${ERASED}' or member_email is not null)
           order by id limit $2 for update)
         returning id`,
        [workspaceId, most],
      )
      const ended = rows.map(({ id }) => id)
      await query('update credentials set active = false where id = any ($1) and active', [ended])
      await query("select record_change(topic => 'key', key => one) from unnest($1::text[]) one", [ended])
      return ended.length
    }),
  )
}

async function eraseEndUsers(pool: pg.Pool, accountId: Id): Promise<void> {
  await inPortions(PORTION, async (most) => {
    const { rowCount } = await pool.query(
      `update end_users set label = '${ERASED}' where account_id = $1 and id in (
         select id from end_users where account_id = $1 and label <> '${ERASED}' limit $2 for update)`,
      [accountId, most],
    )
    return rowCount ?? 0
  })
}

const closedRow = z.object({ keys: z.int(), members: z.int() })

async function closeForGood(query: Query, { by, sendMail, siteUrl }: Parts, due: Due): Promise<boolean> {
  const { workspaceId } = due
  const { name } = await lockWorkspace(query, workspaceId)
  const { rowCount } = await query(
    "update closures set state = 'closed', ended_at = clock_timestamp() where id = $1 and state = 'asked'",
    [due.id],
  )
  if (rowCount === 0) return false
  const grants = await revokeGrantsOfWorkspace(query, workspaceId)
  for (const to of await mailboxesOf(query, workspaceId))
    await sendMail(query, { what: 'closure_done', to, workspace: name, siteUrl })
  const { rows } = await query(
    `select (select count(*)::integer from api_keys k join closures c on c.id = $2 where k.workspace_id = $1 and k.revoked_at >= c.closes_at) as keys,
       (select count(*)::integer from members where workspace_id = $1) as members`,
    [workspaceId, due.id],
  )
  const ended = closedRow.parse(rows[0])
  const people = await erasePeople(query, workspaceId)
  await eraseWorkspace(query, due)
  await record(query, by, {
    ...{ action: 'workspace.closed', of: workspaceId, subject: workspaceId },
    before: { isClosing: true },
    after: { isClosed: true, ...ended, grants: grants.length, people },
  })
  await query("select record_change(topic => 'workspace', key => $1)", [workspaceId])
  return true
}

/**
 * Who belongs to no other workspace is erased with it. Whoever joins another one meanwhile has the person's row locked, and so comes first, or
 * finds nobody.
 */
async function erasePeople(query: Query, workspaceId: Id): Promise<number> {
  await query(
    `select from people where id in (select person_id from members where workspace_id = $1) order by id for update`,
    [workspaceId],
  )
  const { rows } = await query(
    `select m.person_id as id from members m where m.workspace_id = $1 and m.person_id is not null
       and not exists (select from members other where other.person_id = m.person_id and other.workspace_id <> $1)`,
    [workspaceId],
  )
  const ids = rows.map(({ id }) => id)
  for (const statement of OF_PEOPLE) await query(statement, [ids])
  await query('delete from members where workspace_id = $1', [workspaceId])
  return ids.length
}

/** The row of a person stays under its id; as an address it has what nobody can sign up or in with. */
const OF_PEOPLE = [
  'delete from browser_sessions where person_id = any ($1)',
  'delete from remembered_browsers where person_id = any ($1)',
  'delete from recovery_codes where person_id = any ($1)',
  'delete from person_identities where person_id = any ($1)',
  'delete from mailed_links where person_id = any ($1)',
  'delete from account_writes where person_id = any ($1)',
  `update people set email = id::text, name = '${ERASED}', password = null, totp = null, totp_since = null, erased_at = clock_timestamp()
   where id = any ($1)`,
]

async function eraseWorkspace(query: Query, { workspaceId, accounts }: Due): Promise<void> {
  await query('delete from invitations where workspace_id = $1', [workspaceId])
  await query('delete from exports where workspace_id = $1', [workspaceId])
  await query(
    `update quota_requests set use_case = '${ERASED}', note = null, person_id = null, decided_at = coalesce(decided_at, clock_timestamp()),
       state = case state when 'open' then 'withdrawn' else state end where workspace_id = $1`,
    [workspaceId],
  )
  await query(
    `update budgets set label = '${ERASED}' where account_id = any ($1::uuid[]) and kind in ('member', 'end_user')`,
    [accounts],
  )
  await query(`update workspaces set name = '${ERASED}' where id = $1`, [workspaceId])
}

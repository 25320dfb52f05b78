import type pg from 'pg'
import { z } from 'zod'
import { revokeGrantsOfWorkspace } from '../grants/grants.ts'
import type { Clock } from '../kernel/clock.ts'
import { type Id, NO_ID } from '../kernel/ids.ts'
import { type By, eraseNames, record } from '../storage/audit.ts'
import type { SendMail } from '../storage/mail.ts'
import { type Place, place, type Step } from '../storage/steps.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { mailboxesOf } from '../workspaces/closures.ts'
import { lockWorkspace } from '../workspaces/stops.ts'

/**
 * Closes workspaces whose grace period is over. What may be much is done in portions, each of which can be done again, and the place that was reached is
 * kept with the closure; the last transaction says that it is closed, with the letters and the row of the audit log. So a process that dies
 * leaves a workspace that the next one closes, from that place on.
 */

type Parts = {
  readonly pool: pg.Pool
  readonly by: By
  readonly sendMail: SendMail
  /** Where people reach the pages. */
  readonly siteUrl: string
  /** What erases what the ledger knows of people, and nothing of money. */
  readonly labelSteps: (accountId: Id) => readonly Step[]
  readonly clock: Pick<Clock, 'sleep'>
}

const reachedRow = z.object({ step: z.string(), after: place.nullable() })
const dueRow = z.object({
  id: z.string(),
  workspaceId: z.string(),
  accounts: z.array(z.string()),
  claim: z.string(),
  reached: reachedRow.nullable(),
})
type Due = z.output<typeof dueRow>

/** Those worked on in one go, and portions of each. What is not done then goes on the next time. */
const AT_ONCE = 20
const PORTIONS_AT_ONCE = 300
/** So that calls, which write to the same disks, come in between. */
const PAUSE_MS = 20
/** Longer than a portion may take: whoever has not renewed it by then is dead. */
const LEASE_SECONDS = 60
const RETRY_SECONDS = 10
const RETRY_MOST_SECONDS = 3_600
const PORTION = 500
const ERASED = 'erased'

/** How many that were. */
export async function closeWorkspaces(parts: Parts): Promise<number> {
  const failures: unknown[] = []
  let closed = 0
  for (let taken = 0; taken < AT_ONCE; taken += 1) {
    const due = await claimDue(parts.pool)
    if (due === null) break
    try {
      if (await close(parts, due)) closed += 1
    } catch (error) {
      // What keeps one from being closed keeps no other.
      failures.push(error)
      await putOff(parts.pool, due)
    }
  }
  if (failures.length > 0) throw new Error(`${failures.length} workspaces could not be closed`, { cause: failures[0] })
  return closed
}

/**
 * One process at a time has a closure. One with a call that runs, or whose outcome is not known yet, waits for it: nobody begins another. Whoever was
 * put off longest comes first, so that those that fail keep no other from its turn.
 */
async function claimDue(pool: pg.Pool): Promise<Due | null> {
  const { rows } = await pool.query(
    `with due as (
       select c.id, array[w.live_account_id, w.test_account_id]::text[] as accounts from closures c join workspaces w on w.id = c.workspace_id
       where c.state = 'asked' and c.closes_at <= clock_timestamp() and c.next_at <= clock_timestamp()
         and not exists (select from accounts a where a.id in (w.live_account_id, w.test_account_id) and a.held > 0)
       order by c.next_at, c.closes_at, c.id limit 1 for update of c skip locked)
     update closures set claim = gen_random_uuid(), next_at = clock_timestamp() + make_interval(secs => $1)
     from due where closures.id = due.id
     returning closures.id, closures.workspace_id as "workspaceId", due.accounts, closures.claim, closures.reached`,
    [LEASE_SECONDS],
  )
  return dueRow.optional().parse(rows[0]) ?? null
}

/** Twice as long each time, so that what can't be done now is not tried again and again. */
async function putOff(pool: pg.Pool, { id, claim }: Due): Promise<void> {
  await pool.query(
    `update closures set failures = failures + 1, claim = null,
       next_at = clock_timestamp() + make_interval(secs => least($3::float8, $4 * 2 ^ least(failures, 20)))
     where id = $1 and claim = $2`,
    [id, claim, RETRY_MOST_SECONDS, RETRY_SECONDS],
  )
}

async function close(parts: Parts, due: Due): Promise<boolean> {
  const steps = stepsOf(parts, due)
  // One that a release before had under another name: from the beginning, which does no harm.
  let at = Math.max(
    0,
    steps.findIndex(({ name }) => name === due.reached?.step),
  )
  let after: Place | null = steps[at]?.name === due.reached?.step ? (due.reached?.after ?? null) : null
  for (let portions = 0; at < steps.length; portions += 1) {
    if (portions === PORTIONS_AT_ONCE) return letGo(parts.pool, due)
    after = (await steps[at]?.portion(after)) ?? null
    if (after === null) at += 1
    await keep(parts.pool, due, { step: steps[at]?.name ?? DONE, after })
    await parts.clock.sleep(PAUSE_MS)
  }
  return inTransaction(parts.pool, (query) => closeForGood(query, parts, due))
}

/** What is behind all steps. */
const DONE = 'done'

function stepsOf({ pool, labelSteps }: Parts, { workspaceId, accounts }: Due): readonly Step[] {
  return [
    { name: 'keys', portion: (after) => endKeys(pool, workspaceId, after) },
    { name: 'audit log', portion: (after) => eraseNames(pool, workspaceId, after) },
    ...accounts.flatMap((accountId, index) => [
      { name: `end users of ${index}`, portion: (after: Place | null) => eraseEndUsers(pool, accountId, after) },
      ...labelSteps(accountId).map(({ name, portion }) => ({ name: `${name} of ${index}`, portion })),
    ]),
    { name: DONE, portion: async () => null },
  ]
}

async function keep(
  pool: pg.Pool,
  { id, claim }: Due,
  reached: { readonly step: string; readonly after: Place | null },
): Promise<void> {
  const { rowCount } = await pool.query(
    `update closures set reached = $3, failures = 0, next_at = clock_timestamp() + make_interval(secs => $4)
     where id = $1 and claim = $2 and state = 'asked'`,
    [id, claim, JSON.stringify(reached), LEASE_SECONDS],
  )
  if (rowCount === 0) throw new Error(`the closure ${id} was taken over by another process`)
}

async function letGo(pool: pg.Pool, { id, claim }: Due): Promise<false> {
  await pool.query('update closures set claim = null, next_at = clock_timestamp() where id = $1 and claim = $2', [
    id,
    claim,
  ])
  return false
}

/** Calls are refused already, so no account is locked for it. Names go with it, also of those that had ended before. */
function endKeys(pool: pg.Pool, workspaceId: Id, after: Place | null): Promise<Place | null> {
  return inTransaction(pool, async (query) => {
    const found = await idsOf(query, ...keysToEnd(workspaceId, after?.[0] ?? NO_ID))
    await endThese(query, found)
    return behind(found)
  })
}

async function endThese(query: Query, ids: readonly Id[]): Promise<void> {
  await query(
    `update api_keys set revoked_at = coalesce(revoked_at, clock_timestamp()), name = '${ERASED}', member_email = null where id = any ($1)`,
    [ids],
  )
  await query('update credentials set active = false where id = any ($1) and active', [ids])
  await query("select record_change(topic => 'key', key => one) from unnest($1::text[]) one", [ids])
}

/** Found by two indexes: of those that have ended, and of the others. */
export const keysToEnd = (workspaceId: Id, after: Id) =>
  [
    `select id from api_keys where id = any (array(
       (select id from api_keys where workspace_id = $1 and id > $2 and revoked_at is null order by id limit $3)
       union all (select id from api_keys where workspace_id = $1 and id > $2 and revoked_at is not null order by id limit $3)
       order by id limit $3)) order by id for update`,
    [workspaceId, after, PORTION],
  ] as const

function eraseEndUsers(pool: pg.Pool, accountId: Id, after: Place | null): Promise<Place | null> {
  return inTransaction(pool, async (query) => {
    const found = await idsOf(query, ...endUsersToErase(accountId, after?.[0] ?? NO_ID))
    await query(`update end_users set label = '${ERASED}' where account_id = $1 and id = any ($2)`, [accountId, found])
    return behind(found)
  })
}

export const endUsersToErase = (accountId: Id, after: Id) =>
  [
    'select id from end_users where account_id = $1 and id > $2 order by id limit $3 for update',
    [accountId, after, PORTION],
  ] as const

async function idsOf(query: Query, text: string, values: readonly unknown[]): Promise<readonly Id[]> {
  const { rows } = await query(text, [...values])
  return z
    .array(z.object({ id: z.string() }))
    .parse(rows)
    .map(({ id }) => id)
}

function behind(ids: readonly Id[]): Place | null {
  const last = ids.at(-1)
  return last === undefined || ids.length < PORTION ? null : [last]
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
  // One that a process of the release before made meanwhile.
  const late = 'select id from api_keys where workspace_id = $1 and revoked_at is null order by id for update'
  await endThese(query, await idsOf(query, late, [workspaceId]))
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
 * Who belongs to no other workspace is erased with it. Whoever joins or makes another one meanwhile has the person's row locked, and so comes
 * first; or waits for it, and finds the person erased.
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

/**
 * Also what workspaces that they have left still know of them: whose a key was, whom a budget was for, and invitations. The row of a person stays under its id; as an address it has what nobody
 * can sign up or in with.
 */
const OF_PEOPLE = [
  'delete from browser_sessions where person_id = any ($1)',
  'delete from remembered_browsers where person_id = any ($1)',
  'delete from recovery_codes where person_id = any ($1)',
  'delete from person_identities where person_id = any ($1)',
  'delete from mailed_links where person_id = any ($1)',
  'delete from account_writes where person_id = any ($1)',
  'delete from invitations where email in (select email from people where id = any ($1))',
  'update api_keys set member_email = null where member_person = any ($1) and member_email is not null',
  `update api_keys set member_email = null
   where member_person is null and member_email in (select email from people where id = any ($1))`,
  `update budgets set label = '${ERASED}' where kind = 'member' and subject = any ($1::text[])`,
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

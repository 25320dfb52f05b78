import { z } from 'zod'
import { Fault } from '../kernel/fault.ts'
import type { Id, Ids } from '../kernel/ids.ts'
import { type By, record } from '../storage/audit.ts'
import type { SendMail } from '../storage/mail.ts'
import { inTransaction, OpenTransaction, type Query, queryOn, type Transactions } from '../storage/transaction.ts'
import { requireFewToday } from './few-a-day.ts'
import { applyStops, lockWorkspace } from './stops.ts'

/**
 * An owner asks for a workspace to be closed, and any owner can cancel that within the grace period. Calls are refused from the commit of the
 * asking on, because it stops the workspace (stops.ts).
 */

export const GRACE_DAYS = 30
/** Each is a letter to every member. */
export const ASKED_PER_DAY = 3
const ASKED_TODAY = {
  table: 'closures',
  at: 'asked_at',
  most: ASKED_PER_DAY,
  what: `a workspace can be asked to close ${ASKED_PER_DAY} times per day.`,
} as const

const row = z.object({
  id: z.string(),
  personId: z.string().nullable(),
  askedAt: z.date(),
  closesAt: z.date(),
  /** The grace period is over: somebody is about to close it, or has. */
  isDue: z.boolean(),
  /** For good. */
  isClosed: z.boolean(),
})
export type Closure = Readonly<z.output<typeof row>>

const COLUMNS = `id, person_id as "personId", asked_at as "askedAt", closes_at as "closesAt", closes_at <= clock_timestamp() as "isDue", state = 'closed' as "isClosed"`

/** The one that is asked for or done; null where nobody has asked. */
export async function findClosure(on: Transactions, workspaceId: Id): Promise<Closure | null> {
  const { rows } = await queryOn(on)(
    `select ${COLUMNS} from closures where workspace_id = $1 and state <> 'canceled'`,
    [workspaceId],
  )
  return row.optional().parse(rows[0]) ?? null
}

/** The last that was asked for, whatever became of it: by it one who has read how it stood knows whether anybody has asked since. */
export async function findLastClosureId(on: Transactions, workspaceId: Id): Promise<Id | null> {
  const { rows } = await queryOn(on)(
    'select id from closures where workspace_id = $1 order by asked_at desc, id desc limit 1',
    [workspaceId],
  )
  return z.object({ id: z.string() }).optional().parse(rows[0])?.id ?? null
}

/** Under the lock of the workspace. What is closed stays so, whoever asks, operators too. */
export async function requireNotClosed(query: Query, workspaceId: Id): Promise<Closure | null> {
  const closure = await findClosure(new OpenTransaction(query), workspaceId)
  if (closure?.isClosed === true) throw new Fault('workspace_closing', { detail: 'The workspace is closed for good.' })
  return closure
}

/** Locks a workspace that is not closed, so that nobody closes it meanwhile. */
export async function lockOpenWorkspace(query: Query, workspaceId: Id): Promise<void> {
  await lockWorkspace(query, workspaceId)
  await requireNotClosed(query, workspaceId)
}

/** Does it in one transaction in which the workspace is not closed, and nobody closes it. */
export function inOpenWorkspace<T>(
  pool: Transactions,
  workspaceId: Id,
  work: (on: OpenTransaction) => Promise<T>,
): Promise<T> {
  return inTransaction(pool, async (query) => {
    await lockOpenWorkspace(query, workspaceId)
    return work(new OpenTransaction(query))
  })
}

type Parts = {
  readonly pool: Transactions
  readonly sendMail: SendMail
  /** Where people reach the pages. */
  readonly siteUrl: string
}

/** Without a master key, an operator cancels it and nobody is told. */
type CancelParts = Omit<Parts, 'sendMail'> & { readonly sendMail: SendMail | null }

type Asked = { readonly workspaceId: Id; readonly personId: Id }

export function askClosure(
  { pool, ids, sendMail, siteUrl }: Parts & { readonly ids: Ids },
  by: By,
  { workspaceId, personId }: Asked,
): Promise<Closure> {
  return inTransaction(pool, async (query) => {
    const workspace = await lockWorkspace(query, workspaceId)
    await requireFewToday(query, workspaceId, ASKED_TODAY)
    const { rows } = await query(
      `insert into closures (id, workspace_id, person_id, closes_at)
       values ($1, $2, $3, clock_timestamp() + make_interval(days => $4))
       on conflict (workspace_id) where state <> 'canceled' do nothing returning ${COLUMNS}`,
      [ids.next(), workspaceId, personId, GRACE_DAYS],
    )
    const asked = row.optional().parse(rows[0])
    if (asked === undefined) throw new Fault('workspace_closing')
    const closesAt = asked.closesAt.toISOString()
    const change = { before: { isClosing: false }, after: { isClosing: true, closesAt } }
    await record(query, by, { action: 'workspace.closure_asked', of: workspaceId, subject: workspaceId, ...change })
    for (const to of await mailboxesOf(query, workspaceId))
      await sendMail(query, { what: 'closure_asked', to, workspace: workspace.name, closesAt, siteUrl })
    // The accounts last: from here on, calls that end wait for the commit.
    await applyStops(query, workspace)
    return asked
  })
}

/** From its commit on, calls are taken again, unless the workspace is suspended. */
export function cancelClosure({ pool, sendMail, siteUrl }: CancelParts, by: By, workspaceId: Id): Promise<void> {
  return inTransaction(pool, async (query) => {
    const workspace = await lockWorkspace(query, workspaceId)
    const { rows } = await query(
      `update closures set state = 'canceled', ended_at = clock_timestamp()
       where workspace_id = $1 and state = 'asked' and closes_at > clock_timestamp() returning closes_at as "closesAt"`,
      [workspaceId],
    )
    const taken = z.object({ closesAt: z.date() }).optional().parse(rows[0])
    if (taken === undefined) throw await whyNot(query, workspaceId)
    const change = { before: { isClosing: true, closesAt: taken.closesAt.toISOString() }, after: { isClosing: false } }
    await record(query, by, {
      ...{ action: 'workspace.closure_canceled', of: workspaceId, subject: workspaceId },
      ...change,
    })
    for (const to of await mailboxesOf(query, workspaceId))
      await sendMail?.(query, { what: 'closure_canceled', to, workspace: workspace.name, siteUrl })
    await applyStops(query, workspace)
  })
}

async function whyNot(query: Query, workspaceId: Id): Promise<Fault> {
  const { rows } = await query("select from closures where workspace_id = $1 and state = 'asked'", [workspaceId])
  return rows.length === 0
    ? new Fault('resource_not_found', { detail: 'Nobody has asked to close the workspace.' })
    : new Fault('workspace_closing', { detail: 'The grace period is over, so it can not be canceled.' })
}

/** Of everybody who belongs to it, whether they have signed up yet or not. */
export async function mailboxesOf(query: Query, workspaceId: Id): Promise<readonly string[]> {
  const { rows } = await query(
    `select coalesce(p.email, m.email) as email from members m left join people p on p.id = m.person_id
     where m.workspace_id = $1 order by m.id`,
    [workspaceId],
  )
  return z
    .array(z.object({ email: z.string() }))
    .parse(rows)
    .map(({ email }) => email)
}

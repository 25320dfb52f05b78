import type pg from 'pg'
import { z } from 'zod'
import { Fault, invalidRequest } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { type By, difference, record, SERVICE } from '../storage/audit.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'

/** What operators do with tasks. */

const lag = z.object({ slot: z.string(), seconds: z.number() })

/** How many seconds the questions about tasks are behind, by slot. */
export async function pollLags(pool: pg.Pool): Promise<readonly z.output<typeof lag>[]> {
  const { rows } = await pool.query('select slot, max(seconds) as seconds from poll_lags() group by slot order by slot')
  return z.array(lag).parse(rows)
}

/** How many have not ended, by state. */
export async function countOpen(pool: pg.Pool): Promise<Readonly<Record<string, number>>> {
  const { rows } = await pool.query(
    'select state, count(*)::integer as count from tasks where ended_at is null group by state order by state',
  )
  const counted = z.array(z.object({ state: z.string(), count: z.int() })).parse(rows)
  return Object.fromEntries(counted.map(({ state, count }) => [state, count]))
}

const LIST_LIMIT = 1_000
const lost = z.object({ id: z.string(), model: z.string(), created_at: z.date() })

/** Those that were to be created when we lost track of it: at most a thousand, the oldest first. */
export async function listLost(pool: pg.Pool): Promise<readonly z.output<typeof lost>[]> {
  const { rows } = await pool.query(
    `select id, model, created_at from tasks join holds using (id)
     where ended_at is null and upstream_task is null and unsettled_at is not null order by id limit $1`,
    [LIST_LIMIT],
  )
  return z.array(lost).parse(rows)
}

type Attached = { readonly id: Id; readonly upstreamId: Id; readonly name: string }

/** Says who has a task whose creation was lost, and under which name, so that its end is asked for. */
export async function attachTask(pool: pg.Pool, { id, upstreamId, name }: Attached, by: By = SERVICE): Promise<void> {
  if (!/^[A-Za-z0-9._:-]{1,200}$/.test(name))
    throw invalidRequest('The task name is not valid. Give the name that the provider uses.')
  await inTransaction(pool, async (query) => {
    const before = await lockTask(query, id)
    const { rows } = await query(
      `select hand_over_task(task => $1, upstream => upstreams.id, slot_in => upstreams.slot, mode_in => upstreams.mode, name => $3,
         state_in => 'PENDING', first_poll_seconds => 0, corrects => true) as outcome
       from upstreams join tasks on tasks.id = $1 join accounts on accounts.id = tasks.account_id
       where upstreams.id = $2 and upstreams.mode = accounts.mode`,
      [id, upstreamId, name],
    )
    const [found] = z.array(z.object({ outcome: z.string() })).parse(rows)
    if (found?.outcome !== 'done' || before === undefined) throw notAttached({ id, upstreamId, name }, found?.outcome)
    const { accountId, ...place } = before
    const changed = difference(place, { upstreamId, name })
    await record(query, by, { action: 'task.attached', of: accountId, subject: id, ...changed })
  })
}

const taskPlace = z.object({ accountId: z.string(), upstreamId: z.string().nullable(), name: z.string().nullable() })

/** Whoever ends the task or says who has it waits for us: they lock its account first, as we do. */
async function lockTask(query: Query, id: Id): Promise<z.output<typeof taskPlace> | undefined> {
  await query('select from accounts where id = (select account_id from tasks where id = $1) for no key update', [id])
  const { rows } = await query(
    'select account_id as "accountId", upstream_id as "upstreamId", upstream_task as name from tasks where id = $1',
    [id],
  )
  return taskPlace.optional().parse(rows[0])
}

function notAttached({ id, upstreamId, name }: Attached, outcome: string | undefined): Fault {
  const reasons: Readonly<Record<string, string>> = {
    ended: `The task ${id} has already ended.`,
    taken: `Another task already has the name ${name} at ${upstreamId}.`,
  }
  const detail = reasons[outcome ?? ''] ?? `There is no task ${id}, or no upstream ${upstreamId} in its mode.`
  return new Fault('resource_not_found', { detail })
}

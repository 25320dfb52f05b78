import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { ShownTask } from '../../sandbox/src/upstreams/video-tasks.ts'
import { resolveCall } from '../../server/src/calls/orphans.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { attachTask, listLost } from '../../server/src/tasks/operate.ts'
import { expireTasks } from '../../server/src/tasks/upkeep.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import type { Cluster } from './cluster.ts'

export type TaskResolutions = {
  /** Creations that were lost: those whose task the upstream has, and those of which it knows nothing. */
  readonly attached: ReadonlySet<Id>
  readonly voided: ReadonlySet<Id>
  /** Those that their upstream had ended, and that nobody had settled when all was well for so long. */
  readonly late: readonly Id[]
  /** Those that their upstream never ends, as they stood before they were given up at our loss. */
  readonly neverEnded: ReadonlyMap<Id, OpenTask>
}

export type OpenTask = { readonly id: Id; readonly state: string; readonly held: bigint; readonly places: number }

/** A poll that is not answered is repeated after ten seconds at the most, and some are not answered twice. */
const SETTLED_WITHIN_MS = 90_000
const LOOK_EVERY_MS = 200
const FINAL: ReadonlySet<string> = new Set(['SUCCEEDED', 'FAILED', 'CANCELED'])

export function hasEnded({ state }: ShownTask): boolean {
  return FINAL.has(state)
}

/** As an operator does: says the names of those that the upstream has, ends the others, and waits for the poller. */
export async function resolveTasks({ pool, upstream }: Cluster): Promise<TaskResolutions> {
  const [attached, voided] = [new Set<Id>(), new Set<Id>()]
  const made = byCreation(await upstream.videoTasks())
  for (const { id } of await listLost(pool)) {
    const name = made.get(id)?.task_id
    if (name !== undefined) await attach(pool, id, name).then(() => attached.add(id))
    else if ((await resolveCall(pool, id, null)) !== undefined) voided.add(id)
  }
  const late = await untilSettled({ pool, upstream })
  const neverEnded = new Map((await openTasks(pool)).map((task) => [task.id, task]))
  await expireTasks({ pool, log: silentLog }, 0)
  return { attached, voided, late, neverEnded }
}

/** The upstream's tasks by the calls that created them. */
export function byCreation(tasks: readonly ShownTask[]): ReadonlyMap<Id, ShownTask> {
  return new Map(tasks.map((task) => [task.request_id_of_create ?? '', task]))
}

export async function attach(pool: pg.Pool, id: Id, name: string): Promise<void> {
  const { rows } = await pool.query<{ id: Id }>("select id from upstreams where slot = 'video' and mode = 'test'")
  const [row] = rows
  if (row === undefined) throw new Error('nobody makes videos')
  await attachTask(pool, { id, upstreamId: row.id, name })
}

async function untilSettled({ pool, upstream }: Pick<Cluster, 'pool' | 'upstream'>): Promise<readonly Id[]> {
  const deadlineMs = performance.now() + SETTLED_WITHIN_MS
  for (;;) {
    const made = byCreation(await upstream.videoTasks())
    const open = await openTasks(pool)
    const isLate = (id: Id) => FINAL.has(made.get(id)?.state ?? '')
    // What was created last may not have ended yet.
    const mayEnd = (id: Id) => (made.get(id)?.created_at_ms ?? 0) > Date.now() - LONGEST_MS
    const late = open.filter(({ id }) => isLate(id))
    if (late.length === 0 && !open.some(({ id }) => mayEnd(id))) return []
    if (performance.now() > deadlineMs) return late.map(({ id }) => id)
    await delay(LOOK_EVERY_MS)
  }
}

/** Longer than any task of the workload takes that ends. */
const LONGEST_MS = 8_000

async function openTasks(pool: pg.Pool): Promise<readonly OpenTask[]> {
  const { rows } = await pool.query<OpenTask>(
    `select id, state, amount as held,
       (select count(*)::integer from claims where call_id = holds.id and scope = 'tasks') as places
     from tasks join holds using (id) where ended_at is null`,
  )
  return rows
}

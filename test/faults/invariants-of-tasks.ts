import type { ShownTask } from '../../sandbox/src/upstreams/video-tasks.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { microseconds } from '../ledger/instants.ts'
import type { ChargeRow, Evidence, TaskRow } from './evidence.ts'
import type { Operation } from './history.ts'
import { byCreation, hasEnded } from './resolve-tasks.ts'
import { dueFor, heldFor, VIDEO_OPERATION, type Video } from './videos.ts'

const AT_ONCE_MOST = 3

/** Whatever was lost on the way, no creation makes two tasks, and the upstream has none that we do not know of. */
export function createdOnce({ upstreamTasks, tasks, operations, idsByMark, charges }: Evidence): string[] {
  const byCall = Map.groupBy(upstreamTasks, ({ request_id_of_create }) => request_id_of_create ?? '')
  const problems = [...byCall].flatMap(([id, made]) => {
    const row = tasks.get(id)
    if (made.length > 1) return [`${id} created ${made.map(({ task_id }) => task_id).join(' and ')}`]
    if (row === undefined) return [`the upstream has ${made[0]?.task_id} by ${id}, which is no task of ours`]
    if (row.upstream_task !== null && row.upstream_task !== made[0]?.task_id)
      return [`${id} is ${made[0]?.task_id} at the upstream, and we take it for ${row.upstream_task}`]
    return []
  })
  for (const { n, mark = '', what, video } of operations) {
    if (video === undefined || what !== 'call') continue
    const made = [...new Set(idsByMark.get(mark))].filter((id) => byCall.has(id))
    if (made.length > 1) problems.push(`operation ${n} was sent once and made ${made.join(' and ')}`)
  }
  for (const { id, operation } of charges.values())
    if (operation === VIDEO_OPERATION && !tasks.has(id)) problems.push(`call ${id} has no task`)
  return problems
}

/** What is settled is as the upstream says, all of it, however little anybody asked for it. */
export function endedAsTold({ upstreamTasks, tasks, charges, resolutions }: Evidence): string[] {
  const { late, neverEnded, voided } = resolutions.tasks
  const made = byCreation(upstreamTasks)
  const problems = late.map((id) => `task ${id} is ${made.get(id)?.state} at the upstream, and nobody has settled it`)
  for (const [id, { state, held, places }] of neverEnded) {
    const upstream = made.get(id)
    if (upstream === undefined || hasEnded(upstream)) problems.push(`task ${id} was ${state} when all had ended`)
    if (held <= 0n || places !== 1) problems.push(`task ${id} went on, holding ${held} and ${places} places`)
  }
  for (const row of tasks.values()) {
    const due = stateDue(made.get(row.id))
    if (row.state !== due) problems.push(`task ${row.id} is ${row.state}, and ${due} by its upstream`)
    if (charges.get(row.id) === undefined) problems.push(`task ${row.id} is ${row.state}, and its call has not ended`)
    if (voided.has(row.id) && made.has(row.id)) problems.push(`task ${row.id} was voided, and its upstream has it`)
  }
  return problems
}

/** What no upstream has was never carried out; what never ended is given up without our learning how. */
function stateDue(made: ShownTask | undefined): string {
  if (made === undefined) return 'FAILED'
  return hasEnded(made) ? made.state : 'UNKNOWN'
}

/** To the second and the resolution that were reported, at most what was held, and the rest is our loss. */
export function madeIsPaid({ upstreamTasks, tasks, charges, entries, videos }: Evidence): string[] {
  const made = byCreation(upstreamTasks)
  const corrected = new Set(entries.map(({ corrects }) => corrects))
  return [...tasks.keys()].flatMap((id) => {
    const [row, video] = [charges.get(id), videos.get(id)]
    if (row === undefined) return []
    if (corrected.has(id)) return [`task ${id} was charged and given back`]
    if (video === undefined) return row.amount > 0n ? [`nobody asked for task ${id}, which is charged`] : []
    return wrongAmount(row, video, made.get(id)).map((what) => `task ${id} (${made.get(id)?.state}) ${what}`)
  })
}

function wrongAmount(
  { held, amount, overrun, outcome }: ChargeRow,
  video: Video,
  made: ShownTask | undefined,
): string[] {
  if (held !== heldFor(video)) return [`held ${held}, and ${heldFor(video)} is the most that it costs`]
  const due = amountDue(video, made)
  const [charged, loss] = due === undefined ? [0n, held] : [due < held ? due : held, due > held ? due - held : 0n]
  if (made?.state === 'FAILED' && outcome !== 'voided') return [`is ${outcome}`]
  return amount === charged && overrun === loss
    ? []
    : [`is charged ${amount} with ${overrun} lost, and ${charged} with ${loss} is due`]
}

/** Undefined where a video was made, or is being made, and nobody knows how much of it. */
function amountDue(video: Video, made: ShownTask | undefined): bigint | undefined {
  if (made === undefined || made.state === 'FAILED') return 0n
  const due = dueFor(video, made.usage)
  return due === undefined && made.state === 'CANCELED' ? 0n : due
}

const RANK: Readonly<Record<string, number>> = { PENDING: 0, RUNNING: 1, SUCCEEDED: 2, FAILED: 2, CANCELED: 2 }
const LAST = 2

/** What callers are told of a task only goes on, ends as its row did, after its charge and with it. Asking costs nothing. */
export function neverGoesBack({ operations, tasks, charges }: Evidence): string[] {
  const about = operations.filter(({ outcome, told }) => outcome === 'ok' && told.taskId !== undefined)
  const problems = [...Map.groupBy(about, ({ told }) => told.taskId ?? '')].flatMap(([id, told]) => [
    ...told.flatMap((one) => wrongWord(one, tasks.get(id), charges.get(id))),
    ...told.flatMap((one) => told.flatMap((other) => (isTakenBack(one, other) ? [takenBack(id, one, other)] : []))),
  ])
  for (const { n, what, told } of operations) {
    if (what !== 'poll' && what !== 'cancel') continue
    if ((told.costNanos ?? 0n) !== 0n || charges.has(told.id ?? ''))
      problems.push(`operation ${n}, which only asks about a task, cost something`)
  }
  return problems

  function wrongWord(
    { n, what, subject, told, endedAtMs }: Operation,
    row: TaskRow | undefined,
    charge: ChargeRow | undefined,
  ) {
    const { taskId: id = '', taskState: state = '', taskCostNanos, id: requestId } = told
    const rank = RANK[state]
    const asked = what === 'poll' || what === 'cancel' ? subject : requestId
    if (id !== asked) return [`operation ${n} was told of ${id}, and is about ${asked}`]
    if (row === undefined) return [`operation ${n} was told of ${id}, which is no task`]
    if (rank === undefined) return [`operation ${n} was told that ${id} is ${state}`]
    if (rank < LAST)
      return taskCostNanos === undefined ? [] : [`operation ${n} was told what ${id} cost before its end`]
    if (taskCostNanos !== charge?.amount)
      return [`operation ${n} was told that ${id} cost ${taskCostNanos}, and the ledger has ${charge?.amount}`]
    if (row.state !== state) return [`operation ${n} was told that ${id} is ${state}, and it is ${row.state}`]
    return charge !== undefined && microseconds(charge.ended_at) < BigInt(endedAtMs + 1) * 1_000n
      ? []
      : [`operation ${n} was told that ${id} is ${state} before it was settled`]
  }

  function isTakenBack(one: Operation, other: Operation): boolean {
    const [before = '', after = ''] = [one.told.taskState, other.told.taskState]
    if (one.endedAtMs >= other.invokedAtMs) return false
    const [from = 0, to = 0] = [RANK[before], RANK[after]]
    return to < from || (from === LAST && before !== after)
  }
}

function takenBack(id: Id, one: Operation, other: Operation): string {
  return `${id} was ${one.told.taskState} (operation ${one.n}) and then ${other.told.taskState} (operation ${other.n})`
}

/** At no instant, by our rows and by the upstream's own times, and nothing is left of those that have ended. That somebody lacked a place is for whole runs to show (sometimes.ts). */
export function placesKept({ samples, upstreamTasks, tasks }: Evidence): string[] {
  const ofKey = Map.groupBy(upstreamTasks, ({ request_id_of_create: id }) => tasks.get(id ?? '')?.credential_id ?? '')
  const tooMany = [...ofKey].flatMap(([key, own]) => {
    const most = mostAtOnce(own)
    return most > AT_ONCE_MOST ? [`the upstream made ${most} tasks of key ${key} at once`] : []
  })
  return [...samples.places, ...tooMany]
}

/** How many were being made at some instant. */
function mostAtOnce(made: readonly ShownTask[]): number {
  const steps = made.flatMap(({ created_at_ms: fromMs, ended_at_ms: toMs }) => [
    { atMs: fromMs, step: 1 },
    { atMs: toMs ?? Number.POSITIVE_INFINITY, step: -1 },
  ])
  let [now, most] = [0, 0]
  // What ends in the millisecond in which another begins has ended before.
  for (const { step } of steps.toSorted((one, other) => one.atMs - other.atMs || one.step - other.step)) {
    now += step
    most = Math.max(most, now)
  }
  return most
}

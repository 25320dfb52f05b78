/** What becomes of a video task: a function of when it was made, what its directives said, and whether it was canceled. */

export const ENDINGS = ['succeeded', 'failed', 'canceled', 'unknown', 'never'] as const
export const USAGE_FORMS = ['new', 'old', 'ratio', 'string', 'broken', 'none'] as const

export type State = 'PENDING' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'CANCELED' | 'UNKNOWN'

export type Course = {
  /** For so long after it was made, polls do not find it. */
  readonly unknownMs: number
  readonly pendingMs: number
  readonly runningMs: number
  readonly startsRunning: boolean
  readonly ends: (typeof ENDINGS)[number]
  readonly failCode: string
  readonly failMessage: string
  /** Instead of what was asked for. */
  readonly videoSeconds?: number
  readonly usageSr?: number
  readonly usageForm: (typeof USAGE_FORMS)[number]
  /** What a task that was canceled is charged for. */
  readonly canceledSeconds?: number
  /** How long the address of the video lives. */
  readonly urlSeconds: number
  /** How many of the first requests about the task go wrong, in the order of these members. */
  readonly poll429: number
  readonly pollFails: number
  readonly pollGarbage: number
  readonly pollHangs: number
  readonly pollCuts: number
  readonly cancelFails: number
  readonly cancelHangs: number
  readonly cancelCuts: number
}

export const USUAL_COURSE: Course = {
  unknownMs: 0,
  pendingMs: 200,
  runningMs: 800,
  startsRunning: false,
  ends: 'succeeded',
  failCode: 'InternalError.Algo',
  failMessage: 'The sandbox could not make this video.',
  usageForm: 'new',
  urlSeconds: 86_400,
  poll429: 0,
  pollFails: 0,
  pollGarbage: 0,
  pollHangs: 0,
  pollCuts: 0,
  cancelFails: 0,
  cancelHangs: 0,
  cancelCuts: 0,
}

/** The vendor knows a task for a day. */
export const TASK_LIFE_MS = 86_400_000

type Timed = { readonly createdAtMs: number; readonly canceledAtMs: number | undefined; readonly course: Course }

const LAST: Readonly<Record<Course['ends'], State>> = {
  succeeded: 'SUCCEEDED',
  failed: 'FAILED',
  canceled: 'CANCELED',
  unknown: 'UNKNOWN',
  never: 'RUNNING',
}

/** What a poll says. */
export function stateAt(task: Timed, nowMs: number): State {
  const ageMs = nowMs - task.createdAtMs
  return ageMs < task.course.unknownMs || ageMs >= TASK_LIFE_MS ? 'UNKNOWN' : truthAt(task, nowMs)
}

/** How it is, whether or not the vendor says so. */
export function truthAt({ createdAtMs, canceledAtMs, course }: Timed, nowMs: number): State {
  const ageMs = nowMs - createdAtMs
  if (canceledAtMs !== undefined) return 'CANCELED'
  if (ageMs < course.pendingMs) return 'PENDING'
  return ageMs < course.pendingMs + course.runningMs ? 'RUNNING' : LAST[course.ends]
}

export function startedAtMs({ createdAtMs, canceledAtMs, course }: Timed, nowMs: number): number | undefined {
  const atMs = createdAtMs + course.pendingMs
  return canceledAtMs === undefined && atMs <= nowMs ? atMs : undefined
}

export function endedAtMs({ createdAtMs, canceledAtMs, course }: Timed, nowMs: number): number | undefined {
  if (canceledAtMs !== undefined) return canceledAtMs
  const atMs = createdAtMs + course.pendingMs + course.runningMs
  return course.ends === 'never' || atMs > nowMs ? undefined : atMs
}

export type RequestFault = 'throttled' | 'fails' | 'garbage' | 'hangs' | 'cut'

/** What goes wrong with the nth poll of a task, counted from 0. */
export function pollFault(course: Course, nth: number): RequestFault | undefined {
  return faultAt(nth, [
    ['throttled', course.poll429],
    ['fails', course.pollFails],
    ['garbage', course.pollGarbage],
    ['hangs', course.pollHangs],
    ['cut', course.pollCuts],
  ])
}

/** What goes wrong with the nth cancel of a task, counted from 0. */
export function cancelFault(course: Course, nth: number): RequestFault | undefined {
  return faultAt(nth, [
    ['fails', course.cancelFails],
    ['hangs', course.cancelHangs],
    ['cut', course.cancelCuts],
  ])
}

function faultAt(nth: number, faults: readonly (readonly [RequestFault, number])[]): RequestFault | undefined {
  let before = 0
  for (const [fault, times] of faults) {
    before += times
    if (nth < before) return fault
  }
  return undefined
}

import { hashOf, Random } from '../random.ts'
import { PAGE_LIMIT, type Page, Ring } from '../ring.ts'
import { LastSecond } from './last-second.ts'
import { endedAtMs, type State, stateAt, truthAt } from './video-course.ts'
import type { VideoTask } from './video-task.ts'
import { chargedSeconds, usageOf } from './video-usage.ts'

/** A task as tests see it. */
export type ShownTask = {
  readonly n: number
  readonly task_id: string
  readonly request_id_of_create: string | null
  readonly model: string
  readonly created_at_ms: number
  /** What a poll would say now. */
  readonly state: State
  readonly ended_at_ms: number | null
  readonly polls: number
  readonly last_poll_at_ms: number | null
  readonly cancels: number
  /** What the vendor charges for, whatever it reports; null while and where it charges nothing. */
  readonly usage_seconds: number | null
  readonly sr: number
  readonly video_count: number
  /** As polls report it. */
  readonly usage: unknown
}

export type ShownPoll = {
  readonly n: number
  readonly at_ms: number
  readonly task_id: string
  /** Beyond the quota, and refused for that. */
  readonly over: boolean
}

const TASKS_LIMIT = 300_000
const KEPT_MS = 25 * 3_600_000
const POLLS_LIMIT = 200_000

/** What the vendor of videos knows: its newest tasks, and who asked for them how often. */
export class VideoTasks {
  readonly #limit: number
  readonly #tasks = new Map<string, VideoTask>()
  #ids = 0
  #made = 0
  readonly #polls = new Ring<ShownPoll>(POLLS_LIMIT)
  #pollCount = 0
  #overCount = 0
  #mostInASecond = 0
  #quota: number | null = null
  #lastSecond = new LastSecond()
  #grantedLastSecond = new LastSecond()

  constructor(limit: number = TASKS_LIMIT) {
    this.#limit = limit
  }

  /** Never the same twice, not even by a sandbox that was started again, since callers may rely on that. */
  nextId(seed: number, nowMs: number): string {
    this.#ids += 1
    const chance = new Random(hashOf(seed, 'task', String(this.#ids), String(nowMs))).hex(12)
    return uuidOf(hex(this.#ids, 8) + hex(nowMs, 12) + chance)
  }

  add(made: Pick<VideoTask, 'id' | 'requestId' | 'job' | 'course' | 'createdAtMs'>): void {
    const unasked = { canceledAtMs: undefined, polls: 0, lastPollAtMs: undefined, cancels: 0 }
    this.#tasks.set(made.id, { n: this.#made, ...made, ...unasked })
    this.#made += 1
    for (const { id, createdAtMs } of this.#tasks.values()) {
      if (this.#tasks.size <= this.#limit && made.createdAtMs - createdAtMs <= KEPT_MS) return
      this.#tasks.delete(id)
    }
  }

  /** All that it would have to know to go on after its death. */
  kept(): readonly VideoTask[] {
    return [...this.#tasks.values()]
  }

  /** Goes on with the tasks of an earlier life: a vendor whose front dies has not forgotten what it makes. */
  goOnWith(tasks: readonly VideoTask[]): void {
    for (const task of tasks) {
      this.#tasks.set(task.id, { ...task })
      this.#made = Math.max(this.#made, task.n + 1)
    }
  }

  get(id: string): VideoTask | undefined {
    return this.#tasks.get(id)
  }

  /** Counts a poll; whether it is beyond the quota. */
  poll(id: string, nowMs: number): boolean {
    const over = this.#quota !== null && this.#grantedLastSecond.count(nowMs) >= this.#quota
    if (!over) this.#grantedLastSecond.add(nowMs)
    this.#mostInASecond = Math.max(this.#mostInASecond, this.#lastSecond.add(nowMs))
    this.#pollCount += 1
    if (over) this.#overCount += 1
    this.#polls.add({ n: this.#polls.next, at_ms: nowMs, task_id: id, over })
    const task = this.#tasks.get(id)
    if (task) {
      task.polls += 1
      task.lastPollAtMs = nowMs
    }
    return over
  }

  /** So many polls are answered in any second; null for as many as come. */
  limitPolls(perSecond: number | null): void {
    this.#quota = perSecond
  }

  summary(nowMs: number) {
    const states: Partial<Record<State, number>> = {}
    for (const task of this.#tasks.values()) {
      const state = stateAt(task, nowMs)
      states[state] = (states[state] ?? 0) + 1
    }
    return {
      tasks_made: this.#made,
      tasks_kept: this.#tasks.size,
      states,
      polls: this.#pollCount,
      most_polls_in_a_second: this.#mostInASecond,
      polls_per_second: this.#quota,
      polls_over: this.#overCount,
    }
  }

  /** In the order in which they were made. */
  list(since: number, nowMs: number): Page<ShownTask> {
    const items: ShownTask[] = []
    const [oldest] = this.#tasks.values()
    const first = oldest?.n ?? this.#made
    let next = Math.min(Math.max(since, first), this.#made)
    for (const task of this.#tasks.values()) {
      if (task.n < next) continue
      if (items.length === PAGE_LIMIT) break
      items.push(shown(task, nowMs))
      next = task.n + 1
    }
    return { items, next, lost: Math.max(0, first - since) }
  }

  polls(since: number): Page<ShownPoll> {
    return this.#polls.read(since)
  }

  /** Forgets everything but the numbers, which go on. */
  clear(): void {
    this.#tasks.clear()
    this.#polls.empty()
    this.#pollCount = 0
    this.#overCount = 0
    this.#mostInASecond = 0
    this.#quota = null
    this.#lastSecond = new LastSecond()
    this.#grantedLastSecond = new LastSecond()
  }
}

function shown(task: VideoTask, nowMs: number): ShownTask {
  const { job } = task
  return {
    n: task.n,
    task_id: task.id,
    request_id_of_create: task.requestId,
    model: job.model,
    created_at_ms: task.createdAtMs,
    state: stateAt(task, nowMs),
    ended_at_ms: endedAtMs(task, nowMs) ?? null,
    polls: task.polls,
    last_poll_at_ms: task.lastPollAtMs ?? null,
    cancels: task.cancels,
    usage_seconds: chargedSeconds(task, truthAt(task, nowMs)) ?? null,
    sr: job.sr,
    video_count: job.count,
    usage: usageOf(task, nowMs) ?? null,
  }
}

function hex(number: number, digits: number): string {
  return number.toString(16).padStart(digits, '0').slice(-digits)
}

export function uuidOf(digits: string): string {
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    digits.slice(12, 16),
    digits.slice(16, 20),
    digits.slice(20, 32),
  ].join('-')
}

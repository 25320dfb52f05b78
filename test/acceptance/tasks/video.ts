import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { VIDEO_MODEL } from '../../../harness/seed.ts'
import { ask, type Told } from '../installation.ts'

/** Tasks as their callers see them. */
const BASE = '/apis/v1/services/aigc'
export const CREATE = `${BASE}/video-generation/video-synthesis`
export const LIST = `${BASE}/video-generation/tasks`
export const ASYNC = { 'x-farebox-async': 'enable' }

type Wanted = {
  readonly words?: string
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly headers?: Readonly<Record<string, string>>
}

export function bodyOf({ words = '', parameters }: Wanted) {
  return { model: VIDEO_MODEL, input: { prompt: `a fox in the snow ${words}` }, ...(parameters && { parameters }) }
}

export function createTask(url: string, secret: string, wanted: Wanted = {}): Promise<Told> {
  return ask(url, secret, CREATE, { headers: { ...ASYNC, ...wanted.headers }, body: bodyOf(wanted) })
}

/** The id of a task that was created. */
export async function created(url: string, secret: string, wanted: Wanted = {}): Promise<string> {
  const told = await createTask(url, secret, wanted)
  assert.equal(told.status, 200, told.text)
  return String(outputOf(told).task_id)
}

export function outputOf({ json }: Told): Record<string, unknown> {
  return Object(json.output)
}

export function poll(url: string, secret: string, id: string): Promise<Told> {
  return ask(url, secret, `${BASE}/tasks/${id}`)
}

export function cancel(url: string, secret: string, id: string): Promise<Told> {
  return ask(url, secret, `${BASE}/tasks/${id}/cancel`, { method: 'POST' })
}

const EVERY_MS = 600
const LONGEST_MS = 90_000

/** Polls until the task has this state. */
export async function untilState(url: string, secret: string, id: string, state: string): Promise<Told> {
  const deadlineMs = performance.now() + LONGEST_MS
  for (;;) {
    const told = await poll(url, secret, id)
    if (outputOf(told).task_status === state) return told
    assert.ok(performance.now() < deadlineMs, `the task is not ${state} but ${told.text}`)
    await delay(EVERY_MS)
  }
}

/** What PostgreSQL has of a task, by its row and by its call. */
export async function stored(pool: pg.Pool, id: string) {
  const { rows } = await pool.query(
    `select tasks.state, tasks.next_poll_at is not null as is_asked_for, holds.amount as held,
       holds.unsettled_at is not null as is_unsettled, holds.owner_id is not null as is_owned,
       charges.outcome, charges.amount as charged, charges.overrun,
       (select count(*)::integer from claims where call_id = tasks.id and scope = 'tasks') as slots
     from tasks left join holds using (id) left join charges using (id) where tasks.id = $1`,
    [id],
  )
  return rows[0]
}

/** Waits until its row has this state, without a poll of anybody's. */
export async function untilStored(pool: pg.Pool, id: string, state: string) {
  const deadlineMs = performance.now() + LONGEST_MS
  for (;;) {
    const row = await stored(pool, id)
    if (row?.state === state) return row
    assert.ok(performance.now() < deadlineMs, `the task is not ${state} but ${JSON.stringify(row?.state)}`)
    await delay(50)
  }
}

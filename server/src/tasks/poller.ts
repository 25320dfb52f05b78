import type pg from 'pg'
import { z } from 'zod'
import type { Calls } from '../calls/calls.ts'
import type { Records } from '../gateway/records.ts'
import { credentialFor } from '../gateway/send.ts'
import type { ReportedTask, TaskKind } from '../gateway/task-kind.ts'
import type { Overrun } from '../gateway/tell-loss.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, ZERO } from '../kernel/money.ts'
import type { Seal } from '../kernel/seal.ts'
import type { Log } from '../telemetry/log.ts'
import type { Binding, Bindings } from '../upstreams/bindings.ts'
import type { Transport } from '../upstreams/transport.ts'
import { type FinalReport, settlingOf } from './settle.ts'
import { timesOf } from './times.ts'

/** Asks upstreams for tasks until they have ended. Any number of processes may; a task is settled once whoever asks. */
export type Poller = {
  /** Asks for those that are due, and waits for none of them. How many it took on. */
  readonly tick: () => Promise<number>
  /** How long to wait before the next. */
  readonly pauseMs: () => number
  /** Waits until what it asked has been answered and written. */
  readonly idle: () => Promise<void>
}

type Parts = {
  readonly pool: pg.Pool
  readonly calls: Pick<Calls, 'endTask'>
  readonly bindings: Bindings
  readonly transport: Pick<Transport, 'send'>
  readonly kind: TaskKind
  readonly seal: Seal
  readonly records: Pick<Records, 'add'>
  readonly clock: Clock
  readonly log: Log
  /** Somebody has to hear of it: the upstream used more than was held. */
  readonly overran: (overrun: Overrun) => void
  /** Counts what questions were answered with. */
  readonly polled: (what: { readonly slot: string; readonly told: string }) => void
}

/** Often enough to use all of an upstream's pace. */
const PAUSE_MS = 100
/**
 * While tasks can be asked for, somebody takes one more often than this. Who has taken none for so long has none to take, or
 * leaves them to others, and need not look as often.
 */
const QUIET_AFTER_MS = 15_000
const QUIET_PAUSE_MS = 500
/** How many are asked for at once by one process. */
const AT_ONCE = 128
/** Nobody else asks for a task while this lasts; who dies meanwhile is replaced after it. */
const LEASE_SECONDS = 6
const DEADLINES = { connectMs: 2_000, headersMs: 4_000, idleMs: 4_000, totalMs: 4_000 }
const BODY_BYTES = 1_048_576
const EVERY_SECONDS = { least: 3, most: 5 }
/** After a question that was not answered, or by somebody who does not know the task. */
const AFTER_FAILURE_SECONDS = { least: 5, most: 10 }
/** Tasks end in 20 to 90 seconds as a rule. */
export const YOUNG_SECONDS = 120
/** So long a batch of those that go on collects. */
const COLLECT_MS = 20

const claimed = z.object({
  id: z.string(),
  account_id: z.string(),
  upstream_id: z.string(),
  slot: z.string(),
  mode: z.enum(['live', 'test']),
  upstream_task: z.string(),
  state: z.enum(['PENDING', 'RUNNING']),
  created_at: z.date(),
})

const allClaimed = z.array(claimed)

type Claimed = z.output<typeof claimed>
type Going = {
  readonly id: Id
  /** UNKNOWN is what an upstream says that does not know it any more, UNANSWERED that nothing was heard. */
  readonly state: 'PENDING' | 'RUNNING' | 'UNKNOWN' | 'UNANSWERED'
  readonly seconds: number
  /** When it began to run, where the upstream tells. */
  readonly scheduledSeconds: number | undefined
}

export function createPoller(parts: Parts): Poller {
  const { pool, calls, bindings, transport, kind, seal, records, clock, log, overran, polled } = parts
  const asked = new Set<Promise<void>>()
  let tookAtMs = clock.monotonicMs()
  let going: Going[] = []
  let writing: Promise<void> | undefined

  async function tick(): Promise<number> {
    const room = AT_ONCE - asked.size
    if (room <= 0) return 0
    const { rows } = await pool.query(
      'select id, account_id, upstream_id, slot, mode, upstream_task, state, created_at from claim_tasks(most => $1, lease_seconds => $2)',
      [room, LEASE_SECONDS],
    )
    if (rows.length > 0) tookAtMs = clock.monotonicMs()
    for (const task of allClaimed.parse(rows)) {
      const work = look(task)
        // Whatever went wrong, it is asked for again when its lease has ended.
        .catch((error: unknown) => log.warn('a task was not looked after', { request_id: task.id, error }))
        .finally(() => asked.delete(work))
      asked.add(work)
    }
    return rows.length
  }

  async function look(task: Claimed): Promise<void> {
    const upstream = await bindings.findOne(task.slot, task.mode, task.upstream_id)
    const report = upstream === undefined ? undefined : await question(upstream, task)
    polled({ slot: task.slot, told: report?.state ?? 'nothing' })
    if (report === undefined) return goOn(task, 'UNANSWERED', AFTER_FAILURE_SECONDS)
    if (report.state === 'UNKNOWN') return goOn(task, 'UNKNOWN', AFTER_FAILURE_SECONDS)
    if (report.state === 'PENDING' || report.state === 'RUNNING') {
      // What has been running does not wait again, whatever is said late.
      const state = task.state === 'RUNNING' ? 'RUNNING' : report.state
      return goOn(task, state, EVERY_SECONDS, timesOf(report.times, task.created_at.getTime()).scheduledSeconds)
    }
    if (upstream !== undefined) await settle(upstream, task, report)
  }

  /** Undefined where there was no answer, or none about this task. */
  async function question(upstream: Binding, { id, upstream_task: name }: Claimed): Promise<ReportedTask | undefined> {
    const headers = {
      accept: 'application/json',
      'x-request-id': id,
      ...credentialFor(upstream, kind.credentialHeader),
    }
    const request = { upstream, method: 'GET' as const, target: kind.taskTarget(name), headers, body: null }
    try {
      const { status, body } = await transport.send({ ...request, maxBodyBytes: BODY_BYTES, deadlines: DEADLINES })
      return status === 200 ? kind.reportIn(JSON.parse(body.toString('utf8')), name) : undefined
    } catch {
      // The transport counts its failures.
      return undefined
    }
  }

  async function settle(upstream: Binding, task: Claimed, report: FinalReport): Promise<void> {
    const { id, account_id: accountId, slot, mode, created_at } = task
    const { rows } = await pool.query('select terms, operation, model from holds join tasks using (id) where id = $1', [
      id,
    ])
    const [hold] = z.array(z.object({ terms: z.string(), operation: z.string(), model: z.string() })).parse(rows)
    // Another has settled it.
    if (hold === undefined) return
    const { ending, detail } = settlingOf({ id, accountId, slot, mode, created_at, ...hold }, report, seal)
    const { overrun, charged, endedNow, free } = await calls.endTask(ending)
    if (!endedNow) return
    records.add(id, { ...detail, balance_after: formatUsd(free) })
    const isFailed = report.state === 'FAILED'
    if (isFailed ? log.calls.tellsFailures : log.calls.tellsAll) {
      const line = {
        request_id: id,
        account_id: accountId,
        operation: hold.operation,
        model: hold.model,
        upstream: upstream.name,
        // Polls tell how it ended, and always with success.
        status: 200,
        duration_ms: Math.max(0, clock.nowMs() - created_at.getTime()),
        cost_usd: formatUsd(charged),
      }
      if (isFailed) log.calls.failed({ ...line, reason: 'task_failed' }, undefined)
      else log.calls.ended(line)
    }
    if (overrun > ZERO) overran({ id, operation: hold.operation, amount: overrun, loss: ending.loss })
  }

  /** It is asked for again after a while; many are written at once. */
  function goOn(
    { id }: Claimed,
    state: Going['state'],
    { least, most }: typeof EVERY_SECONDS,
    scheduledSeconds?: number,
  ): Promise<void> {
    going.push({ id, state, seconds: least + Math.random() * (most - least), scheduledSeconds })
    writing ??= write().finally(() => {
      writing = undefined
    })
    return writing
  }

  async function write(): Promise<void> {
    await clock.sleep(COLLECT_MS)
    while (going.length > 0) {
      const batch = going
      going = []
      await pool.query(
        'select reschedule_tasks_at(task_ids => $1, states => $2, waits => $3, scheduled_seconds => $4, young_seconds => $5)',
        [
          batch.map(({ id }) => id),
          batch.map(({ state }) => state),
          batch.map(({ seconds }) => seconds),
          batch.map(({ scheduledSeconds }) => scheduledSeconds ?? null),
          YOUNG_SECONDS,
        ],
      )
    }
  }

  return {
    tick,
    pauseMs: () => (clock.monotonicMs() - tookAtMs < QUIET_AFTER_MS ? PAUSE_MS : QUIET_PAUSE_MS),
    async idle() {
      while (asked.size > 0) await Promise.all(asked)
    },
  }
}

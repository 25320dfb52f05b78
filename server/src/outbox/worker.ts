import type pg from 'pg'
import { type Clock, within } from '../kernel/clock.ts'
import type { Seal } from '../kernel/seal.ts'
import { readPayload } from '../storage/outbox.ts'
import type { Log } from '../telemetry/log.ts'
import { backoffMs, RETRIES } from './backoff.ts'
import { type Deliverer, type Deliverers, DeliveryFailure } from './deliverer.ts'
import { bury, type Lane, lanesBehind, markDelivered, postpone, type Room, type Taken, takeUp } from './messages.ts'

/** Delivers messages of the outbox. Any number of processes may: a message is with one at a time, unless its lease ends. */
export type OutboxWorker = {
  /** Takes up what is due, and waits for none of it. How many it took on. */
  readonly tick: () => Promise<number>
  /** How long to wait before the next. */
  readonly pauseMs: () => number
  /** Waits for what is under way, and gives it up at the deadline: it is tried again. */
  readonly stop: (deadlineMs: number) => Promise<void>
}

export type DeliveryOutcome = 'delivered' | 'failed' | 'died'

type Parts = {
  readonly pool: pg.Pool
  readonly deliverers: Deliverers
  /** Null without a master key: then no message was sealed that could be opened. */
  readonly seal: Seal | null
  readonly clock: Clock
  readonly log: Log
  readonly delivered: (what: { readonly kind: string; readonly outcome: DeliveryOutcome }) => void
  readonly random?: () => number
}

const PAUSE_MS = 100
/** Who has taken nothing for so long need not look as often. */
const QUIET_AFTER_MS = 15_000
const QUIET_PAUSE_MS = 500
/** How many one process is at. */
const AT_ONCE = 128
const AT_ONCE_EACH = 8
/** How many receivers one look goes through; the next goes on behind them. */
const LANES_AT_ONCE = 500
const TIMEOUT_MS = 20_000
/** Between the end of an attempt and that of its lease, for what became of it to be written. */
const LEASE_MARGIN_MS = 10_000
const GIVEN_UP_WITHIN_MS = 1_000
const FAILURE_LIMIT = 500

export function createOutboxWorker(parts: Parts): OutboxWorker {
  const { pool, deliverers, seal, clock, log, delivered, random = Math.random } = parts
  const running = new Set<Promise<void>>()
  const runningInLane = new Map<string, number>()
  const stopping = new AbortController()
  let behind = ''
  let tookAtMs = clock.monotonicMs()

  async function tick(): Promise<number> {
    const room = AT_ONCE - running.size
    if (room <= 0 || deliverers.size === 0) return 0
    const lanes = await lanesBehind(pool, behind, LANES_AT_ONCE)
    const rooms = lanes.flatMap((lane) => roomIn(lane) ?? [])
    const messages = rooms.length === 0 ? [] : await takeUp(pool, rooms, room)
    for (const message of messages) begin(message)
    if (messages.length > 0) tookAtMs = clock.monotonicMs()
    // Where there was no room for all, those behind the last one have their turn; after the last lane comes the first.
    const isCut = messages.length === room
    behind = (isCut ? lastOf(lanes, messages) : lanes.length < LANES_AT_ONCE ? '' : lanes.at(-1)?.lane) ?? ''
    return messages.length
  }

  function roomIn({ lane, kind }: Lane): Room | undefined {
    const deliverer = deliverers.get(kind)
    if (deliverer === undefined) return undefined
    const most = (deliverer.atOnce ?? AT_ONCE_EACH) - (runningInLane.get(lane) ?? 0)
    return most <= 0 ? undefined : { lane, most, leaseSeconds: (timeoutOf(deliverer) + LEASE_MARGIN_MS) / 1_000 }
  }

  function begin(message: Taken): void {
    const { id, kind, lane } = message
    const deliverer = deliverers.get(kind)
    if (deliverer === undefined) return
    runningInLane.set(lane, (runningInLane.get(lane) ?? 0) + 1)
    const work = handle(message, deliverer)
      // What could not be written is taken up again when the lease has ended.
      .catch((error: unknown) => log.warn('what became of a message was not written', { request_id: id, error }))
      .finally(() => {
        running.delete(work)
        const left = (runningInLane.get(lane) ?? 1) - 1
        if (left === 0) runningInLane.delete(lane)
        else runningInLane.set(lane, left)
      })
    running.add(work)
  }

  async function handle(message: Taken, deliverer: Deliverer): Promise<void> {
    const { id, kind, attempts } = message
    const retries = { ...RETRIES, ...deliverer.retries }
    // Those who took it up before did not live to say what became of it.
    const failure =
      attempts > retries.attempts
        ? new DeliveryFailure('its worker ended in the middle of every attempt', { isFinal: true })
        : await attempt(message, deliverer)
    if (failure === undefined) {
      await markDelivered(pool, id)
      delivered({ kind, outcome: 'delivered' })
      return
    }
    const failed = { id, attempts, failure: failure.message.slice(0, FAILURE_LIMIT) }
    const isOver = failure.isFinal || attempts >= retries.attempts
    if (isOver) {
      await bury(pool, failed)
      log.error('a message could not be delivered: see farebox outbox', {
        ...{ request_id: id, topic: kind, count: attempts, error: failure },
      })
    } else await postpone(pool, failed, backoffMs(attempts, retries, random))
    delivered({ kind, outcome: isOver ? 'died' : 'failed' })
  }

  /** Undefined where it was delivered. */
  async function attempt(message: Taken, deliverer: Deliverer): Promise<DeliveryFailure | undefined> {
    const late = new AbortController()
    const { id, destination, attempts, created_at: createdAt } = message
    try {
      const payload = readPayload(message, seal)
      const signal = AbortSignal.any([late.signal, stopping.signal])
      const work = deliverer.deliver({ id, destination, payload, attempts, createdAt, signal })
      if (await within(clock, work, timeoutOf(deliverer))) return undefined
      late.abort()
      return new DeliveryFailure(`not delivered within ${timeoutOf(deliverer)} ms`)
    } catch (error) {
      if (error instanceof DeliveryFailure) return error
      // Other errors can hold anything, so that only what they are called is kept.
      return new DeliveryFailure(error instanceof Error ? error.name : 'unknown error', { cause: error })
    }
  }

  return {
    tick,
    pauseMs: () => (clock.monotonicMs() - tookAtMs < QUIET_AFTER_MS ? PAUSE_MS : QUIET_PAUSE_MS),
    async stop(deadlineMs) {
      if (await within(clock, Promise.all(running), deadlineMs)) return
      stopping.abort()
      await within(clock, Promise.all(running), GIVEN_UP_WITHIN_MS)
    },
  }
}

/** The last lane in their order of which a message was taken up: messages come in none. */
function lastOf(lanes: readonly Lane[], messages: readonly Taken[]): string | undefined {
  const taken = new Set(messages.map(({ lane }) => lane))
  return lanes.findLast(({ lane }) => taken.has(lane))?.lane
}

function timeoutOf({ timeoutMs = TIMEOUT_MS }: Deliverer): number {
  return timeoutMs
}

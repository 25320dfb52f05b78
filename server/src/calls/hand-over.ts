import { type Clock, within } from '../kernel/clock.ts'
import type { Id } from '../kernel/ids.ts'
import type { Log } from '../telemetry/log.ts'
import type { HandOver } from './call.ts'
import { Unanswered } from './money-query.ts'
import type { OpenCalls } from './open-calls.ts'
import { type Query, Row, type Statement } from './query.ts'
import { unsettleStatement } from './unsettle.ts'

type Parts = {
  readonly query: Query
  readonly ownerId: Id
  readonly clock: Clock
  readonly log: Log
  readonly open: OpenCalls
  /** What is written without its caller, by call: whoever waits for everything that is to be written waits for these. */
  readonly background: Map<Id, Promise<void>>
  /** For how long a caller waits until its call is no longer ours. */
  readonly patienceMs: number
}

const RETRY_MS = 500
/** Nothing is made sooner. */
const FIRST_POLL_SECONDS = 2

/** How a process gives calls away that it began: to their task, or to whoever finds out what became of them. */
export function createHandOver(parts: Parts) {
  const { query, ownerId, clock, log, open, background, patienceMs } = parts
  const untilAnswered = createPatientQuery({ query, clock })

  async function handOver({ id, upstream, name, state }: HandOver): Promise<boolean> {
    const statement = {
      name: 'hand_over_task',
      text: 'select hand_over_task(task => $1, upstream => $2, slot_in => $3, mode_in => $4, name => $5, state_in => $6, first_poll_seconds => $7)',
      values: [id, upstream.id, upstream.slot, upstream.mode, name, state, FIRST_POLL_SECONDS],
    }
    // By these an operator can say later who has it.
    const found = { request_id: id, upstream: upstream.name, upstream_id: upstream.id, upstream_task: name }
    let isDone = false
    const inTime = await letGo(id, async () => {
      const [row] = await untilAnswered(statement)
      const outcome = new Row(row).text(0)
      isDone = outcome === 'done'
      if (isDone) return
      log.error('a task runs at its upstream and can not be looked after', { ...found, reason: outcome })
      if (outcome !== 'ended') await untilAnswered(unsettleStatement([id], ownerId))
    })
    if (!inTime) log.error('a task runs at its upstream, which could not be written down yet', found)
    return isDone
  }

  async function leaveUnsettled(id: Id): Promise<void> {
    log.error('a task may run at its upstream, and nobody knows: it is unsettled', { request_id: id })
    await letGo(id, () => untilAnswered(unsettleStatement([id], ownerId)))
  }

  /** Waits until a call is no longer ours, but no longer than an end may take; the rest is done without its caller. */
  async function letGo(id: Id, write: () => Promise<unknown>): Promise<boolean> {
    const work = write()
      .then(() => {})
      .catch((error: unknown) => log.error('a task could not be recorded', { request_id: id, error }))
      .finally(() => {
        // Where it failed for good, the call is disowned when it is next compared with what we know of.
        open.delete(id)
        background.delete(id)
      })
    // A flush waits for this too.
    background.set(id, work)
    return within(clock, work, patienceMs)
  }

  return { handOver, leaveUnsettled }
}

/** Asks again until PostgreSQL answers: for what may be done twice, and has to be done. */
export function createPatientQuery({ query, clock }: Pick<Parts, 'query' | 'clock'>): Query {
  return untilAnswered

  async function untilAnswered(statement: Statement): Promise<readonly (readonly unknown[])[]> {
    for (;;) {
      try {
        return await query(statement)
      } catch (error) {
        if (!(error instanceof Unanswered)) throw error
        await clock.sleep(RETRY_MS)
      }
    }
  }
}

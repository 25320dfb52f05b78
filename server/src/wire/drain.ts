import net from 'node:net'
import { setImmediate as afterReading } from 'node:timers/promises'
import type { Clock } from '../kernel/clock.ts'
import type { Connections } from './connections.ts'
import type { Turns } from './turns.ts'

export type DrainOptions = {
  /** How long load balancers get to notice that we are unready, before new connections are refused. */
  readonly pauseMs?: number
  /** After this, the pause included, what still runs is cut; without it, nothing is. */
  readonly deadlineMs?: number
  /** How long a silent connection stays open, since a request may be on its way on it. */
  readonly idleGraceMs?: number
}

export type Drained = { readonly cutRequests: number }

type Parts = {
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>
  readonly server: net.Server
  readonly connections: Connections
  readonly turns: Turns
}

const DEFAULT_IDLE_GRACE_MS = 1_000
const LOOK_EVERY_MS = 25

/** Stops without failing a request that was accepted: nothing new comes in, what runs is answered, then all is closed. */
export async function drainServer(
  { clock, server, connections, turns }: Parts,
  { pauseMs = 0, deadlineMs = Number.POSITIVE_INFINITY, idleGraceMs = DEFAULT_IDLE_GRACE_MS }: DrainOptions = {},
): Promise<Drained> {
  const startedMs = clock.monotonicMs()
  if (pauseMs > 0) await clock.sleep(pauseMs)
  // Closing as an HTTP server would also cut idle connections at once, and stop watching over slow ones.
  net.Server.prototype.close.call(server)
  turns.closeAll()
  const closedMs = clock.monotonicMs()
  while (connections.count() > 0 && clock.monotonicMs() - startedMs < deadlineMs) {
    // A process that was kept from running finds timers due before it reads: a request may lie in a connection that seems idle.
    await afterReading()
    if (clock.monotonicMs() - closedMs >= idleGraceMs) connections.closeIdleFor(idleGraceMs)
    await clock.sleep(LOOK_EVERY_MS)
  }
  return { cutRequests: connections.closeAll() }
}

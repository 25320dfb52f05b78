import type { Clock } from '../kernel/clock.ts'
import type { Fault } from '../kernel/fault.ts'
import type { Log, LogFields } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { UpstreamFailure } from '../upstreams/failure.ts'
import type { Exchange } from './exchange.ts'
import { withoutCredential } from './without-credential.ts'

export type Traffic = ReturnType<typeof createTraffic>

type Parts = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly log: Pick<Log, 'error' | 'warn' | 'calls'>
  readonly metrics: Pick<Metrics, 'requests' | 'requestSeconds' | 'requestsOpen' | 'faults'>
}

/** By the route's pattern, and whether it was a call that had begun. */
type About = { readonly route?: string | undefined; readonly isBegun?: boolean }
type Count = { readonly inc: () => void }
type Times = { readonly observe: (seconds: number) => void }

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const LINES_PER_SECOND = 50

/**
 * What is measured and logged about requests. A line is written for a failure of ours alone, and never with a URL or a
 * header in it; everything else is counted.
 */
export function createTraffic({ clock, log, metrics }: Parts) {
  // Looking a metric up by its labels costs more than counting; there are only so many of them.
  const counts = new Map<string, Count>()
  const times = new Map<string, Times>()
  const mayWrite = createLineBudget(clock)

  function ended({ family: { name }, request, response, startedMs }: Exchange): void {
    metrics.requestsOpen.dec()
    const method = METHODS.has(request.method ?? '') ? (request.method ?? '') : 'other'
    const status = response.headersSent ? String(response.statusCode) : 'aborted'
    entry(counts, `${name} ${method} ${status}`, () => metrics.requests.labels(name, method, status)).inc()
    const seconds = (clock.monotonicMs() - startedMs) / 1_000
    entry(times, name, () => metrics.requestSeconds.labels(name)).observe(seconds)
  }

  function refused(fault: Fault, exchange?: Exchange, { route, isBegun = false }: About = {}): void {
    const { code, status } = fault
    metrics.faults.inc({ code })
    // Of a call that had begun, its own line says how its upstream has failed.
    const isTold = isBegun && log.calls.tellsFailures && fault.cause instanceof UpstreamFailure
    if (status < 500 || isTold || !mayWrite()) return
    log[code === 'internal_error' ? 'error' : 'warn']('request failed', {
      code,
      status,
      ...(exchange && { request_id: exchange.id, method: exchange.request.method ?? '' }),
      ...(route !== undefined && { route }),
      ...(fault.cause instanceof UpstreamFailure && factsOf(fault.cause)),
      ...(fault.cause !== undefined && { error: withoutCredential(fault.cause, exchange?.request.headers ?? {}) }),
    })
  }

  const overloaded = metrics.faults.labels('overloaded')
  return {
    began: () => metrics.requestsOpen.inc(),
    ended,
    refused,
    /** Counted only: whoever sheds says once that it does. */
    shed: () => overloaded.inc(),
  }
}

/** Which upstream, what happened, and after how long: what an operator asks first. */
function factsOf({ upstream, reason, afterMs }: UpstreamFailure): LogFields {
  return { upstream, reason, duration_ms: Math.round(afterMs) }
}

function entry<T>(map: Map<string, T>, key: string, make: () => T): T {
  const found = map.get(key)
  if (found !== undefined) return found
  const made = make()
  map.set(key, made)
  return made
}

/** When everything fails at once, the counters tell how often; the log only has to tell why. */
function createLineBudget(clock: Pick<Clock, 'monotonicMs'>): () => boolean {
  let second = 0
  let written = 0
  return () => {
    const now = Math.floor(clock.monotonicMs() / 1_000)
    if (now !== second) {
      second = now
      written = 0
    }
    written += 1
    return written <= LINES_PER_SECOND
  }
}

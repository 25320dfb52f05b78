import type { Clock } from '../kernel/clock.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Binding } from '../upstreams/bindings.ts'

/** An answer that says that we asked wrongly: with a credential, a path or a model's name that the upstream does not take. */
export type Refused = {
  readonly binding: Pick<Binding, 'id' | 'name' | 'slot' | 'baseUrl'>
  readonly status: number
  /** As it is configured, without what callers have put into it. */
  readonly target: string
}

export type TellRefused = (refused: Refused) => void

const STATUSES: ReadonlySet<number> = new Set([401, 402, 403, 404, 405])
const AGAIN_MS = 60_000
const KEPT_MOST = 1_000

type Parts = {
  readonly log: Pick<Log, 'warn'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly metrics: Pick<Metrics, 'upstreamRefusals'>
}

/**
 * Tells the operator, who alone can mend it, also where another upstream has answered the call: each is counted, and one a minute for each
 * upstream, status and path is a line of the log.
 */
export function createTellRefused({ log, clock, metrics }: Parts): TellRefused {
  const toldAtMs = new Map<string, number>()
  return ({ binding: { id, name, slot, baseUrl }, status, target }) => {
    if (!STATUSES.has(status)) return
    metrics.upstreamRefusals.inc({ upstream: name, status: String(status) })
    const path = (URL.parse(baseUrl)?.pathname.replace(/\/$/, '') ?? '') + (target.split('?')[0] ?? '')
    const what = `${id} ${status} ${path}`
    const nowMs = clock.monotonicMs()
    const beforeMs = toldAtMs.get(what)
    if (beforeMs !== undefined && nowMs - beforeMs < AGAIN_MS) return
    if (toldAtMs.size >= KEPT_MOST) toldAtMs.clear()
    toldAtMs.set(what, nowMs)
    log.warn(WORDS[status === 404 || status === 405 ? 'path' : 'account'], {
      ...{ upstream: name, upstream_id: id, slot, status, path },
    })
  }
}

const WORDS = {
  path: 'an upstream does not know the path or the model that it was asked for: see farebox upstreams list',
  account: 'an upstream refuses our credential or our account with it',
} as const

import {
  type CircuitBreakerPolicy,
  CircuitState,
  ConsecutiveBreaker,
  circuitBreaker,
  handleWhen,
  type IBackoffFactory,
  type IHalfOpenAfterBackoffContext,
} from 'cockatiel'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../kernel/clock.ts'
import { type FailureReason, UpstreamFailure } from './failure.ts'

/** One breaker an upstream: while it is open, the upstream is not asked. */
export type Breakers = {
  /** Does the work, or fails as not sent, with the time after which it is worth asking again. */
  readonly run: <T>(upstreamId: string, work: () => Promise<T>) => Promise<T>
}

type State = 'closed' | 'half_open' | 'open'

export type BreakerMetrics = {
  /** 0 closed, 1 trying, 2 open. */
  readonly upstreamBreakers: {
    set(labels: { readonly upstream: string }, value: number): void
    remove(labels: { readonly upstream: string }): void
  }
}

type Parts = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly metrics: BreakerMetrics
  readonly maxUpstreams?: number
}

/** So many failures in a row, over all calls of this process to the upstream, open its breaker. */
export const FAILURES_IN_A_ROW = 10
/** Then it stays open, and twice as long after each trial that fails. */
export const OPEN_FIRST_MS = 1_000
export const OPEN_MOST_MS = 30_000

const MAX_UPSTREAMS = 4_096
const LEVELS: Readonly<Record<State, number>> = { closed: 0, half_open: 1, open: 2 }

/**
 * What an upstream is to blame for. An answer that is well formed is not, whatever its status; nor one that is larger than
 * we take, nor what we give up, or refuse ourselves.
 */
const COUNTED: ReadonlySet<FailureReason> = new Set([
  'connect',
  'dns',
  'tls',
  'headers_timeout',
  'idle_timeout',
  'total_timeout',
  'reset',
  'protocol',
])

export function createBreakers({ clock, metrics, maxUpstreams = MAX_UPSTREAMS }: Parts): Breakers {
  const breakers = new LRUCache<string, Breaker>({
    max: maxUpstreams,
    dispose: (_, upstream) => metrics.upstreamBreakers.remove({ upstream }),
  })

  function breakerOf(upstream: string): Breaker {
    const known = breakers.get(upstream)
    if (known !== undefined) return known
    const show = (state: State) => metrics.upstreamBreakers.set({ upstream }, LEVELS[state])
    const made = createBreaker(upstream, clock, show)
    breakers.set(upstream, made)
    return made
  }

  return { run: (upstreamId, work) => breakerOf(upstreamId)(work) }
}

type Waits = IBackoffFactory<IHalfOpenAfterBackoffContext>
type Breaker = <T>(work: () => Promise<T>) => Promise<T>

function createBreaker(upstreamId: string, clock: Parts['clock'], show: (state: State) => void): Breaker {
  let openUntilMs = 0
  const waits: Waits = {
    next({ attempt }) {
      openUntilMs = clock.monotonicMs() + Math.min(OPEN_FIRST_MS * 2 ** (attempt - 1), OPEN_MOST_MS)
      // cockatiel would wait by the wall clock, which can step back by an hour; so the waiting is done below.
      return { duration: Number.NEGATIVE_INFINITY, next: waits.next }
    },
  }
  const policy: CircuitBreakerPolicy = circuitBreaker(
    handleWhen((error) => isCounted(error, policy.state === CircuitState.HalfOpen)),
    {
      breaker: new ConsecutiveBreaker(FAILURES_IN_A_ROW),
      halfOpenAfter: waits,
    },
  )
  policy.onStateChange((state) => show(nameOf(state)))
  show('closed')

  return async (work) => {
    const waitMs = policy.state === CircuitState.Closed ? 0 : openUntilMs - clock.monotonicMs()
    // One call tries. cockatiel would let the others wait for what becomes of it, without a bound.
    if (waitMs > 0 || policy.state === CircuitState.HalfOpen) throw refusal(upstreamId, waitMs)
    return policy.execute(work)
  }
}

function refusal(upstreamId: string, waitMs: number): UpstreamFailure {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1_000))
  return new UpstreamFailure(upstreamId, { reason: 'breaker', certainty: 'not_sent', retryAfterSeconds })
}

function isCounted(error: unknown, isTrial: boolean): boolean {
  if (!(error instanceof UpstreamFailure)) return false
  // What we would not have sent says nothing; a trial that was given up proves nothing, so it must not close the breaker.
  if (error.reason === 'protocol' && error.certainty === 'not_sent') return isTrial
  return COUNTED.has(error.reason) || (isTrial && error.reason !== 'too_large')
}

function nameOf(state: CircuitState): State {
  if (state === CircuitState.Closed) return 'closed'
  return state === CircuitState.HalfOpen ? 'half_open' : 'open'
}

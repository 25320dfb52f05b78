import { LRUCache } from 'lru-cache'
import type { Clock } from '../kernel/clock.ts'
import type { Log } from '../telemetry/log.ts'
import { type FailureReason, UpstreamFailure } from './failure.ts'

/** One breaker an upstream: while it is open, the upstream is not asked. */
export type Breakers = {
  /** Does the work, or fails as not sent, with the time after which it is worth asking again. */
  readonly run: <T>(upstream: Guarded, work: () => Promise<T>) => Promise<T>
  /** The upstreams that this process has asked. */
  readonly all: () => readonly AskedUpstream[]
}

export const BREAKER_STATES = ['closed', 'half_open', 'open'] as const
type State = (typeof BREAKER_STATES)[number]

/** An upstream, with its slot and what operators know it by; its id where they are left out. */
export type Guarded = { readonly id: string; readonly slot?: string; readonly name?: string }

export type AskedUpstream = {
  readonly id: string
  readonly slot: string
  readonly state: State
  /** For how long it has been closed, or not; null where it was closed from the start. */
  readonly changedMsAgo: number | null
}

export type BreakerMetrics = {
  /** 0 closed, 1 trying, 2 open. */
  readonly upstreamBreakers: {
    set(labels: Labels, value: number): void
    remove(labels: Labels): void
  }
}

/** Two can have one name, such as two accounts with one provider. */
type Labels = { readonly upstream: string; readonly id: string }

type Parts = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly metrics: BreakerMetrics
  readonly log: Pick<Log, 'warn'>
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

export function createBreakers({ clock, metrics, log, maxUpstreams = MAX_UPSTREAMS }: Parts): Breakers {
  const breakers = new LRUCache<string, Breaker & { readonly slot: string; readonly labels: Labels }>({
    max: maxUpstreams,
    dispose: ({ labels }) => metrics.upstreamBreakers.remove(labels),
  })

  function breakerOf({ id, slot = id, name = id }: Guarded): Breaker {
    const known = breakers.get(id)
    if (known !== undefined) return known
    const labels = { upstream: name, id }
    const breaker = createBreaker(name, clock, {
      show: (state) => metrics.upstreamBreakers.set(labels, LEVELS[state]),
      down: (reason) =>
        log.warn('an upstream is down: it is not asked until a trial succeeds', {
          upstream: name,
          upstream_id: id,
          reason,
          count: FAILURES_IN_A_ROW,
        }),
      back: (downMs) =>
        log.warn('an upstream is back', { upstream: name, upstream_id: id, duration_ms: Math.round(downMs) }),
    })
    const made = { ...breaker, slot, labels }
    breakers.set(id, made)
    return made
  }

  return {
    async run(upstream, work) {
      const tell = breakerOf(upstream).enter()
      try {
        const result = await work()
        tell.succeeded()
        return result
      } catch (error) {
        tell.failed(error)
        throw error
      }
    },
    all: () => [...breakers].map(([id, { slot, now }]) => ({ id, slot, ...now() })),
  }
}

/** Who was let through tells once what became of it. */
type Entry = { readonly succeeded: () => void; readonly failed: (error: unknown) => void }
/** Throws where the upstream is not to be asked. */
type Breaker = {
  readonly enter: () => Entry
  readonly now: () => Pick<AskedUpstream, 'state' | 'changedMsAgo'>
}

/** Whoever has to know: of each change, and of the two that an operator wants to hear of. */
type Listener = {
  readonly show: (state: State) => void
  readonly down: (reason: string) => void
  readonly back: (downMs: number) => void
}

function createBreaker(name: string, clock: Parts['clock'], { show, down, back }: Listener): Breaker {
  let state: State = 'closed'
  let downSinceMs = 0
  let failuresInARow = 0
  let openings = 0
  let openUntilMs = 0
  let changedAtMs: number | null = null
  show(state)

  function change(to: State): void {
    if ((state === 'closed') !== (to === 'closed')) changedAtMs = clock.monotonicMs()
    state = to
    show(to)
  }

  function close(): void {
    failuresInARow = 0
    openings = 0
    change('closed')
    back(clock.monotonicMs() - downSinceMs)
  }

  function open(): void {
    openUntilMs = clock.monotonicMs() + Math.min(OPEN_FIRST_MS * 2 ** openings, OPEN_MOST_MS)
    openings += 1
    change('open')
  }

  /** Most calls. One that ends when the breaker is no longer closed says nothing new: the trial decides. */
  const usual: Entry = {
    succeeded() {
      failuresInARow = 0
    },
    failed(error) {
      if (!isToBlame(error)) return
      failuresInARow += 1
      if (state !== 'closed' || failuresInARow < FAILURES_IN_A_ROW) return
      open()
      downSinceMs = clock.monotonicMs()
      down(error.reason)
    },
  }

  const trial: Entry = {
    succeeded: close,
    failed(error) {
      if (provesNothing(error)) open()
      else close()
    },
  }

  return {
    now: () => ({ state, changedMsAgo: changedAtMs === null ? null : clock.monotonicMs() - changedAtMs }),
    enter() {
      if (state === 'closed') return usual
      const waitMs = openUntilMs - clock.monotonicMs()
      // One call tries, and the others do not wait for what becomes of it.
      if (waitMs > 0 || state === 'half_open') throw refusal(name, waitMs)
      change('half_open')
      return trial
    },
  }
}

function refusal(name: string, waitMs: number): UpstreamFailure {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1_000))
  return new UpstreamFailure(name, { reason: 'breaker', certainty: 'not_sent', retryAfterSeconds })
}

export function isToBlame(error: unknown): error is UpstreamFailure {
  if (!(error instanceof UpstreamFailure)) return false
  // What we would not have sent says nothing.
  if (error.reason === 'protocol' && error.certainty === 'not_sent') return false
  return COUNTED.has(error.reason)
}

/** A trial that was given up must not close the breaker. An answer that is larger than we take is an answer. */
function provesNothing(error: unknown): boolean {
  return error instanceof UpstreamFailure && error.reason !== 'too_large'
}

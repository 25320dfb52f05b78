import type { Answered, AttemptOptions } from './attempt.ts'
import { type Clock, sleep } from './clock.ts'
import type { FreeRoutes } from './contract.ts'
import { asRecord } from './error-body.ts'

type Page = FreeRoutes['list_requests']['answer']

/** A call as it was found by its key: ended and charged, running, or of an outcome that nobody knows yet. */
export type FoundRequest = {
  readonly id: string
  readonly operation: string | null
  readonly outcome: 'posted' | 'voided' | 'refused' | 'running' | 'unsettled'
  /** What it was charged, once it has ended. */
  readonly cost?: { readonly usd: string; readonly micros_usd: number }
  /** What is held for it, until then. */
  readonly held?: { readonly usd: string; readonly micros_usd: number }
}

type Sought = {
  readonly idempotencyKey: string
  readonly operation: string | undefined
  /** One that runs for minutes is found as soon as it runs. */
  readonly isTask: boolean
}

/**
 * Finds out what came of a call, and waits for it while it runs. Undefined where nothing was charged and nothing will be: there is no
 * call with this key, or it ended uncharged. Throws where it can't be found out.
 */
export type LookUp = (
  sought: Sought,
  options: Pick<AttemptOptions, 'timeoutMs' | 'signal'>,
) => Promise<FoundRequest | undefined>

type Parts = {
  readonly clock: Clock
  /** Reads the calls that have a key, as often as it takes. */
  readonly read: (
    idempotencyKey: string,
    operation: string | undefined,
    signal: AbortSignal | undefined,
  ) => Promise<Page>
}

const FIRST_LOOK_MS = 1_000
const LONGEST_LOOK_MS = 5_000

export function createLookUp({ clock, read }: Parts): LookUp {
  return async ({ idempotencyKey, operation, isTask }, { timeoutMs, signal }) => {
    const untilMs = clock.nowMs() + timeoutMs
    for (let waitMs = FIRST_LOOK_MS; ; waitMs = Math.min(LONGEST_LOOK_MS, waitMs * 2)) {
      const found = foundIn(await read(idempotencyKey, operation, signal), operation)
      if (found === undefined || found.outcome === 'voided' || found.outcome === 'refused') return undefined
      const isOver = found.outcome !== 'running' || isTask || clock.nowMs() + waitMs > untilMs
      if (isOver) return found
      await sleep(clock, waitMs, signal)
    }
  }
}

/** What runs says more than what has ended: a key can have been free in between. Each operation has its own keys. */
export function foundIn({ data, open = [] }: Page, operation: string | undefined): FoundRequest | undefined {
  const isIts = (one: FoundRequest) => operation === undefined || one.operation === null || one.operation === operation
  return open.find(isIts) ?? data.find(isIts)
}

/** Something between may answer anything: an answer of another shape is no news of the call. */
export function isPage(value: unknown, { headers }: Pick<Answered, 'headers'>): value is Page {
  const { data, open } = asRecord(value)
  return headers.has('x-request-id') && Array.isArray(data) && Array.isArray(open)
}

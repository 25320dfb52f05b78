import { type Answered, type AttemptOptions, attempt, type Cut, type Fetch, type Heard, type Wire } from './attempt.ts'
import { type Clock, sleep } from './clock.ts'
import { CompletedError, connectionError, errorOf, OutcomeUnknownError } from './errors.ts'
import type { FoundRequest, LookUp } from './look-up.ts'
import { readUsd } from './money.ts'
import { createBackoff, judge, type Verdict } from './retry.ts'

/** What is to be sent, as often as that is safe. */
export type Wanted = {
  /** The same bytes each time. */
  readonly wire: Wire
  /** Whether it can be charged. What is free is repeated without a look. */
  readonly isPaid: boolean
  /** Makes a repetition safe, and the call known by it. */
  readonly idempotencyKey?: string | undefined
  readonly operation?: string | undefined
  /** A task that was created is known by the id of its call, so that its lost answer can be made again. */
  readonly isTask?: boolean
  /** Whether the body can be sent a second time. */
  readonly isRepeatable?: boolean
}

export type SendOptions = AttemptOptions & {
  /** How often it is sent again at the most. */
  readonly maxRetries: number
  /** The longest Retry-After that is waited for. */
  readonly maxWaitMs: number
}

export type SendParts = {
  readonly fetch: Fetch
  readonly clock: Clock
  readonly random: () => number
  /** The provider's word in the names of headers. */
  readonly word: string
}

/** What came of a request: an answer, good or not, or a task that was created while its answer was lost. */
export type Sent = Answered | { readonly kind: 'created'; readonly request: FoundRequest }

export type Send = (wanted: Wanted, options: SendOptions) => Promise<Sent>

/** Sends a request until it is answered. Each line that goes on has made sure that nothing can be charged twice. */
export function createSend(parts: SendParts, lookUp: LookUp): Send {
  return async (wanted, options) => {
    const { idempotencyKey, isPaid, isRepeatable = true } = wanted
    // What no `fetch` would send is told as it is: there is nothing to look up.
    void [new URL(wanted.wire.url), new Headers(wanted.wire.headers)]
    const backoff = createBackoff(parts.random)
    // One that was cut may still be on its way when there is no call yet.
    let mayComeLate = false
    for (let repeated = 0; ; repeated += 1) {
      const heard = await attempt(parts, wanted.wire, options)
      const verdict = judge(heard, isPaid)
      if (verdict.next === 'tell') return told(heard, idempotencyKey, mayComeLate)
      if (verdict.next === 'look up') {
        const request = await lookedUp(wanted, heard, options)
        if (request !== undefined) return await ofTask(wanted, heard, options, request)
        mayComeLate = true
      }
      const mayRepeat = isRepeatable && repeated < options.maxRetries
      if (!mayRepeat || (verdict.retryAfterMs ?? 0) > options.maxWaitMs) return told(heard, idempotencyKey, mayComeLate)
      await sleep(parts.clock, backoff.nextMs(reasonOf(verdict), verdict.retryAfterMs), options.signal)
    }
  }

  /** A look-up compares no input. The gateway does, and tells who has used the key for another one; it makes nothing twice by it. */
  async function ofTask(wanted: Wanted, heard: Heard, options: SendOptions, request: FoundRequest): Promise<Sent> {
    const isCompared = heard.kind === 'answer' && heard.status === 409
    const again = isCompared ? heard : await attempt(parts, wanted.wire, options)
    const isTold = again.kind === 'answer' && (again.status < 300 || again.code === 'idempotency_mismatch')
    return isTold ? again : { kind: 'created', request }
  }

  /** Undefined where there is no such call, so that sending it with its key makes the first one. */
  async function lookedUp(wanted: Wanted, heard: Heard, options: SendOptions): Promise<FoundRequest | undefined> {
    const { idempotencyKey, operation, isTask } = wanted
    const known = { idempotencyKey, cause: heard.kind === 'cut' ? heard.cause : errorOf(heard, idempotencyKey) }
    if (idempotencyKey === undefined) throw unknownOutcome('It had no idempotency key to look it up by.', known)
    const found = await lookUp({ idempotencyKey, operation, isTask: isTask ?? false }, options).catch(
      (cause: unknown) => {
        options.signal?.throwIfAborted()
        throw unknownOutcome('It could not be looked up.', { ...known, cause })
      },
    )
    if (found === undefined || isTask) return found
    const request = { ...known, requestId: found.id }
    if (operation === undefined) throw unknownOutcome('A call has its key, and may be of another operation.', request)
    if (found.outcome === 'unsettled') throw unknownOutcome('The gateway does not know it either yet.', request)
    if (found.outcome === 'running') throw unknownOutcome('It still runs.', request)
    throw new CompletedError('The call completed and was charged, but its answer was lost on the way.', {
      ...request,
      code: 'idempotency_completed',
      cost: readUsd(found.cost?.usd),
    })
  }
}

function reasonOf(verdict: Verdict): 'limited' | 'transient' {
  return verdict.next === 'repeat' ? verdict.because : 'transient'
}

/** That a later sending failed uncharged says nothing about one that may still arrive: then nobody is told that it was free. */
function told(heard: Answered | Cut, idempotencyKey: string | undefined, mayComeLate: boolean): Answered {
  if (heard.kind === 'cut') throw connectionError(heard, idempotencyKey)
  const isZero = heard.cost?.nanos === 0n
  return mayComeLate && isZero && heard.status >= 400 ? { ...heard, cost: undefined } : heard
}

type Known = { readonly idempotencyKey: string | undefined; readonly requestId?: string; readonly cause: unknown }

function unknownOutcome(why: string, known: Known): OutcomeUnknownError {
  return new OutcomeUnknownError(`What came of the call is not known. ${why}`, { ...known, code: 'outcome_unknown' })
}

import type { Clock } from './clock.ts'
import { errorIn } from './error-body.ts'
import { readUsd, type Usd } from './money.ts'

/** One request, sent once: what was heard of it. */
export type Heard = Answered | Cut

export type Answered = {
  readonly kind: 'answer'
  readonly status: number
  readonly headers: Headers
  /** The body, but for an answer that is handed over as it comes. */
  readonly text: string
  /** The gateway's code of a refusal. */
  readonly code: string | undefined
  /** What it was charged; undefined where the answer does not say, which is no zero. */
  readonly cost: Usd | undefined
  readonly response: Response
}

/** No answer, or not all of it. */
export type Cut = { readonly kind: 'cut'; readonly cause: unknown; readonly headers: Headers | undefined }

/** Whatever a `fetch` takes. */
export type RequestBody = NonNullable<RequestInit['body']>

export type Wire = {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: RequestBody | undefined
  /** What else a caller gave its `fetch`, such as a dispatcher. */
  readonly others?: RequestInit
}

export type AttemptOptions = {
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
  /** Whether a good answer is handed over unread, as a stream. */
  readonly isStreamed: boolean
}

/** As much of `fetch` as is used. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

type Parts = { readonly fetch: Fetch; readonly clock: Clock; readonly word: string }

/** Throws only where the caller's own signal has called it off. */
export async function attempt({ fetch, clock, word }: Parts, wire: Wire, options: AttemptOptions): Promise<Heard> {
  const { timeoutMs, signal, isStreamed } = options
  signal?.throwIfAborted()
  const late = new AbortController()
  const cancel = clock.setTimer(timeoutMs, () => late.abort(new TimedOut(timeoutMs)))
  const until = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal])
  let headers: Headers | undefined
  try {
    const { url, method, body } = wire
    const init = { ...wire.others, method, headers: wire.headers, signal: until, redirect: 'manual' as const }
    const response = await fetch(url, body === undefined ? init : { ...init, body })
    headers = response.headers
    const text = isStreamed && response.ok ? '' : await response.text()
    const { status } = response
    const { code } = errorIn(status, headers, text)
    return { kind: 'answer', status, headers, text, code, cost: readUsd(headers.get(`x-${word}-cost-usd`)), response }
  } catch (cause) {
    signal?.throwIfAborted()
    return { kind: 'cut', cause: late.signal.aborted ? late.signal.reason : cause, headers }
  } finally {
    cancel()
  }
}

export class TimedOut extends Error {
  constructor(timeoutMs: number) {
    super(`No answer within ${timeoutMs} ms.`)
    this.name = 'TimedOut'
  }
}

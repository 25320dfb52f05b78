import type { Fetch } from '../../client/src/attempt.ts'
import type { FakeClock } from './fake-clock.ts'

/** How a request fares on its way and at the gateway, which keeps claims and charges as the real one does. */
export type Fate =
  /** It comes to the gateway and its answer comes back. */
  | { readonly way: 'through'; readonly call: Run }
  /** Refused before anything began. */
  | {
      readonly way: 'refused'
      readonly status: number
      readonly code: string
      readonly retryAfterSeconds: number | null
      readonly isLasting: boolean
    }
  /** The connection breaks: before it arrives, or after it has, or while the answer comes. */
  | {
      readonly way: 'cut'
      readonly afterMs: number
      readonly arrivesAfterMs: number | null
      readonly inBody: boolean
      readonly call: Run
    }
  /** Something between answers in place of the gateway. */
  | { readonly way: 'between'; readonly status: number; readonly arrives: boolean; readonly call: Run }
  /** Nothing comes back at all. */
  | { readonly way: 'silence'; readonly arrives: boolean; readonly call: Run }

/** How a call runs once it has begun. */
export type Run = {
  readonly forMs: number
  readonly ends: 'charged' | 'charged error' | 'provider error' | 'no retry' | 'unsettled'
}

export type LookFate = 'through' | 'cut' | 'limited' | 'unavailable' | 'garbage'

export type Event =
  | { readonly kind: 'sent'; readonly atMs: number; readonly key: string; readonly body: string; readonly url: string }
  | {
      readonly kind: 'heard'
      readonly atMs: number
      readonly status: number
      readonly code: string
      readonly costNanos: bigint | null
      readonly retryAfterMs: number | null
      readonly mayRepeat: boolean
    }
  | { readonly kind: 'cut'; readonly atMs: number }
  | { readonly kind: 'looked'; readonly atMs: number; readonly found: string | null }
  | { readonly kind: 'looked in vain'; readonly atMs: number }

export const PRICE_NANOS = 1_450_000n
const PRICE = '0.001450000'
const FREE = '0.000000000'

type Claim = { readonly id: string; state: 'running' | 'posted' | 'unsettled' }

type Script = { readonly fates: readonly Fate[]; readonly looks: readonly LookFate[] }

export function createSimulatedGateway(clock: FakeClock, { fates, looks }: Script) {
  const events: Event[] = []
  const claims = new Map<string, Claim>()
  let charged = 0n
  let [calls, sendings, looked] = [0, 0, 0]

  /** What the gateway answers to a call that has come to it, when it does. */
  async function run(key: string, { forMs, ends }: Run): Promise<Response> {
    const first = claims.get(key)
    if (first !== undefined) return conflict(first)
    const id = `call-${calls++}`
    const claim: Claim = { id, state: 'running' }
    claims.set(key, claim)
    await clock.sleep(forMs)
    if (ends === 'unsettled') {
      claim.state = 'unsettled'
      return new Promise(() => {})
    }
    if (ends === 'charged' || ends === 'charged error') {
      claim.state = 'posted'
      charged += PRICE_NANOS
      return ends === 'charged'
        ? answer(200, { tag: 'cats' }, { 'x-farebox-cost-usd': PRICE, 'x-request-id': id })
        : answer(500, { message: 'broken' }, { 'x-farebox-cost-usd': PRICE, 'x-request-id': id })
    }
    claims.delete(key)
    const money = { 'x-farebox-cost-usd': FREE, 'x-request-id': id }
    return ends === 'provider error'
      ? answer(500, { message: 'broken' }, money)
      : fault(503, 'managed_upstream_transport', { ...money, 'x-should-retry': 'false' })
  }

  function conflict({ id, state }: Claim): Response {
    const first = { first_request_id: id, ...(state === 'posted' && { status: 200, cost_usd: PRICE }) }
    if (state === 'running') return fault(409, 'idempotency_running', { 'retry-after': '1' }, first)
    const code = state === 'posted' ? 'idempotency_completed' : 'outcome_unknown'
    return fault(409, code, { 'x-should-retry': 'false' }, first)
  }

  async function send(key: string, fate: Fate, signal: AbortSignal): Promise<Response> {
    if (fate.way === 'refused') {
      const wait = fate.retryAfterSeconds === null ? {} : { 'retry-after': String(fate.retryAfterSeconds) }
      return fault(fate.status, fate.code, { ...wait, ...(fate.isLasting && { 'x-should-retry': 'false' }) })
    }
    if (fate.way === 'through') return orAborted(run(key, fate.call), signal)
    const arrives = fate.way === 'cut' ? fate.arrivesAfterMs !== null : fate.arrives
    const delayMs = fate.way === 'cut' ? (fate.arrivesAfterMs ?? 0) : 0
    const arrival = arrives ? clock.sleep(delayMs).then(() => run(key, fate.call)) : undefined
    if (fate.way === 'silence') return orAborted(new Promise(() => {}), signal)
    if (fate.way === 'between') {
      await clock.sleep(10)
      return answer(fate.status, '<html>bad gateway</html>', { 'content-type': 'text/html' })
    }
    if (fate.inBody && arrival !== undefined) {
      const whole = await orAborted(arrival, signal)
      return Object.assign(new Response(null, { status: whole.status, headers: whole.headers }), {
        text: () => Promise.reject(new TypeError('terminated')),
      })
    }
    await clock.sleep(fate.afterMs)
    throw new TypeError('fetch failed')
  }

  function look(key: string): Response {
    const fate = looks[looked++] ?? 'through'
    const claim = claims.get(key)
    if (fate === 'cut') throw new TypeError('fetch failed')
    if (fate === 'limited') return fault(429, 'rate_limit_exceeded', { 'retry-after': '2' })
    if (fate === 'unavailable') return fault(503, 'billing_dependency_timeout', { 'retry-after': '1' })
    if (fate === 'garbage') return answer(200, { data: [] }, {})
    const { id, state } = claim ?? { id: '', state: 'none' }
    const base = { id, operation: 'tag_detail' }
    const open = state === 'running' || state === 'unsettled' ? [{ ...base, outcome: state }] : []
    const data = state === 'posted' ? [{ ...base, outcome: 'posted', cost: { usd: PRICE, micros_usd: 1_450 } }] : []
    events.push({ kind: 'looked', atMs: clock.nowMs(), found: claim === undefined ? null : state })
    return answer(200, { data, open, next_cursor: null }, { 'x-request-id': 'look' })
  }

  const fetch: Fetch = async (url, init) => {
    const { pathname, searchParams } = new URL(url)
    if (pathname === '/v1/requests') {
      const before = events.length
      try {
        return look(searchParams.get('idempotency_key') ?? '')
      } finally {
        if (events.length === before) events.push({ kind: 'looked in vain', atMs: clock.nowMs() })
      }
    }
    const key = new Headers(init.headers).get('idempotency-key') ?? ''
    events.push({ kind: 'sent', atMs: clock.nowMs(), key, body: String(init.body ?? ''), url })
    const fate = fates[sendings++] ?? THROUGH
    try {
      const response = await send(key, fate, init.signal ?? new AbortController().signal)
      // An answer that breaks off is no answer.
      await response.text()
      events.push(heardOf(response, clock.nowMs(), await response.text()))
      return response
    } catch (error) {
      events.push({ kind: 'cut', atMs: clock.nowMs() })
      if (error instanceof TypeError && error.message === 'terminated') return await broken()
      throw error
    }
  }

  return { fetch, events, charged: () => charged }
}

const THROUGH: Fate = { way: 'through', call: { forMs: 100, ends: 'charged' } }

/** Headers came, and the body breaks off. */
async function broken(): Promise<Response> {
  return Object.assign(new Response(null, { status: 200, headers: { 'content-type': 'application/json' } }), {
    text: () => Promise.reject(new TypeError('terminated')),
  })
}

function heardOf({ status, headers }: Response, atMs: number, text: string): Event {
  const cost = headers.get('x-farebox-cost-usd')
  const wait = headers.get('retry-after')
  return {
    kind: 'heard',
    atMs,
    status,
    code: /"code":"(\w+)"/.exec(text)?.[1] ?? '',
    costNanos: cost === null ? null : BigInt(cost.replace('.', '')),
    retryAfterMs: wait === null ? null : Number(wait) * 1_000,
    mayRepeat: headers.get('x-should-retry') !== 'false',
  }
}

function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  return Promise.race([work, aborted])
}

/** Its body is there at once: in a simulation nothing else takes time. */
export function answer(status: number, body: unknown, headers: Readonly<Record<string, string>>): Response {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const all = { 'content-type': 'application/json', ...headers }
  return Object.assign(new Response(null, { status, headers: all }), { text: async () => text })
}

function fault(
  status: number,
  code: string,
  headers: Readonly<Record<string, string>>,
  members: object = {},
): Response {
  return answer(
    status,
    { error: { ...members, code, message: code, type: 'x' } },
    { 'x-request-id': 'refused', ...headers },
  )
}

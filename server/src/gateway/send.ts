import type { Clock } from '../kernel/clock.ts'
import { LARGE_BYTES } from '../kernel/memory-budget.ts'
import { jsonIn } from '../protocols/json-text.ts'
import type { Incoming } from '../upstreams/adapters/adapter.ts'
import type { Binding } from '../upstreams/bindings.ts'
import { isPlain } from '../upstreams/reply-headers.ts'
import { type Transport, UpstreamFailure, type UpstreamReply, type UpstreamRequest } from '../upstreams/transport.ts'
import type { Attempt, Sent } from './plan.ts'

/** What every upstream gets; how long the whole may take is the operation's. */
export const DEADLINES = { connectMs: 5_000, headersMs: 60_000, idleMs: 30_000 }

type Tried = Pick<Binding, 'id' | 'name' | 'slot' | 'kind'>

/** When an attempt began and ended, by the clock of the process. */
export type Span = Pick<Attempt, 'beganMs' | 'endedMs'>

export type Asking<T extends keyof Transport> = {
  readonly transport: Pick<Transport, T>
  readonly clock: Pick<Clock, 'monotonicMs'>
}

/**
 * Asks an upstream once; a large answer is read as told. Only when the request has been worked out may the upstream have heard
 * of the call.
 */
export async function sendOnce(
  { transport, clock }: Asking<'send'>,
  binding: Binding,
  request: () => Omit<UpstreamRequest, 'upstream'>,
  readLarge?: (body: Buffer) => Promise<unknown>,
): Promise<Sent> {
  let isAsked = false
  const beganMs = clock.monotonicMs()
  try {
    const asked = { ...request(), upstream: binding }
    isAsked = true
    const reply = await transport.send(asked)
    const span = { beganMs, endedMs: clock.monotonicMs() }
    const isLarge = readLarge !== undefined && reply.body.length > LARGE_BYTES && isPlain(reply.headers)
    return answered(binding, span, reply, isLarge ? await readLarge(reply.body) : jsonOf(reply))
  } catch (error) {
    return failed(binding, { beganMs, endedMs: clock.monotonicMs() }, error, isAsked)
  }
}

export function answered({ id, name, slot, kind }: Tried, span: Span, reply: UpstreamReply, json: unknown): Sent {
  const { status, headers, body } = reply
  const attempt: Attempt = { slot, upstream: name, upstreamId: id, outcome: 'answered', status, reason: null, ...span }
  return { attempts: [attempt], kind, outcome: 'answered', reply: { status, headers, body, json } }
}

export function failed({ id, name, slot, kind }: Tried, span: Span, failure: unknown, isAsked: boolean): Sent {
  const isOurs = !(failure instanceof UpstreamFailure)
  const outcome = isOurs ? (isAsked ? 'unknown' : 'not_sent') : failure.certainty
  const reason = isOurs ? 'internal' : failure.reason
  const attempt: Attempt = { slot, upstream: name, upstreamId: id, outcome, status: null, reason, ...span }
  return { attempts: [attempt], kind, outcome, failure }
}

/** In which upstreams take our credential. */
export type CredentialHeader = 'authorization' | 'x-api-key' | 'api-key' | 'x-goog-api-key'

export function credentialFor(
  { credential }: Pick<Binding, 'credential'>,
  header: CredentialHeader,
): Record<string, string> {
  if (credential === null) return {}
  const secret = credential.reveal()
  return { [header]: header === 'authorization' ? `Bearer ${secret}` : secret }
}

/** Undefined where the body is no JSON. */
export function jsonOf(reply: Pick<Incoming, 'headers' | 'body'>): unknown {
  return isPlain(reply.headers) ? jsonIn(reply.body.toString('utf8')) : undefined
}

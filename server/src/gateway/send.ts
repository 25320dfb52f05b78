import { LARGE_BYTES } from '../kernel/memory-budget.ts'
import { jsonIn } from '../protocols/json-text.ts'
import type { Incoming } from '../upstreams/adapters/adapter.ts'
import type { Binding } from '../upstreams/bindings.ts'
import { isPlain } from '../upstreams/reply-headers.ts'
import { type Transport, UpstreamFailure, type UpstreamReply, type UpstreamRequest } from '../upstreams/transport.ts'
import type { Sent } from './plan.ts'
import type { Attempt } from './records.ts'

/** What every upstream gets; how long the whole may take is the operation's. */
export const DEADLINES = { connectMs: 5_000, headersMs: 60_000, idleMs: 30_000 }

type Tried = Pick<Binding, 'slot' | 'kind'>

/**
 * Asks an upstream once; a large answer is read as told. Only when the request has been worked out may the upstream have heard
 * of the call.
 */
export async function sendOnce(
  transport: Pick<Transport, 'send'>,
  binding: Binding,
  request: () => Omit<UpstreamRequest, 'upstream'>,
  readLarge?: (body: Buffer) => Promise<unknown>,
): Promise<Sent> {
  let isAsked = false
  try {
    const asked = { ...request(), upstream: binding }
    isAsked = true
    const reply = await transport.send(asked)
    const isLarge = readLarge !== undefined && reply.body.length > LARGE_BYTES && isPlain(reply.headers)
    return answered(binding, reply, isLarge ? await readLarge(reply.body) : jsonOf(reply))
  } catch (error) {
    return failed(binding, error, isAsked)
  }
}

export function answered(tried: Tried, reply: UpstreamReply, json: unknown): Sent {
  const attempts: readonly Attempt[] = [{ slot: tried.slot, outcome: 'answered', status: reply.status, reason: null }]
  const { status, headers, body } = reply
  return { attempts, kind: tried.kind, outcome: 'answered', reply: { status, headers, body, json } }
}

export function failed({ slot, kind }: Tried, failure: unknown, isAsked: boolean): Sent {
  const isOurs = !(failure instanceof UpstreamFailure)
  const outcome = isOurs ? (isAsked ? 'unknown' : 'not_sent') : failure.certainty
  const reason = isOurs ? 'internal' : failure.reason
  return { attempts: [{ slot, outcome, status: null, reason }], kind, outcome, failure }
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

import type { Binding } from '../upstreams/bindings.ts'
import type { OpenReply, Transport, UpstreamReply, UpstreamRequest } from '../upstreams/transport.ts'
import type { OpenStream, Sent } from './plan.ts'
import { answered, failed } from './send.ts'

const EVENTS = 'text/event-stream'

/** Asks an upstream once for a stream. What is no stream, an error as a rule, comes whole. */
export async function openOnce(
  transport: Pick<Transport, 'open'>,
  binding: Binding,
  request: () => Omit<UpstreamRequest, 'upstream'>,
  read: (reply: OpenReply) => OpenStream,
): Promise<Sent> {
  let isAsked = false
  try {
    const asked = { ...request(), upstream: binding }
    isAsked = true
    const reply = await transport.open(asked)
    const { status } = reply
    if (status !== 200 || !isEvents(reply)) return answered(binding, await collect(reply))
    const attempts = [{ slot: binding.slot, outcome: 'answered' as const, status, reason: null }]
    return { attempts, kind: binding.kind, outcome: 'streaming', stream: read(reply) }
  } catch (error) {
    return failed(binding, error, isAsked)
  }
}

function isEvents({ headers }: OpenReply): boolean {
  return headers['content-type']?.trimStart().toLowerCase().startsWith(EVENTS) === true
}

async function collect({ status, headers, body, timing }: OpenReply): Promise<UpstreamReply> {
  const pieces: Buffer[] = []
  for await (const piece of body) pieces.push(piece)
  return { status, headers, body: Buffer.concat(pieces), timing }
}

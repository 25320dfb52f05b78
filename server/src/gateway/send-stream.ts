import type { Binding } from '../upstreams/bindings.ts'
import { CollectedBody } from '../upstreams/collected-body.ts'
import {
  type OpenReply,
  type Transport,
  UpstreamFailure,
  type UpstreamReply,
  type UpstreamRequest,
} from '../upstreams/transport.ts'
import type { OpenStream, Sent } from './plan.ts'
import { answered, failed } from './send.ts'

const EVENTS = 'text/event-stream'
/** Of what is no stream although one was asked for. */
const MOST_BYTES = 1_048_576

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
    if (status !== 200 || !isEvents(reply)) return answered(binding, await collect(reply, binding.id))
    const attempts = [{ slot: binding.slot, outcome: 'answered' as const, status, reason: null }]
    return { attempts, kind: binding.kind, outcome: 'streaming', stream: read(reply) }
  } catch (error) {
    return failed(binding, error, isAsked)
  }
}

/** In an encoding that we did not ask for, nothing of it could be read. */
function isEvents({ headers }: OpenReply): boolean {
  const isPlain = (headers['content-encoding'] ?? 'identity') === 'identity'
  return isPlain && headers['content-type']?.trimStart().toLowerCase().startsWith(EVENTS) === true
}

function collect({ status, headers, body, timing }: OpenReply, upstreamId: string): Promise<UpstreamReply> {
  const whole = new CollectedBody(undefined)
  const { promise, resolve, reject } = Promise.withResolvers<UpstreamReply>()
  let bytes = 0
  body.read({
    onPiece(piece) {
      bytes += piece.length
      if (bytes <= MOST_BYTES) whole.add(piece)
      else {
        reject(new UpstreamFailure(upstreamId, { reason: 'too_large', certainty: 'unknown' }))
        body.giveUp()
      }
    },
    onEnd: () => resolve({ status, headers, body: whole.whole(), timing }),
    onFailure: reject,
  })
  return promise
}

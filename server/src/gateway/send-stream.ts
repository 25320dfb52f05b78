import type { ReplyRoom } from '../kernel/memory-budget.ts'
import { CollectedBody } from '../protocols/collected-body.ts'
import type { Binding } from '../upstreams/bindings.ts'
import { isPlain } from '../upstreams/reply-headers.ts'
import {
  nameOf,
  type OpenReply,
  UpstreamFailure,
  type UpstreamReply,
  type UpstreamRequest,
} from '../upstreams/transport.ts'
import type { CallRequest } from './call-request.ts'
import type { Growth } from './growth.ts'
import type { OpenStream, Sent } from './plan.ts'
import { type Asking, answered, failed, jsonOf } from './send.ts'

const EVENTS = 'text/event-stream'
/** Of what is no stream although one was asked for. */
const MOST_BYTES = 1_048_576

/** Asks an upstream once for a stream. What is no stream, an error as a rule, comes whole. */
export async function openOnce(
  { transport, clock }: Asking<'open'>,
  binding: Binding,
  request: () => Omit<UpstreamRequest, 'upstream'>,
  read: (reply: OpenReply) => OpenStream,
): Promise<Sent> {
  let isAsked = false
  const beganMs = clock.monotonicMs()
  const span = () => ({ beganMs, endedMs: clock.monotonicMs() })
  try {
    const asked = { ...request(), upstream: binding }
    isAsked = true
    const reply = await transport.open(asked)
    const { status } = reply
    if (status !== 200 || !isEvents(reply)) {
      const whole = await collect(reply, asked)
      return answered(binding, span(), whole, jsonOf(whole))
    }
    const { id: upstreamId, name: upstream, slot, kind } = binding
    const attempts = [{ slot, upstream, upstreamId, outcome: 'answered' as const, status, reason: null, ...span() }]
    return { attempts, kind, outcome: 'streaming', stream: read(reply) }
  } catch (error) {
    return failed(binding, span(), error, isAsked)
  }
}

type Opening = Asking<'open'> & {
  /** Whether the caller has left before the answer began. */
  readonly hasLeft: () => boolean
}

/** What an opening is given up for, each where it can be told: the caller leaves, or there is no more to hold for it. */
type Until = { readonly left: CallRequest['whenLeft']; readonly short: Growth['whenShort'] | undefined }

/** The same, given up as soon as something happens. Once an answer has begun, who reads it decides. */
export function openUntil({ transport, clock }: Asking<'open'>, { left, short }: Until): Opening {
  if (left === undefined && short === undefined) return { transport, clock, hasLeft: () => false }
  const given = new AbortController()
  let hasLeft = false
  return {
    clock,
    transport: {
      open(request) {
        const callOffs = [
          left?.(() => {
            hasLeft = true
            given.abort()
          }),
          short?.(() => given.abort()),
        ]
        return transport.open({ ...request, signal: given.signal }).finally(() => {
          for (const callOff of callOffs) callOff?.()
        })
      },
    },
    hasLeft: () => hasLeft,
  }
}

function isEvents({ headers }: OpenReply): boolean {
  return isPlain(headers) && headers['content-type']?.trimStart().toLowerCase().startsWith(EVENTS) === true
}

function collect(reply: OpenReply, { upstream, room }: UpstreamRequest): Promise<UpstreamReply> {
  const { status, headers, body, timing } = reply
  const whole = new CollectedBody(undefined)
  const { promise, resolve, reject } = Promise.withResolvers<UpstreamReply>()
  let bytes = 0

  function tooLarge(): void {
    reject(new UpstreamFailure(nameOf(upstream), { reason: 'too_large', certainty: 'unknown' }))
    body.giveUp()
  }

  function makeRoom(room: ReplyRoom): void {
    const isGiven = room.growReply(bytes, MOST_BYTES)
    if (isGiven === true) return
    body.pause()
    isGiven.then((hasRoom) => (hasRoom ? body.resume() : tooLarge()))
  }

  body.read({
    onPiece(piece) {
      bytes += piece.length
      whole.add(piece)
      if (bytes > MOST_BYTES) tooLarge()
      else if (room !== undefined && bytes > room.replyBytes) makeRoom(room)
    },
    onEnd: () => resolve({ status, headers, body: whole.whole(), timing }),
    onFailure: reject,
  })
  return promise
}

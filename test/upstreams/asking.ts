import assert from 'node:assert/strict'
import { after } from 'node:test'
import { type Clock, systemClock } from '../../server/src/kernel/clock.ts'
import {
  type Body,
  type Certainty,
  createTransport,
  type FailureReason,
  type Transport,
  UpstreamFailure,
  type UpstreamRequest,
} from '../../server/src/upstreams/transport.ts'

export const MIB = 1_048_576

export const DEADLINES = { connectMs: 2_000, headersMs: 5_000, idleMs: 5_000, totalMs: 20_000 }

/** A transport that ends with the test file. */
export function startTransport(parts: Partial<Parameters<typeof createTransport>[0]> = {}): Transport {
  const clock: Clock = systemClock
  const transport = createTransport({ clock, ...parts })
  after(() => transport.close())
  return transport
}

type Changes = Partial<Omit<UpstreamRequest, 'deadlines'>> & {
  readonly deadlines?: Partial<UpstreamRequest['deadlines']>
}

export function get(baseUrl: string, { deadlines, ...changes }: Changes = {}): UpstreamRequest {
  return {
    upstream: { id: 'one', baseUrl, kind: 'native' },
    method: 'GET',
    target: '/thing',
    headers: {},
    body: null,
    maxBodyBytes: MIB,
    ...changes,
    deadlines: { ...DEADLINES, ...deadlines },
  }
}

export function post(baseUrl: string, changes: Changes = {}): UpstreamRequest {
  return get(baseUrl, { method: 'POST', body: Buffer.from('{"a":1}'), ...changes })
}

/** Fails the test unless asking fails like this. */
export async function failsWith(
  asking: Promise<unknown>,
  reason: FailureReason,
  certainty: Certainty,
): Promise<UpstreamFailure> {
  const failure = await asking.then(
    () => undefined,
    (error: unknown) => error,
  )
  assert.ok(failure instanceof UpstreamFailure, `should be a failure of the upstream: ${failure}`)
  assert.deepEqual([failure.reason, failure.certainty], [reason, certainty])
  return failure
}

/** Takes one piece after the other, and none before it is asked for. Whoever stops gives the rest up. */
export async function* piecesOf(body: Body): AsyncGenerator<Buffer, void, undefined> {
  const pieces: Buffer[] = []
  let isOver = false
  let failure: UpstreamFailure | undefined
  let news = Promise.withResolvers<void>()
  const ended = (reason?: UpstreamFailure) => {
    isOver = true
    failure = reason
    news.resolve()
  }
  body.read({
    onPiece(piece) {
      pieces.push(piece)
      body.pause()
      news.resolve()
    },
    onEnd: ended,
    onFailure: ended,
  })
  try {
    while (true) {
      const piece = pieces.shift()
      if (piece !== undefined) yield piece
      else if (isOver) break
      else {
        news = Promise.withResolvers()
        body.resume()
        await news.promise
      }
    }
    if (failure !== undefined) throw failure
  } finally {
    body.giveUp()
  }
}

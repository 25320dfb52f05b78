import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import type { Settlement } from '../calls/call.ts'
import { type Clock, within } from '../kernel/clock.ts'
import { asFault, type Fault } from '../kernel/fault.ts'
import { formatUsd, ZERO } from '../kernel/money.ts'
import type { Log } from '../telemetry/log.ts'
import type { Answer } from '../upstreams/adapters/adapter.ts'
import { passedOn } from '../upstreams/adapters/pass-through.ts'
import type { UpstreamKind } from '../upstreams/bindings.ts'
import { endingOf, type Held, type Outcome, transportFault } from './judge.ts'
import type { OpenStream } from './plan.ts'

/** An answer that comes whole, or one whose body is still coming. */
export type RelayedAnswer = Omit<Answer, 'body'> & { readonly body: Answer['body'] | Readable }

/** Passes an upstream's stream on to the caller, and ends the call that it belongs to. */
export type Relay = (relayed: Relayed) => RelayedAnswer & { readonly body: Readable }

type Relayed = {
  readonly stream: OpenStream
  readonly kind: UpstreamKind
  readonly held: Held
  readonly settle: (outcome: Settled, status: number) => Promise<Settlement>
  readonly renderFault: (fault: Fault) => string
}

/** How streams ended, to be counted. */
export type StreamEnd = 'complete' | 'caller_left' | 'upstream_failed' | 'not_settled'

type Parts = {
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>
  readonly log: Pick<Log, 'error'>
  readonly ended: (how: StreamEnd) => void
  /** How long an upstream is listened to for a caller who has left: what it reports at the end is what the call cost. */
  readonly drainMs?: number
}

const DRAIN_MS = 30_000
/** An upstream that has said everything gets so long to end its answer, so that its connection can be used again. */
const LAST_BYTES_MS = 1_000
/** And so long to say what comes after the answer: its usage, and the end. */
const LAST_FRAMES_MS = 10_000
const NEVER_MS = Number.POSITIVE_INFINITY
/** Waits for whoever reads too slowly; what is kept of a stream is this and one piece. */
const BUFFER_BYTES = 16_384

export function createRelay({ clock, log, ended, drainMs = DRAIN_MS }: Parts): Relay {
  return (relayed) => {
    const { stream } = relayed
    const sink = createSink()
    void run(relayed, sink).catch((error: unknown) => {
      log.error('a stream could not be ended', { error })
      sink.reset()
    })
    const { status, headers } = stream.reply
    return { status, headers: passedOn(headers), body: sink.body }
  }

  async function run(relayed: Relayed, sink: Sink): Promise<void> {
    const { stream, settle, renderFault, kind } = relayed
    const { failure, delivered } = await pass(stream, sink)
    const isComplete = failure === undefined && stream.reader.state() === 'complete'
    const outcome = await outcomeOf(relayed, delivered, !isComplete)
    try {
      const { charged } = await settle(outcome, stream.reply.status)
      if (isComplete) {
        for (const bytes of stream.reader.release(formatUsd(charged))) await sink.write(bytes)
        ended(sink.hasLeft() ? 'caller_left' : 'complete')
        sink.end()
        return
      }
      ended(sink.hasLeft() ? 'caller_left' : 'upstream_failed')
      const fault = transportFault(kind, failure ?? new Error('the stream ended before the answer did'))
      // An upstream that told of its failure itself has said what there is to say.
      await breakOff(sink, stream.reader.hasToldError() ? undefined : stream.errorFrame(renderFault(fault)))
    } catch (error) {
      // What was not settled must not look like an answer that has ended well.
      ended('not_settled')
      await breakOff(sink, stream.errorFrame(renderFault(asFault(error))))
    }
  }

  /** Passes on what comes until the answer is complete, or nothing more is to be had. What the caller got of it. */
  async function pass({ reply, reader }: OpenStream, sink: Sink): Promise<Passed> {
    const pieces = reply.body[Symbol.asyncIterator]()
    let delivered: string | undefined
    let isOver = false
    void sink.left.then(async () => {
      delivered ??= reader.deliveredText()
      if (isOver) return
      await clock.sleep(drainMs)
      // Whoever waits for the next piece learns of it.
      if (!isOver) await pieces.return?.()
    })
    const passed = (failure?: unknown): Passed => {
      isOver = true
      // What is held back of a complete answer will be delivered, unless it can't be settled and costs nothing.
      delivered ??= reader.state() === 'complete' ? reader.wholeText() : reader.deliveredText()
      void letGo(pieces)
      return { failure, delivered }
    }
    try {
      let deadlineMs = NEVER_MS
      while (reader.state() === 'open') {
        // The answer is there. Who does not end the stream as well is not waited for much longer.
        if (reader.isHolding()) deadlineMs = Math.min(deadlineMs, clock.monotonicMs() + LAST_FRAMES_MS)
        const piece = deadlineMs === NEVER_MS ? pieceOf(await pieces.next()) : await nextBefore(deadlineMs, pieces)
        for (const bytes of piece === undefined ? reader.finish() : reader.push(piece)) {
          // Most writes have room at once, and to wait for nothing costs as much as the rest of a chunk.
          const room = sink.write(bytes)
          if (room !== undefined) await room
        }
        if (piece === undefined) break
      }
      return passed()
    } catch (failure) {
      return passed(isWhole(reader) ? undefined : failure)
    }
  }

  /** Undefined at the end of the body, or where nothing comes before the deadline. */
  async function nextBefore(deadlineMs: number, pieces: AsyncIterator<Buffer>): Promise<Buffer | undefined> {
    const next = pieces.next()
    if (await within(clock, next, deadlineMs - clock.monotonicMs())) return pieceOf(await next)
    // Nobody waits for it any more.
    next.catch(() => {})
    return undefined
  }

  async function letGo(pieces: AsyncIterator<Buffer>): Promise<void> {
    try {
      await Promise.race([pieces.next(), clock.sleep(LAST_BYTES_MS)])
    } catch {
      // It is over in any case.
    }
    await pieces.return?.()
  }
}

/** Undefined at the end of the body. */
function pieceOf({ value, done }: IteratorResult<Buffer, unknown>): Buffer | undefined {
  return done === true ? undefined : value
}

type Passed = { readonly delivered: string; readonly failure: unknown }

/** An upstream that breaks off after the end of its answer has said everything. */
function isWhole(reader: OpenStream['reader']): boolean {
  if (reader.state() === 'failed' || !reader.hasStopOfItsOwn) return false
  reader.finish()
  return reader.state() === 'complete'
}

/** What was used of it is charged; where the caller got nothing, what it cost is our loss. */
async function outcomeOf({ stream, held }: Relayed, delivered: string, failed: boolean): Promise<Settled> {
  try {
    const measured = await stream.measure(delivered)
    if (measured !== undefined) return { measured, ending: endingOf(held, measured, { forgiven: false, failed }) }
    const { amount, usage } = endingOf(held, await stream.lost(), { forgiven: true, failed })
    // It is in nobody's report and uses up nobody's minute.
    return { ending: { amount, forgiven: true, usage: { ...usage, ...UNUSED } } }
  } catch {
    // Whatever an upstream wrote that we can't add up, the call has to end.
    return { ending: endingOf(held, undefined, { forgiven: true, failed: true }) }
  }
}

const UNUSED = { value: ZERO, inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

type Settled = Pick<Outcome, 'ending' | 'measured'>

async function breakOff(sink: Sink, frame: string | undefined): Promise<void> {
  if (frame !== undefined) await sink.write(Buffer.from(frame))
  await sink.flushed()
  sink.reset()
}

type Sink = ReturnType<typeof createSink>

/** The caller's end of a stream. Whoever writes waits for whoever reads, and learns that nobody does any more. */
function createSink() {
  const left = Promise.withResolvers<void>()
  let hasLeft = false
  let isOver = false
  let room = Promise.withResolvers<void>()
  const body = new Readable({
    highWaterMark: BUFFER_BYTES,
    read() {
      room.resolve()
    },
    destroy(error, done) {
      if (!isOver) {
        hasLeft = true
        left.resolve()
      }
      room.resolve()
      done(error)
    },
  })
  // It is broken off by us, or by a caller who left: neither is news to anybody else.
  body.on('error', () => {})
  return {
    body,
    left: left.promise,
    hasLeft: () => hasLeft,
    /** Undefined where there is room for more at once. */
    write(bytes: Buffer): Promise<void> | undefined {
      if (hasLeft || isOver || body.push(bytes)) return undefined
      room = Promise.withResolvers()
      return room.promise
    },
    /** Until what was written has been taken. */
    async flushed(): Promise<void> {
      if (!hasLeft && body.readableLength > 0) {
        room = Promise.withResolvers()
        await room.promise
      }
      // The server hands what it was given to the socket a turn later.
      await setImmediate()
    },
    end(): void {
      isOver = true
      body.push(null)
    },
    /** An end that nobody can take for a good one. */
    reset(): void {
      isOver = true
      if (!body.destroyed) body.destroy(new Error('the stream was broken off'))
    },
  }
}

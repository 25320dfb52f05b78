import type { Settlement } from '../calls/call.ts'
import type { Clock } from '../kernel/clock.ts'
import { asFault, Fault, noRoom } from '../kernel/fault.ts'
import type { ReplyRoom } from '../kernel/memory-budget.ts'
import { formatUsd, type Nanos, ZERO } from '../kernel/money.ts'
import type { Held } from '../pricing/terms.ts'
import { MOST_TEXT_BYTES } from '../protocols/kept-text.ts'
import type { TokenUsage } from '../protocols/protocol.ts'
import { MOST_FRAME_BYTES } from '../protocols/sse.ts'
import { MOST_HELD_BYTES } from '../protocols/withholding-reader.ts'
import type { Log } from '../telemetry/log.ts'
import type { Answer } from '../upstreams/adapters/adapter.ts'
import { passedOn } from '../upstreams/adapters/pass-through.ts'
import type { UpstreamKind } from '../upstreams/bindings.ts'
import { type Growth, HoldSpent, shortFault } from './growth.ts'
import { endingOf, type Outcome, transportFault } from './judge.ts'
import type { OpenStream } from './plan.ts'

/** An answer that comes whole, or one whose body is still coming. */
export type RelayedAnswer = Answer | StreamedAnswer

export type StreamedAnswer = Omit<Answer, 'body'> & { readonly body: StreamedBody }

export function isStreamed(answer: RelayedAnswer): answer is StreamedAnswer {
  return typeof answer.body === 'object' && 'sendTo' in answer.body
}

/** A body that is still coming. It owns its call, which ends only if the body is sent, be it to one who has left. */
export type StreamedBody = {
  /** Resolves when the call has ended, which may be long after its caller has left. */
  readonly sendTo: (outlet: Outlet) => Promise<void>
}

/** The caller's end of a stream. What is written to one who has left goes nowhere. */
export type Outlet = {
  /** Told of each change from here on, and of a caller who has left before. */
  readonly listen: (listener: OutletListener) => void
  readonly hasLeft: () => boolean
  /** False where the caller reads too slowly; `onRoom` tells when to go on. */
  readonly write: (bytes: Buffer) => boolean
  /** The last bytes, and a good end. */
  readonly end: (bytes: Buffer, trailers?: Readonly<Record<string, string>>) => void
  /** The last bytes, and an end that nobody can take for a good one. */
  readonly breakOff: (bytes: Buffer) => void
}

export type OutletListener = { readonly onRoom: () => void; readonly onLeft: () => void }

/** Passes an upstream's stream on to the caller, and ends the call that it belongs to. */
export type Relay = (relayed: Relayed) => StreamedAnswer

type Relayed = {
  readonly stream: OpenStream
  readonly kind: UpstreamKind
  readonly brokeOff?: (() => void) | undefined
  /** What is held for it when it has ended. */
  readonly held: () => Held
  /** Of a stream whose hold grows with it. */
  readonly growth?: Growth | undefined
  /** The header behind the body that says which limit cut it. */
  readonly endedByHeader: string
  readonly room: ReplyRoom
  /** Told once where the caller has left and its upstream is read on. Call what comes back when that is over. */
  readonly drains: () => () => void
  /** Told once: the first bytes go to a caller who is there. */
  readonly began: () => void
  readonly settle: (outcome: Settled, status: number, isHeard: boolean) => Promise<Settlement>
  readonly renderFault: (fault: Fault) => string
  readonly requestId: string
}

/** How streams ended, to be counted. */
export type StreamEnd = 'complete' | 'caller_left' | 'upstream_failed' | 'over_limit' | 'hold_spent' | 'not_settled'

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
/** Of what a stream holds, that which is on its way: a reading of one connection and a write to the other. */
const PASSING_BYTES = 32_768
/** What is kept of its text, what is held back of it, a frame that is not complete, and the rest. */
const STREAM_MOST_BYTES = MOST_TEXT_BYTES + MOST_HELD_BYTES + MOST_FRAME_BYTES + PASSING_BYTES
const NO_BYTES = Buffer.alloc(0)

export function createRelay({ clock, log, ended, drainMs = DRAIN_MS }: Parts): Relay {
  return (relayed) => {
    const { status, headers } = relayed.stream.reply
    const sendTo = (outlet: Outlet) =>
      run(relayed, outlet).catch((error: unknown) => {
        log.error('a stream could not be ended', { error })
        outlet.breakOff(NO_BYTES)
      })
    return { status, headers: { ...passedOn(headers), ...relayed.stream.headers }, body: { sendTo } }
  }

  async function run(relayed: Relayed, outlet: Outlet): Promise<void> {
    const { stream, settle, renderFault, kind, growth } = relayed
    const { failure, delivered, isAbandoned } = await pass(relayed, outlet)
    await growth?.end()
    const isComplete = failure === undefined && stream.reader.state() === 'complete'
    const isCut = isOverLimit(failure)
    const isSpent = failure instanceof HoldSpent
    // Who left an upstream that was still at work owes what it was asked, as for an answer that came to its end or beyond it.
    const isOwed = isComplete || isAbandoned || isCut || isSpent
    // And who left has not seen it fail.
    const failed = !isComplete && !isAbandoned && !isSpent
    // What is a fault was broken off by us.
    if (failed && !(failure instanceof Fault)) relayed.brokeOff?.()
    const outcome = await outcomeOf(relayed, delivered, { isOwed, failed })
    try {
      const { charged } = await settle(outcome, stream.reply.status, !outlet.hasLeft())
      if (isSpent) {
        const { endedBy } = failure
        const last = stream.reader.endAtLimit({ cost: formatUsd(charged), endedBy, usage: usageOf(outcome) })
        ended('hold_spent')
        if (last.length > 0) return outlet.end(Buffer.concat(last), { [relayed.endedByHeader]: endedBy })
        const fault = transportFault(kind, shortFault(failure))
        return outlet.breakOff(Buffer.from(stream.errorFrame(renderFault(fault))))
      }
      if (isComplete) {
        const last = stream.reader.release(formatUsd(charged))
        ended(outlet.hasLeft() ? 'caller_left' : 'complete')
        outlet.end(Buffer.concat(last))
        return
      }
      ended(isCut ? 'over_limit' : outlet.hasLeft() ? 'caller_left' : 'upstream_failed')
      const fault = transportFault(kind, failure ?? new Error('the stream ended before the answer did'))
      const told = withCost(fault, charged)
      // An upstream that told of its failure itself has said what there is to say.
      const own = stream.reader.endInError({ cost: formatUsd(charged), requestId: relayed.requestId })
      outlet.breakOff(own ?? Buffer.from(stream.errorFrame(renderFault(told))))
    } catch (error) {
      // What was not settled must not look like an answer that has ended well.
      ended('not_settled')
      outlet.breakOff(Buffer.from(stream.errorFrame(renderFault(asFault(error)))))
    }
  }

  /**
   * Passes on what comes until the answer is complete, or nothing more is to be had. What the caller got of it. A piece goes
   * from the upstream's connection to the caller's in one turn: a promise for each would cost as much as all the rest.
   */
  function pass({ stream, room, began, drains, growth }: Relayed, outlet: Outlet): Promise<Passed> {
    const {
      reply: { body },
      reader,
      outputGuard,
      stopsOnAbort,
    } = stream
    const { promise, resolve } = Promise.withResolvers<Passed>()
    let delivered: string | undefined
    let isOver = false
    let hasBegun = false
    let isPaused = false
    let isShortOfRoom = false
    let isCounting = false
    let hasEnded = false
    /** How the upstream broke off, while something waited to pass. */
    let brokenBy: unknown
    let lastHeldAtMs = 0
    let isAbandoned = false
    let countedFromBytes = outputGuard.quietBytes
    let endDrain = () => {}
    /** Of whatever is waited for longest. */
    let deadline: Deadline | undefined

    function end(failure?: unknown): void {
      isOver = true
      deadline?.callOff()
      endDrain()
      // What is held back of a complete answer will be delivered, unless it can't be settled and costs nothing.
      delivered ??= reader.state() === 'complete' ? reader.wholeText() : reader.deliveredText()
      resolve({ failure, delivered, isAbandoned })
    }

    /** The upstream has said everything, and only its end is waited for. */
    function endEarly(failure?: unknown): void {
      end(failure)
      deadline = startDeadline(LAST_BYTES_MS, () => body.giveUp())
      body.resume()
    }

    function write(pieces: readonly Buffer[]): void {
      if (!hasBegun && pieces.length > 0 && !outlet.hasLeft()) {
        hasBegun = true
        began()
      }
      for (const bytes of pieces) if (!outlet.write(bytes)) pause()
    }

    function pause(): void {
      isPaused = true
      body.pause()
    }

    function goOn(): void {
      isPaused = false
      lastHeldAtMs = clock.monotonicMs()
      resume()
    }

    /** Unless there is another reason to wait. */
    function resume(): void {
      if (!isPaused && !isShortOfRoom && !isCounting && !reader.isWaiting()) body.resume()
    }

    /** Counts what has come, twice as much of it each time, and cuts a stream that is beyond its limit. */
    function countOutput(): void {
      const bytes = reader.textBytes()
      countedFromBytes = 2 * bytes
      isCounting = true
      body.pause()
      outputGuard.isPassed(reader.wholeText(), bytes).then(
        (isPassed) => {
          isCounting = false
          if (isOver) return
          if (isPassed) {
            end(overLimit(outputGuard.limit))
            body.giveUp()
          } else resume()
        },
        (error: unknown) => {
          isCounting = false
          log.error('the output of a stream could not be counted', { error })
          if (!isOver) resume()
        },
      )
    }

    /** What is kept of a stream grows with its text. Its upstream waits where there is no room for more. */
    function makeRoom(): void {
      const isGiven = room.growReply(reader.keptBytes() + PASSING_BYTES, STREAM_MOST_BYTES)
      if (isGiven === true || isShortOfRoom) return
      isShortOfRoom = true
      body.pause()
      isGiven.then((hasRoom) => {
        isShortOfRoom = false
        if (isOver) return
        if (hasRoom) return resume()
        end(noRoom())
        body.giveUp()
      })
    }

    function giveUpForNobody(): void {
      if (isOver) return
      isAbandoned = true
      body.giveUp()
    }

    /** The answer is there. Who falls silent without ending the stream is not waited for; a caller without room is. */
    function waitForEnd(durationMs: number): Deadline {
      return startDeadline(durationMs, () => {
        const silentMs = isPaused || reader.isWaiting() ? 0 : clock.monotonicMs() - lastHeldAtMs
        if (silentMs >= LAST_FRAMES_MS) endEarly(finish())
        else deadline = waitForEnd(LAST_FRAMES_MS - silentMs)
      })
    }

    function finish(): unknown {
      try {
        write(reader.finish())
        return undefined
      } catch (failure) {
        return failure
      }
    }

    /** What came of a piece, or of what has waited. */
    function take(pieces: () => readonly Buffer[]): void {
      try {
        write(pieces())
      } catch (failure) {
        endEarly(failure)
        return
      }
      // Also for the last piece: a frame that repeats the whole answer is held back until the call has been settled.
      if (reader.keptBytes() + PASSING_BYTES > room.replyBytes) makeRoom()
      const isWaiting = reader.isWaiting()
      growth?.note(isWaiting)
      if (reader.state() !== 'open') endEarly()
      else if (isWaiting) body.pause()
      else if (hasEnded) end(brokenBy)
      else if (reader.isHolding()) {
        lastHeldAtMs = clock.monotonicMs()
        deadline ??= waitForEnd(LAST_FRAMES_MS)
      } else if (reader.textBytes() > countedFromBytes) countOutput()
    }

    function allow(textBytes: number): void {
      if (isOver) return
      take(() => reader.allow(textBytes))
      if (!isOver) resume()
    }

    /** An upstream that breaks off after the end of its answer has said everything. */
    function endBroken(failure: unknown): void {
      if (reader.hasStopOfItsOwn) finish()
      if (reader.isWaiting()) {
        // What came before may pass yet, and be all of the answer.
        hasEnded = true
        brokenBy = failure
      } else end(reader.state() === 'complete' ? undefined : failure)
    }

    if (growth !== undefined) {
      const allowed = growth.start({
        textBytes: reader.textBytes,
        // Of a protocol without a stop of its own, more may come of what looks like an end.
        isWritten: () => isOver || (reader.isHolding() && reader.hasStopOfItsOwn && !reader.isWaiting()),
        allow,
        stop(reason) {
          if (isOver) return
          end(reason)
          body.giveUp()
        },
      })
      reader.allow(allowed)
    }
    outlet.listen({
      onRoom: goOn,
      onLeft() {
        delivered ??= reader.deliveredText()
        // Once the answer has ended there is no meter left to stop, and its usage comes next.
        const isGivenUp = stopsOnAbort && !reader.isHolding()
        if (!isOver && !isGivenUp) endDrain = drains()
        if (!isOver) startDeadline(isGivenUp ? 0 : drainMs, giveUpForNobody)
        goOn()
      },
    })
    body.read({
      onPiece(piece) {
        if (isOver) body.giveUp()
        else take(() => reader.push(piece))
      },
      onEnd() {
        hasEnded = true
        if (isOver) return deadline?.callOff()
        const failure = finish()
        // What waits may pass yet.
        if (failure !== undefined || !reader.isWaiting()) end(failure)
      },
      onFailure(failure) {
        if (isOver) deadline?.callOff()
        else endBroken(failure)
      },
    })
    return promise
  }

  /** Does it when the time is over, unless it is called off. */
  function startDeadline(durationMs: number, work: () => void): Deadline {
    const off = new AbortController()
    clock.sleep(durationMs, off.signal).then(work, () => {})
    return { callOff: () => off.abort() }
  }
}

type Deadline = { readonly callOff: () => void }

type Passed = {
  readonly delivered: string
  readonly failure: unknown
  /** Whether it was given up because the caller had left, and not because of anything that the upstream did. */
  readonly isAbandoned: boolean
}

function overLimit(limit: number): Fault {
  const detail = `The limit is ${limit} tokens. Ask for less or raise it; if this happens often, tell the operator.`
  return new Fault('output_limit_passed', { detail })
}

/** What a stream cost that was cut stands in its error. The table says of a silent ledger that nothing was charged: of a stream that had begun, that is not so. */
function withCost(fault: Fault, charged: Nanos): Fault {
  const members = { ...fault.members, cost_usd: formatUsd(charged) }
  if (fault.code !== 'billing_dependency_timeout' || charged === ZERO) return fault.with({ members })
  const detail = 'The ledger did not answer in time, so the stream was cut. What you received is charged.'
  return new Fault(fault.code, { detail, members, cause: fault.cause })
}

function isOverLimit(failure: unknown): boolean {
  return failure instanceof Fault && failure.code === 'output_limit_passed'
}

/** As a stream tells it that was cut. */
function usageOf({ measured }: Settled): TokenUsage {
  const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = measured ?? {}
  return { input: inputTokens, output: outputTokens, cacheRead: cacheReadTokens, cacheWrite: cacheWriteTokens }
}

/** What was used of it is charged; where the caller got nothing, what it cost is our loss. */
async function outcomeOf(
  { stream, held, growth }: Relayed,
  delivered: string,
  { isOwed, failed }: { readonly isOwed: boolean; readonly failed: boolean },
): Promise<Settled> {
  try {
    const measured = await stream.measure(delivered, isOwed)
    if (measured === undefined) return { ending: endingOf(held(), await stream.lost(), { forgiven: true, failed }) }
    await growth?.cover(measured.outputTokens ?? 0)
    return { measured, ending: endingOf(held(), measured, { forgiven: false, failed }) }
  } catch {
    // Whatever an upstream wrote that we can't add up, the call has to end.
    const isUnreadable = delivered !== ''
    return { ending: endingOf(held(), undefined, { forgiven: true, failed: true, isUnreadable }) }
  }
}

type Settled = Pick<Outcome, 'ending' | 'measured'>

import { type Dispatcher, errors } from 'undici'
import type { Clock } from '../kernel/clock.ts'
import type { ReplyRoom } from '../kernel/memory-budget.ts'
import { CollectedBody } from '../protocols/collected-body.ts'
import { ConnectFailure } from './connector.ts'
import type { Deadlines, Watched } from './deadlines.ts'
import { type FailureReason, UpstreamFailure } from './failure.ts'
import { declaredLength, type ReplyHeaders, readReplyHeaders } from './reply-headers.ts'

/** How long each stage may take. */
export type StageDeadlines = {
  /** Until a connection is there and the request goes out, waiting for a free one included. */
  readonly connectMs: number
  /** From there until the answer's headers are complete. */
  readonly headersMs: number
  /** Between two pieces of the body, while anybody wants them. */
  readonly idleMs: number
  /** From the call to the last byte. */
  readonly totalMs: number
}

/** On the monotonic clock; 0 where it has not come to that. */
export type Timing = { readonly sentAtMs: number; readonly firstByteAtMs: number; readonly endedAtMs: number }

export type OpenReply = {
  readonly status: number
  readonly headers: ReplyHeaders
  readonly body: Body
  /** Goes on changing until the body has ended. */
  readonly timing: Timing
}

/** A body as it comes. Whoever has it reads it, or gives it up. */
export type Body = {
  /** From here on the reader is told of each piece in the turn in which it comes. Once only. */
  readonly read: (reader: BodyReader) => void
  /** No more pieces until `resume`. Meanwhile the upstream can't be late. */
  readonly pause: () => void
  readonly resume: () => void
  /** Nobody wants the rest. */
  readonly giveUp: () => void
}

/** Told of all pieces and then, once, of how the body ended. */
export type BodyReader = {
  readonly onPiece: (piece: Buffer) => void
  /** The body is complete. */
  readonly onEnd: () => void
  readonly onFailure: (failure: UpstreamFailure) => void
}

export type UpstreamReply = {
  readonly status: number
  readonly headers: ReplyHeaders
  readonly body: Buffer
  readonly timing: Timing
}

type Parts = {
  /** By name. */
  readonly upstream: string
  readonly maxBodyBytes: number
  /** Where a body that is collected has its place; without one, only its bound counts. */
  readonly room: ReplyRoom | undefined
  readonly deadlines: StageDeadlines
  readonly signal: AbortSignal | undefined
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly watch: Deadlines
  /** Told once, when undici has written the request or let go of it: it no longer waits for a connection. */
  readonly left: () => void
  /** Told of a failure that comes after the answer was opened. */
  readonly brokeOff: (failure: UpstreamFailure) => void
}

const INFORMATIONAL_LIMIT = 16
const HEADERS_LIMIT = 200
/** Beyond either, no more is taken from the connection before somebody reads. */
const WAITING_BYTES = 65_536
const WAITING_PIECES = 256

type State = 'waiting' | 'sent' | 'body' | 'ended' | 'failed'

/**
 * One request and its answer, as undici tells of them. It is sent once or not at all: undici puts a request back into its
 * queue on some losses of a connection, and is refused when it comes with it a second time.
 */
export class UpstreamExchange implements Dispatcher.DispatchHandler, Watched, Body {
  readonly #parts: Parts
  readonly #opened = Promise.withResolvers<OpenReply>()
  readonly #collected: PromiseWithResolvers<UpstreamReply> | undefined
  readonly #startedAtMs: number
  readonly #totalDeadlineMs: number
  readonly #timing = { sentAtMs: 0, firstByteAtMs: 0, endedAtMs: 0 }
  deadlineMs: number
  place = -1
  #state: State = 'waiting'
  #hasLeft = false
  #controller: Dispatcher.DispatchController | undefined
  #informational = 0
  #bytes = 0
  #status = 0
  #headers: ReplyHeaders = {}
  #whole: CollectedBody | undefined
  #pieces: Buffer[] = []
  #piecesBytes = 0
  #isPaused = false
  #failure: UpstreamFailure | undefined
  #reader: BodyReader | undefined
  #isTold = false

  constructor(parts: Parts, collects: boolean) {
    this.#parts = parts
    const nowMs = parts.clock.monotonicMs()
    this.#startedAtMs = nowMs
    this.#totalDeadlineMs = nowMs + parts.deadlines.totalMs
    this.deadlineMs = Math.min(nowMs + parts.deadlines.connectMs, this.#totalDeadlineMs)
    if (collects) this.#collected = Promise.withResolvers()
    // A failure is told to whoever asked for one of the two; the other must not end the process.
    this.#opened.promise.catch(() => {})
    parts.watch.watch(this)
    if (parts.signal?.aborted) this.#fail('aborted', parts.signal.reason)
    else parts.signal?.addEventListener('abort', this, { once: true })
  }

  get opened(): Promise<OpenReply> {
    return this.#opened.promise
  }

  /** The whole answer, of an exchange that collects it. */
  get collected(): Promise<UpstreamReply> {
    if (this.#collected === undefined) throw new TypeError('this answer is not collected')
    return this.#collected.promise
  }

  get isOver(): boolean {
    return this.#state === 'failed' || this.#state === 'ended'
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#leave()
    if (this.#state !== 'waiting') throw new Error('given up, or sent already')
    this.#controller = controller
    this.#state = 'sent'
    this.#timing.sentAtMs = this.#parts.clock.monotonicMs()
    this.#setDeadline(this.#timing.sentAtMs + this.#parts.deadlines.headersMs)
  }

  onResponseStarted(): void {
    this.#timing.firstByteAtMs ||= this.#parts.clock.monotonicMs()
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    given: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    if (this.#state !== 'sent') return
    if (Array.isArray(controller.rawHeaders) && controller.rawHeaders.length > 2 * HEADERS_LIMIT) {
      this.#fail('too_large')
      return
    }
    if (status < 200) {
      this.#informational += 1
      if (status === 101 || this.#informational > INFORMATIONAL_LIMIT) this.#fail('protocol')
      return
    }
    const headers = readReplyHeaders(given)
    const declared = declaredLength(headers)
    if (declared !== undefined && declared > this.#parts.maxBodyBytes && hasBody(status)) {
      this.#fail('too_large')
      return
    }
    this.#state = 'body'
    this.#status = status
    this.#headers = headers
    this.#setDeadline(this.#parts.clock.monotonicMs() + this.#parts.deadlines.idleMs)
    if (this.#collected !== undefined) {
      this.#whole = new CollectedBody(declared, this.#parts.maxBodyBytes)
      if (declared !== undefined) this.#makeRoom(declared, declared)
    } else this.#opened.resolve({ status, headers, body: this, timing: this.#timing })
  }

  onResponseData(_: Dispatcher.DispatchController, piece: Buffer): void {
    // Whoever resumes gets an empty piece of undici, whether there is more or not.
    if (this.#state !== 'body' || piece.length === 0) return
    this.#bytes += piece.length
    if (this.#bytes > this.#parts.maxBodyBytes) {
      this.#fail('too_large')
      return
    }
    this.#setDeadline(this.#parts.clock.monotonicMs() + this.#parts.deadlines.idleMs)
    if (this.#whole !== undefined) {
      this.#whole.add(piece)
      this.#makeRoom(this.#bytes, this.#parts.maxBodyBytes)
    } else if (this.#reader === undefined || this.#isPaused) this.#keep(piece)
    else this.#reader.onPiece(piece)
  }

  onResponseEnd(): void {
    if (this.#state !== 'body') return
    this.#state = 'ended'
    this.#timing.endedAtMs = this.#parts.clock.monotonicMs()
    this.#letGo()
    if (this.#whole !== undefined) {
      const body = this.#whole.whole()
      this.#collected?.resolve({ status: this.#status, headers: this.#headers, body, timing: this.#timing })
    }
    this.#tell()
  }

  onResponseError(_: Dispatcher.DispatchController | null, error: Error): void {
    this.#leave()
    if (!this.isOver) this.#fail(this.#reasonOf(error), error)
  }

  overdue(nowMs: number): void {
    if (nowMs >= this.#totalDeadlineMs) this.#fail('total_timeout')
    else if (this.#state === 'waiting') this.#fail('connect')
    else this.#fail(this.#state === 'sent' ? 'headers_timeout' : 'idle_timeout')
  }

  abandon(): void {
    if (!this.isOver) this.#fail('aborted')
  }

  /** The caller's signal. */
  handleEvent(): void {
    if (!this.isOver) this.#fail('aborted', this.#parts.signal?.reason)
  }

  read(reader: BodyReader): void {
    if (this.#reader !== undefined) throw new TypeError('the body is being read already')
    this.#reader = reader
    this.resume()
  }

  pause(): void {
    this.#isPaused = true
    this.#controller?.pause()
    // While we don't read, the upstream can't be late.
    this.deadlineMs = this.#totalDeadlineMs
  }

  resume(): void {
    this.#isPaused = false
    this.#tell()
    if (this.#isPaused || this.#state !== 'body') return
    this.#setDeadline(this.#parts.clock.monotonicMs() + this.#parts.deadlines.idleMs)
    this.#controller?.resume()
  }

  giveUp(): void {
    this.#pieces = []
    if (this.isOver) this.#tell()
    else this.#fail('aborted')
  }

  #keep(piece: Buffer): void {
    this.#pieces.push(piece)
    this.#piecesBytes += piece.length
    if (this.#isPaused || this.#piecesBytes >= WAITING_BYTES || this.#pieces.length >= WAITING_PIECES) this.pause()
  }

  /** What was kept comes first, and then how the body ended. */
  #tell(): void {
    const reader = this.#reader
    if (reader === undefined) return
    while (!this.#isPaused) {
      const piece = this.#pieces.shift()
      if (piece === undefined) break
      reader.onPiece(piece)
    }
    if (this.#pieces.length > 0 || this.#isTold || !this.isOver) return
    this.#isTold = true
    if (this.#failure === undefined) reader.onEnd()
    else reader.onFailure(this.#failure)
  }

  /** A body that outgrows its place waits for a larger one, and its upstream with it. */
  #makeRoom(neededBytes: number, mostBytes: number): void {
    const { room } = this.#parts
    if (room === undefined || neededBytes <= room.replyBytes || this.#isPaused) return
    const isGiven = room.growReply(neededBytes, mostBytes)
    if (isGiven === true) return
    this.pause()
    isGiven.then((hasRoom) => {
      if (this.#state !== 'body') return
      if (hasRoom) this.resume()
      else this.#fail('too_large', new Error('there was no room for so large an answer'))
    })
  }

  #setDeadline(stageMs: number): void {
    this.deadlineMs = Math.min(stageMs, this.#totalDeadlineMs)
  }

  #leave(): void {
    if (this.#hasLeft) return
    this.#hasLeft = true
    this.#parts.left()
  }

  #letGo(): void {
    this.#parts.watch.forget(this)
    this.#parts.signal?.removeEventListener('abort', this)
  }

  #fail(reason: FailureReason, cause?: unknown): void {
    const nowMs = this.#parts.clock.monotonicMs()
    const failure = new UpstreamFailure(this.#parts.upstream, {
      reason,
      certainty: this.#state === 'waiting' ? 'not_sent' : 'unknown',
      bytesReceived: this.#bytes,
      afterMs: nowMs - this.#startedAtMs,
      cause,
    })
    if (this.#state === 'body' && this.#collected === undefined) this.#parts.brokeOff(failure)
    this.#state = 'failed'
    this.#failure = failure
    this.#timing.endedAtMs = nowMs
    this.#letGo()
    this.#whole = undefined
    this.#opened.reject(failure)
    this.#collected?.reject(failure)
    // Closes the connection. One that waits in undici's queue is refused when its turn comes.
    this.#controller?.abort(failure)
    this.#tell()
  }

  #reasonOf(error: Error): FailureReason {
    if (error instanceof ConnectFailure) return error.reason
    if (error instanceof errors.ClientDestroyedError || error instanceof errors.ClientClosedError) return 'aborted'
    // What undici does not take from us.
    if (this.#state === 'waiting') return 'protocol'
    if (error instanceof errors.HeadersOverflowError) return 'too_large'
    if (error instanceof errors.HTTPParserError) return 'protocol'
    if (error instanceof errors.ResponseContentLengthMismatchError) return 'protocol'
    // A connection that was closed in good order in the middle of an answer, or before one that nobody had asked for.
    if (error instanceof errors.SocketError && (this.#state === 'body' || error.message.startsWith('bad ')))
      return 'protocol'
    return 'reset'
  }
}

function hasBody(status: number): boolean {
  return status !== 204 && status !== 304
}

import type { Socket } from 'node:net'
import { asOneMessage, createMessageSplitter, type Piece } from './postgres-messages.ts'
import { type ArmedInterruption, type Cut, type Direction, NOTHING, type Passed } from './tcp-interruption.ts'

/** What is the same for all connections of a proxy. */
export type Way = {
  stalled: boolean
  latencyMs: number
  /** How much passes in a second in each direction of a connection. */
  bytesPerSecond: number
  /** The longest run of bytes that passes at once, and how long after it the next one does. */
  sliceBytes: number
  sliceGapMs: number
  readonly protocol: 'postgres' | undefined
  readonly armed: Set<ArmedInterruption<ProxiedConnection>>
  readonly observe: (passed: Observation) => void
}

export type Observation = {
  readonly connection: number
  readonly direction: Direction
  readonly bytes: Buffer
  /** Whether a message has passed with them. */
  readonly endsMessage: boolean
}

/** What one direction holds back before it stops reading, as the buffers of a network would. */
const HELD_BYTES_MAX = 1024 * 1024
const GOODBYE_MS = 500

export class ProxiedConnection {
  /** Counted from 0 in the order in which they came. */
  readonly number: number
  readonly closed: Promise<void>
  readonly way: Way
  readonly #sockets: readonly Socket[]
  readonly #flows: readonly Flow[]
  #stalled = false

  constructor(way: Way, number: number, client: Socket, upstream: Socket) {
    this.way = way
    this.number = number
    this.#sockets = [client, upstream]
    this.#flows = [new Flow('toServer', client, upstream, this), new Flow('toClient', upstream, client, this)]
    this.closed = Promise.all(this.#sockets.map(untilClosed)).then(() => {})
    // A side that fails resets the other, unless nothing may pass: then the other does not learn of it.
    upstream.on('error', () => this.isStalled() || client.resetAndDestroy())
    client.on('error', () => this.isStalled() || upstream.resetAndDestroy())
  }

  cut(how: Cut): void {
    this.#stalled = true
    for (const socket of this.#sockets) {
      if (how === 'reset') socket.resetAndDestroy()
      else sayGoodbye(socket)
    }
  }

  /** Nothing more passes until it is resumed; both sides stay open. */
  stall(): void {
    this.#stalled = true
  }

  resume(): void {
    this.#stalled = false
    for (const flow of this.#flows) flow.pump()
  }

  /** One direction ends with a FIN as if its sender had no more to say; the other goes on. What comes after it is lost. */
  halfClose(direction: Direction): void {
    for (const flow of this.#flows) if (flow.direction === direction) flow.halfClose()
  }

  /** What is held back passes at once, however long it was to take. */
  hurry(): void {
    for (const flow of this.#flows) flow.hurry()
  }

  get heldBytes(): number {
    return this.#flows.reduce((sum, flow) => sum + flow.heldBytes, 0)
  }

  isStalled(): boolean {
    return this.#stalled || this.way.stalled
  }

  startCounting(interruption: ArmedInterruption<ProxiedConnection>): void {
    const flow = this.#flows.find(({ direction }) => direction === interruption.what.direction)
    interruption.countFrom(this, flow?.passed ?? NOTHING)
  }

  /** The interruption that a piece meets, and how much of the piece still passes. */
  interruptionOf(direction: Direction, piece: Piece, passed: Passed) {
    for (const interruption of this.way.armed) {
      if (interruption.what.direction !== direction) continue
      const length = interruption.passing(this, piece, passed)
      if (length !== undefined) return { interruption, length }
    }
    return undefined
  }

  /** Nothing more passes from now on; the rest is for when what may pass has been handed to the kernel. */
  interrupt(interruption: ArmedInterruption<ProxiedConnection>): () => void {
    this.way.armed.delete(interruption)
    this.#stalled = true
    return () => {
      const { effect } = interruption.what
      if (effect !== 'stall') this.cut(effect)
      interruption.hasFired = true
      interruption.fired.resolve(this)
    }
  }
}

/** One direction of a connection. */
class Flow {
  readonly direction: Direction
  readonly #source: Socket
  readonly #target: Socket
  readonly #connection: ProxiedConnection
  readonly #split: (chunk: Buffer) => Piece[]
  readonly #held: { readonly piece: Piece; dueAtMs: number }[] = []
  #heldBytes = 0
  #ended = false
  #halfClosed = false
  /** When the last of what is held will have passed. */
  #freeAtMs = 0
  #timer: NodeJS.Timeout | undefined
  #bytes = 0
  #messages = 0

  constructor(direction: Direction, source: Socket, target: Socket, connection: ProxiedConnection) {
    this.direction = direction
    this.#source = source
    this.#target = target
    this.#connection = connection
    const sender = direction === 'toServer' ? 'client' : 'server'
    this.#split = connection.way.protocol === 'postgres' ? createMessageSplitter(sender) : asOneMessage
    source.on('data', (chunk: Buffer) => this.#receive(chunk))
    // Who went away without a word has ended, too: what it sent before is still on its way.
    for (const event of ['end', 'close']) source.on(event, () => this.#end())
    target.on('close', () => source.resume())
  }

  get passed(): Passed {
    return { bytes: this.#bytes, messages: this.#messages }
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  halfClose(): void {
    this.#halfClosed = true
    this.#held.length = 0
    this.#heldBytes = 0
    this.#source.resume()
    if (!this.#target.destroyed) this.#target.end()
  }

  hurry(): void {
    for (const held of this.#held) held.dueAtMs = 0
    this.#freeAtMs = 0
    this.pump()
  }

  #receive(chunk: Buffer): void {
    if (this.#halfClosed) return
    for (const whole of this.#split(chunk)) {
      for (const piece of slicesOf(whole, this.#connection.way.sliceBytes)) {
        this.#held.push({ piece, dueAtMs: this.#dueAtMs(piece.bytes.length) })
        this.#heldBytes += piece.bytes.length
      }
    }
    if (this.#heldBytes > HELD_BYTES_MAX && !this.#target.destroyed) this.#source.pause()
    this.pump()
  }

  /** Bytes pass one after another: what comes later is never due earlier. */
  #dueAtMs(length: number): number {
    const { latencyMs, bytesPerSecond, sliceBytes, sliceGapMs } = this.#connection.way
    const startsAtMs = Math.max(performance.now() + latencyMs, this.#freeAtMs)
    const gapMs = Number.isFinite(sliceBytes) ? sliceGapMs : 0
    this.#freeAtMs = startsAtMs + gapMs + (length / bytesPerSecond) * 1_000
    return this.#freeAtMs
  }

  #end(): void {
    this.#ended = true
    this.pump()
  }

  /** Passes on what is due. */
  pump(): void {
    while (!this.#connection.isStalled()) {
      const [next] = this.#held
      if (next === undefined) {
        if (this.#ended && !this.#target.destroyed) this.#target.end()
        return
      }
      const waitMs = next.dueAtMs - performance.now()
      if (waitMs > 0) {
        clearTimeout(this.#timer)
        this.#timer = setTimeout(() => this.pump(), waitMs)
        return
      }
      this.#held.shift()
      this.#heldBytes -= next.piece.bytes.length
      if (this.#heldBytes <= HELD_BYTES_MAX) this.#source.resume()
      this.#pass(next.piece)
    }
  }

  #pass(piece: Piece): void {
    const met = this.#connection.interruptionOf(this.direction, piece, this.passed)
    if (met === undefined) {
      this.#write(piece, piece.bytes.length)
      return
    }
    const carryOut = this.#connection.interrupt(met.interruption)
    const rest = piece.bytes.subarray(met.length)
    if (rest.length > 0) {
      this.#held.unshift({ piece: { ...piece, bytes: rest, offset: piece.offset + met.length }, dueAtMs: 0 })
      this.#heldBytes += rest.length
    }
    if (met.length === 0) carryOut()
    else this.#write(piece, met.length, carryOut)
  }

  #write({ bytes: all, offset, messageLength }: Piece, length: number, done: () => void = () => {}): void {
    const bytes = all.subarray(0, length)
    this.#bytes += length
    const endsMessage = offset + length === messageLength
    if (endsMessage) this.#messages += 1
    this.#connection.way.observe({ connection: this.#connection.number, direction: this.direction, bytes, endsMessage })
    if (this.#target.destroyed) done()
    else this.#target.write(bytes, done)
  }
}

/** A piece in pieces of at most so many bytes. */
function slicesOf(piece: Piece, most: number): readonly Piece[] {
  if (piece.bytes.length <= most) return [piece]
  const slices: Piece[] = []
  for (let at = 0; at < piece.bytes.length; at += most)
    slices.push({ ...piece, bytes: piece.bytes.subarray(at, at + most), offset: piece.offset + at })
  return slices
}

function untilClosed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()))
}

/** A FIN; what the other side still sends is read and dropped, because closing over unread bytes would send a RST. */
function sayGoodbye(socket: Socket): void {
  socket.resume()
  socket.end()
  setTimeout(() => socket.destroy(), GOODBYE_MS).unref()
}

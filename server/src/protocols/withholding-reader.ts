import { CollectedBody } from './collected-body.ts'
import { UNREAD_ALLOWANCE, unreadText, unreadTextOf } from './generated-text.ts'
import { type Likeness, likenessOf } from './likeness.ts'
import { isMembers } from './members.ts'
import type { Reported, StreamReader } from './protocol.ts'
import { createFrameSplitter, type Frame } from './sse.ts'
import { COST, endOfMembers, endOfUsage, withoutCost } from './usage.ts'

/** Where a frame has room for the cost: at the end of its usage, or beside its other members, be it only where no frame before it had room. */
export type CostPlace = 'in_usage' | 'beside' | 'beside_if_nowhere'

/** What a protocol reads in a frame. */
export type Reading = {
  /** What was generated in it. */
  readonly text?: string
  /** What of it may be text that nobody expects there, where it has none and that is not all of it. */
  readonly unread?: unknown
  /** What the caller gets of the frame, where that is not all of it. */
  readonly bytes?: Buffer
  /** The answer ends with it: it is held back, and everything after it. */
  readonly isStop?: boolean
  /** The stream ends with it. It is held back too: a caller would take it for a good end. */
  readonly isEnd?: boolean
  readonly isError?: boolean
  /** Whether it says nothing but its text, and leaves the protocol's reader as it was, whatever that text is. */
  readonly isPlain?: boolean
  /** Where it can tell the caller what the call cost. */
  readonly takesCost?: CostPlace | undefined
}

type Parts = {
  /** The frame's data as JSON; undefined where it is none. So many bytes of text were counted before it. */
  readonly read: (frame: Frame, json: unknown, countedBytes: number) => Reading
  readonly reported: () => Reported
  /** Where a frame has its usage. */
  readonly usagePath?: readonly string[]
  /** Members that differ from one plain frame to the next and say nothing: a number of the frame, padding. */
  readonly varying?: readonly string[]
  /** The most that one frame has, of a protocol that holds back no more than a frame: it takes the room of what is held back. */
  readonly mostFrameBytes?: number
}

/** So many frames in a row may each be like no other before it is given up to look for likeness. */
const MOST_UNLIKE = 16
export const MOST_HELD_BYTES = 4_194_304

const BLANK_LINE = Buffer.from('\n\n')
const NO_BYTES: Buffer = Buffer.alloc(0)

/**
 * Passes frames on, and holds them back from the one on that ends the answer.
 *
 * It is complete when such a frame came and then the protocol's own end, or the end of the body. What comes after the
 * protocol's end is neither read nor kept, because no caller reads it. An error that comes before is final, and is passed
 * on like any frame: while frames are held back, it is held back too.
 */
export function createWithholdingReader({ read, reported, usagePath, varying, mostFrameBytes }: Parts): StreamReader {
  const frames = createFrameSplitter(mostFrameBytes)
  const text = new KeptText()
  const held = new CollectedBody(undefined)
  let heldBytes = 0
  /** Where the cost goes in what is held back, and whether that is in a usage: there callers look for it first. */
  let costAt = -1
  let isCostInUsage = false
  /** How much of the text is not held back, once anything is. */
  let passedText: number | undefined
  let deliveredText = 0
  /** What may be text in frames that gave none, until it is more than is let be. */
  let unread = ''
  let isUnreadCounted = false
  let likeness: Likeness | undefined
  let unlike = 0
  let isStopped = false
  let isEnded = false
  let isFailed = false
  let hasToldError = false
  let isReleased = false

  function take(frame: Frame, passed: Outgoing): void {
    const json = frame.data === undefined ? undefined : parsed(frame.data)
    const reading = read(frame, json, text.seenBytes)
    // The body broke off inside a frame. Half of one would spoil whatever the caller is told next.
    if (!frame.isTerminated && !isMembers(json) && reading.isEnd !== true) return
    if (reading.isError) isFailed = true
    if (reading.isStop) isStopped = true
    if (reading.isEnd) isEnded = true
    if (reading.isStop || reading.isEnd) passedText ??= text.bytes
    if (reading.text) text.add(reading.text)
    else addUnread(unreadIn(reading, frame, json))
    // An error passes before we know what the call cost.
    const rewritten = reading.isError && isMembers(json) ? withoutCost(frame) : undefined
    const bytes = terminated(frame, rewritten ?? reading.bytes ?? frame.bytes)
    if (passedText === undefined) {
      passed.add(bytes)
      if (reading.isError) hasToldError = true
      if (reading.isPlain && reading.text && unlike < MOST_UNLIKE) learn(frame, reading.text, bytes)
    } else {
      if (reading.takesCost) placeCost(frame, reading.takesCost, reading.bytes)
      hold(bytes)
    }
  }

  /** The last usage tells the cost; where none has room for it, the last frame that has. */
  function placeCost(frame: Frame, place: CostPlace, given: Buffer = frame.bytes): void {
    if (place === 'beside_if_nowhere' && costAt !== -1) return
    const inUsage = place === 'in_usage' ? endOfUsage(frame, usagePath) : -1
    const at = inUsage === -1 ? endOfMembers(frame) : inUsage
    if (at === -1 || (isCostInUsage && inUsage === -1)) return
    // What the caller does not get of the frame stood before that place.
    costAt = heldBytes + at - (frame.bytes.length - given.length)
    isCostInUsage = inUsage !== -1
  }

  /** A stream that we can't read is passed on all the same, and must be neither free nor endless. */
  function addUnread(found: string): void {
    unread += found
    if (!isUnreadCounted && unread.length <= UNREAD_ALLOWANCE) return
    isUnreadCounted = true
    text.add(unread)
    unread = ''
  }

  function learn(frame: Frame, text: string, bytes: Buffer): void {
    const trial = (data: string) => {
      const { isPlain, text: changed } = read({ ...frame, data }, parsed(data), 0)
      return isPlain ? changed : undefined
    }
    const learnt = likenessOf(frame, text, { passed: bytes, read: trial, varying })
    if (learnt === undefined) return
    likeness = learnt
    unlike += 1
  }

  /** Takes the frames at the start of a piece that are like one before; gives where the others start. Most are, in most streams. */
  function takeAlike(piece: Buffer, passed: Outgoing): number {
    let start = 0
    if (likeness === undefined || passedText !== undefined || !frames.isBetween()) return start
    while (start < piece.length) {
      if (!likeness.isAt(piece, start)) break
      const { textStart, textEnd, end, passedRest } = likeness
      text.addBytes(piece, textStart, textEnd)
      if (passedRest === undefined) passed.add(start === 0 && end === piece.length ? piece : piece.subarray(start, end))
      else {
        passed.add(piece.subarray(start, textEnd))
        passed.add(passedRest)
      }
      start = end
      unlike = 0
    }
    return start
  }

  function hold(bytes: Buffer): void {
    if (heldBytes + bytes.length > MOST_HELD_BYTES) {
      throw new RangeError(`After its answer, the stream has more than ${MOST_HELD_BYTES} bytes.`)
    }
    held.add(bytes)
    heldBytes += bytes.length
  }

  /** A stream beyond its bounds has failed, and what its last piece had before that is neither passed on nor delivered. */
  function passing(work: (passed: Outgoing) => void): readonly Buffer[] {
    if (isEnded || isReleased) return []
    const passed = new Outgoing()
    try {
      work(passed)
    } catch (error) {
      isFailed = true
      hasToldError = false
      throw error
    }
    deliveredText = passedText ?? text.bytes
    return passed.buffers()
  }

  return {
    push(piece) {
      return passing((passed) => {
        const start = takeAlike(piece, passed)
        if (start === piece.length) return
        frames.feed(start === 0 ? piece : piece.subarray(start))
        for (let frame = frames.next(); frame !== undefined; frame = isEnded ? undefined : frames.next()) {
          take(frame, passed)
        }
      })
    },

    finish() {
      return passing((passed) => {
        const last = frames.finish()
        if (last !== undefined) take(last, passed)
        isEnded = true
      })
    },

    state() {
      if (isFailed) return 'failed'
      return isStopped && isEnded ? 'complete' : 'open'
    },

    isHolding: () => passedText !== undefined,

    // A stop reason stands in one frame alone, and what comes after it is only about the answer.
    hasStopOfItsOwn: true,

    reported,

    hasToldError: () => hasToldError,

    deliveredText: () => text.first(deliveredText),

    wholeText: () => text.first(text.bytes),

    textBytes: () => text.seenBytes,

    keptBytes: () => text.bytes + heldBytes + frames.keptBytes(),

    release(cost) {
      if (isReleased) return []
      isReleased = true
      deliveredText = text.bytes
      if (heldBytes === 0) return []
      const bytes = held.whole()
      if (costAt === -1) return [bytes]
      return [bytes.subarray(0, costAt), Buffer.from(`,"${COST}":${JSON.stringify(cost)}`), bytes.subarray(costAt)]
    },
  }
}

/** An error, and what ends a stream, has no text but what its protocol reads in it. */
function unreadIn(reading: Reading, frame: Frame, json: unknown): string {
  if ('unread' in reading) return unreadText(reading.unread)
  return reading.isEnd || reading.isError ? '' : unreadTextOf(frame, json)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Whatever follows has to start a frame of its own. */
function terminated(frame: Frame, bytes: Buffer): Buffer {
  return frame.isTerminated || bytes.length === 0 ? bytes : Buffer.concat([bytes, BLANK_LINE])
}

/** What a piece gives to the caller: one view of the piece where nothing in it was changed, else one copy. */
class Outgoing {
  readonly #parts: Buffer[] = []
  /** The first of those that lie one behind the other, and how many bytes they have together. */
  #first = NO_BYTES
  #bytes = 0

  add(bytes: Buffer): void {
    if (bytes.buffer !== this.#first.buffer || bytes.byteOffset !== this.#first.byteOffset + this.#bytes) {
      this.#endRun()
      this.#first = bytes
    }
    this.#bytes += bytes.length
  }

  buffers(): readonly Buffer[] {
    this.#endRun()
    return this.#parts.length > 1 ? [Buffer.concat(this.#parts)] : this.#parts
  }

  #endRun(): void {
    const { buffer, byteOffset, length } = this.#first
    if (this.#bytes === length && length > 0) this.#parts.push(this.#first)
    else if (this.#bytes > 0) this.#parts.push(Buffer.from(buffer, byteOffset, this.#bytes))
    this.#bytes = 0
  }
}

export const MOST_TEXT_BYTES = 1_048_576
const FIRST_TEXT_BYTES = 1_024
/** What UTF-8 makes of a unit of UTF-16. */
const MOST_BYTES_OF_UNIT = 3
/** From here on a byte is no character of its own. */
const NOT_ASCII = 0x80

/**
 * Text that grows by a few characters at a time, in one block of UTF-8. It is cut at its bound: whoever counts its tokens
 * then counts too few, and the house bears the rest.
 */
class KeptText {
  #block = Buffer.alloc(0)
  #isCut = false
  bytes = 0
  /** Beyond the bound too. */
  seenBytes = 0

  add(text: string): void {
    if (this.#isCut) {
      this.seenBytes += Buffer.byteLength(text)
      return
    }
    const most = this.bytes + MOST_BYTES_OF_UNIT * text.length
    const needed = Math.min(most, MOST_TEXT_BYTES)
    if (needed > this.#block.length) this.#grow(needed)
    if (most > MOST_TEXT_BYTES) this.#isCut = this.bytes + Buffer.byteLength(text) > MOST_TEXT_BYTES
    const written = this.#block.write(text, this.bytes)
    this.bytes += written
    this.seenBytes += this.#isCut ? Buffer.byteLength(text) : written
  }

  /** Of UTF-8, some bytes of a piece. */
  addBytes(piece: Buffer, start: number, end: number): void {
    if (this.bytes + end - start > this.#block.length || !this.#addAscii(piece, start, end)) {
      this.add(piece.toString('utf8', start, end))
    }
  }

  first(bytes: number): string {
    return this.#block.toString('utf8', 0, bytes)
  }

  /** Byte by byte, which is quicker than to call anything for the few that most frames have. False where it is not ASCII. */
  #addAscii(piece: Buffer, start: number, end: number): boolean {
    if (this.#isCut) {
      this.seenBytes += end - start
      return true
    }
    let to = this.bytes
    for (let at = start; at < end; at += 1) {
      const byte = piece[at] ?? NOT_ASCII
      if (byte >= NOT_ASCII) return false
      this.#block[to] = byte
      to += 1
    }
    this.seenBytes += to - this.bytes
    this.bytes = to
    return true
  }

  #grow(needed: number): void {
    // Its own memory: a piece of the pool would keep all of its block from being freed for as long as the stream lasts.
    const larger = Buffer.allocUnsafeSlow(
      Math.max(needed, Math.min(2 * this.#block.length, MOST_TEXT_BYTES), FIRST_TEXT_BYTES),
    )
    this.#block.copy(larger, 0, 0, this.bytes)
    this.#block = larger
  }
}

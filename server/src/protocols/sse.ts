/** A frame of server-sent events: what a blank line ends. */
export type Frame = {
  /** As they came, through the blank line. */
  readonly bytes: Buffer
  /** False of the last one where the body ended before its blank line. */
  readonly isTerminated: boolean
  readonly event: string | undefined
  /** The data lines, joined by line feeds; undefined where there is none, as in a comment. */
  readonly data: string | undefined
  /** Where the data is in `bytes`; -1 where it is not in one line. */
  readonly dataStart: number
  readonly dataEnd: number
}

export type FrameSplitter = {
  /** Takes a piece, once `next` has given all frames of the one before. Frames are views of it: it must not change. */
  readonly feed: (piece: Buffer) => void
  /** The next frame that is complete. Throws a RangeError at a frame that is too large. */
  readonly next: () => Frame | undefined
  /** Whether a frame starts with the next piece, and it is not the first. */
  readonly isBetween: () => boolean
  /** What is kept of a frame that is not complete. */
  readonly keptBytes: () => number
  /** What is left at the end of the body. */
  readonly finish: () => Frame | undefined
}

export const MOST_FRAME_BYTES = 1_048_576

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const SPACE = 0x20
const EMPTY = Buffer.alloc(0)
const BOM = Buffer.from([0xef, 0xbb, 0xbf])
const FIRST_KEPT_BYTES = 1_024

/** Within a line. */
const IN_LINE = 0
/** Where a line starts. */
const AT_START = 1
/** Where a line starts, unless a line feed comes: that belongs to the line before. */
const AFTER_CR = 2
/** Behind the carriage return of a blank line: the frame ends here, or behind a line feed. */
const AFTER_BLANK_CR = 3

/**
 * Splits a stream into frames. No byte is looked at again when the next piece comes, however small the pieces are. A frame
 * that ends in a carriage return is given when it is known whether a line feed belongs to it.
 */
export function createFrameSplitter(mostBytes = MOST_FRAME_BYTES): FrameSplitter {
  let piece: Buffer = EMPTY
  /** Where in the piece the frame starts, or goes on. */
  let start = 0
  let place = AT_START
  /** The beginning of the frame, where it came in earlier pieces. */
  let kept: Buffer = EMPTY
  let keptBytes = 0
  /** Where the frame's lines end that are not blank, counted from the start of the frame. */
  let lineEnds: number[] = []
  let nextLf = -1
  let nextCr = -1
  let isFirst = true

  /** Behind the frame that starts at `start`, or -1 where the piece ends before it. */
  function endOfFrame(): number {
    let at = start
    while (at < piece.length) {
      if (place === IN_LINE) {
        at = endOfLine(at)
        if (at === piece.length) return -1
        lineEnds.push(keptBytes + at - start)
      }
      const byte = piece[at]
      if (place === AFTER_BLANK_CR || (place === AT_START && byte === LF)) {
        place = AT_START
        return byte === LF ? at + 1 : at
      }
      place = placeAfter(place, byte)
      at += 1
    }
    return -1
  }

  /** The next line feed and the next carriage return are looked for once, not once a line. */
  function endOfLine(from: number): number {
    if (nextLf < from) nextLf = indexOrEnd(piece, LF, from)
    if (nextCr < from) nextCr = indexOrEnd(piece, CR, from)
    return nextLf < nextCr ? nextLf : nextCr
  }

  /** A frame in one piece is a view of it; one in several is put together. */
  function cut(end: number): Buffer {
    const rest = piece.subarray(start, end)
    start = end
    if (keptBytes === 0) {
      if (rest.length > mostBytes) throw tooLarge(mostBytes)
      return rest
    }
    keep(rest)
    return takeKept()
  }

  function keep(part: Buffer): void {
    const needed = keptBytes + part.length
    if (needed > mostBytes) throw tooLarge(mostBytes)
    if (needed > kept.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, Math.min(2 * kept.length, mostBytes), FIRST_KEPT_BYTES))
      kept.copy(larger, 0, 0, keptBytes)
      kept = larger
    }
    part.copy(kept, keptBytes)
    keptBytes = needed
  }

  function takeKept(): Buffer {
    const bytes = kept.subarray(0, keptBytes)
    kept = EMPTY
    keptBytes = 0
    return bytes
  }

  function frameOf(bytes: Buffer, isTerminated: boolean): Frame {
    const hasBom = isFirst && bytes.length >= BOM.length && BOM.compare(bytes, 0, BOM.length) === 0
    const ends = lineEnds
    lineEnds = []
    isFirst = false
    return readFrame(bytes, hasBom ? BOM.length : 0, ends, isTerminated)
  }

  return {
    feed(next) {
      piece = next
      start = 0
      nextLf = -1
      nextCr = -1
    },

    next() {
      const end = endOfFrame()
      if (end !== -1) return frameOf(cut(end), true)
      if (start < piece.length) keep(piece.subarray(start))
      piece = EMPTY
      start = 0
      return undefined
    },

    isBetween: () => place === AT_START && keptBytes === 0 && !isFirst,

    keptBytes: () => keptBytes,

    finish() {
      if (keptBytes === 0) return undefined
      if (place === IN_LINE) lineEnds.push(keptBytes)
      const isTerminated = place === AFTER_BLANK_CR
      place = AT_START
      return frameOf(takeKept(), isTerminated)
    },
  }
}

function placeAfter(place: number, byte: number | undefined): number {
  if (byte === LF) return AT_START
  if (byte === CR) return place === IN_LINE ? AFTER_CR : AFTER_BLANK_CR
  return IN_LINE
}

function indexOrEnd(bytes: Buffer, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from)
  return at === -1 ? bytes.length : at
}

function tooLarge(mostBytes: number): RangeError {
  return new RangeError(`An event of the stream has more than ${mostBytes} bytes.`)
}

function readFrame(bytes: Buffer, first: number, lineEnds: readonly number[], isTerminated: boolean): Frame {
  let event: string | undefined
  let data: string | undefined
  let dataStart = -1
  let dataEnd = -1
  let start = first
  for (const end of lineEnds) {
    if (isField(bytes, start, end, 'data')) {
      const isOnly = data === undefined
      const valueStart = startOfValue(bytes, start + 4, end)
      const value = bytes.toString('utf8', valueStart, end)
      data = data === undefined ? value : `${data}\n${value}`
      dataStart = isOnly ? valueStart : -1
      dataEnd = isOnly ? end : -1
    } else if (isField(bytes, start, end, 'event')) {
      event = bytes.toString('utf8', startOfValue(bytes, start + 5, end), end)
    }
    start = end + (bytes[end] === CR && bytes[end + 1] === LF ? 2 : 1)
  }
  return { bytes, isTerminated, event, data, dataStart, dataEnd }
}

/** A field without a colon is one without a value. */
function isField(bytes: Buffer, start: number, end: number, name: string): boolean {
  const behind = start + name.length
  if (behind > end || (behind < end && bytes[behind] !== COLON)) return false
  for (let at = 0; at < name.length; at += 1) if (bytes[start + at] !== name.charCodeAt(at)) return false
  return true
}

function startOfValue(bytes: Buffer, behindName: number, end: number): number {
  const start = behindName + 1
  if (start >= end) return end
  return bytes[start] === SPACE ? start + 1 : start
}

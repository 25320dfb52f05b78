import { BACKSLASH, QUOTE, SPACE } from './json-bytes.ts'
import { type Frame, MOST_FRAME_BYTES } from './sse.ts'

/**
 * What frames of text look like in a stream. One is like another, wherever it stands, if it has the same bytes around its text
 * and around what varies from frame to frame, and none of these has a byte that means something in JSON: then it can only be read
 * like that one.
 */
export type Likeness = {
  /** Whether a whole frame that is like the first one starts there. If so, the places below are those of that frame. */
  readonly isAt: (bytes: Buffer, start: number) => boolean
  readonly textStart: number
  readonly textEnd: number
  readonly end: number
  /** What the caller gets behind the text; undefined where it is all that there is. */
  readonly passedRest: Buffer | undefined
}

type Learning = {
  /** The bytes that the caller gets. */
  readonly passed: Buffer
  /** The text in other data; undefined where it says anything else too. */
  readonly read: (data: string) => string | undefined
  /** Names of members that vary and say nothing. */
  readonly varying?: readonly string[] | undefined
}

const LF = 0x0a
const ZERO = 0x30
const NINE = 0x39
const FIRST_OF_BOM = 0xef
const REPLACEMENT = '\ufffd'
/** Of a number that a parser reads exactly. */
const MOST_DIGITS = 15

/**
 * Learns it from a frame of which the text is known. Where the text stands is found by a trial: if a change in that place, and
 * there alone, is read as the same change of the text, it is nowhere else. Undefined where it can't be found, or the frame ends in
 * a way of which it depends on the next byte whether it has ended.
 */
export function likenessOf(frame: Frame, text: string, { passed, read, varying }: Learning): Likeness | undefined {
  const { bytes, data, dataStart, isTerminated } = frame
  if (!isTerminated || bytes.at(-1) !== LF || bytes[0] === FIRST_OF_BOM) return undefined
  // Bytes that are no UTF-8 were replaced, so that places in the data are not those in the bytes.
  if (data === undefined || dataStart === -1 || !isOrdinary(text) || data.includes(REPLACEMENT)) return undefined
  const place = data.lastIndexOf(`"${text}"`) + 1
  if (place === 0) return undefined
  const end = place + text.length
  if (read(`${data.slice(0, end)}.${data.slice(end)}`) !== `${text}.`) return undefined
  const gap: Gap = { kind: 'text', start: place, end }
  const gaps = [gap, ...(varying ?? []).flatMap((name) => gapOf(data, name))].toSorted(
    (one, two) => one.start - two.start,
  )
  const inBytes = gaps.map(({ kind, start, end }) => ({
    kind,
    start: dataStart + Buffer.byteLength(data.slice(0, start)),
    end: dataStart + Buffer.byteLength(data.slice(0, end)),
  }))
  if (passed === bytes) return createLikeness(bytes, inBytes, undefined)
  const textEnd = dataStart + Buffer.byteLength(data.slice(0, end))
  // Something before the text was left out for the caller, or something behind it varies too.
  if (gaps.length > 1 || !bytes.subarray(0, textEnd).equals(passed.subarray(0, textEnd))) return undefined
  return createLikeness(bytes, inBytes, Buffer.from(passed.subarray(textEnd)))
}

/** Where frames may differ. */
type Gap = { readonly kind: 'text' | 'number' | 'string'; readonly start: number; readonly end: number }

/** The value of a member that varies. No string has these bytes in it: its quotes would have a backslash before them. */
function gapOf(data: string, name: string): readonly Gap[] {
  const { indices } = new RegExp(`"${name}":(?:(?<number>\\d+)|"(?<string>[^"\\\\]*)")`, 'd').exec(data) ?? {}
  const { number, string } = indices?.groups ?? {}
  if (number !== undefined) return [{ kind: 'number', start: number[0], end: number[1] }]
  return string === undefined ? [] : [{ kind: 'string', start: string[0], end: string[1] }]
}

function createLikeness(bytes: Buffer, gaps: readonly Gap[], passedRest: Buffer | undefined): Likeness {
  const starts = [0, ...gaps.map(({ end }) => end)]
  const fixed = starts.map((start, at) => Buffer.from(bytes.subarray(start, gaps[at]?.start)))
  return new LearntLikeness(fixed, gaps, passedRest)
}

/** Its places are its own members, so that nothing is made for a frame. */
class LearntLikeness implements Likeness {
  readonly passedRest: Buffer | undefined
  /** Each but the last is followed by a gap. */
  readonly #fixed: readonly Buffer[]
  readonly #gaps: readonly Gap['kind'][]
  textStart = 0
  textEnd = 0
  end = 0

  constructor(fixed: readonly Buffer[], gaps: readonly Gap[], passedRest: Buffer | undefined) {
    this.#fixed = fixed
    this.#gaps = gaps.map(({ kind }) => kind)
    this.passedRest = passedRest
  }

  isAt(bytes: Buffer, start: number): boolean {
    let at = start
    for (let index = 0; index < this.#fixed.length; index += 1) {
      const part = this.#fixed[index]
      if (part === undefined || !isPartAt(part, bytes, at)) return false
      at += part.length
      const gap = this.#gaps[index]
      if (gap === undefined) break
      const end = gap === 'number' ? endOfNumber(bytes, at) : endOfOrdinary(bytes, at)
      if (end === at && gap !== 'string') return false
      if (gap === 'text') {
        this.textStart = at
        this.textEnd = end
      }
      at = end
    }
    this.end = at
    return at - start <= MOST_FRAME_BYTES
  }
}

/** Byte by byte, which is quicker than to call anything for as few as a frame has. */
function isPartAt(part: Buffer, bytes: Buffer, start: number): boolean {
  if (start + part.length > bytes.length) return false
  for (let at = 0; at < part.length; at += 1) if (bytes[start + at] !== part[at]) return false
  return true
}

function isOrdinary(text: string): boolean {
  const bytes = Buffer.from(text)
  return endOfOrdinary(bytes, 0) === bytes.length
}

/** What a JSON string has as it is: no quote, no backslash, no control character. */
function endOfOrdinary(bytes: Buffer, start: number): number {
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? QUOTE
    if (byte === QUOTE || byte === BACKSLASH || byte < SPACE) return at
  }
  return bytes.length
}

/** Digits as JSON has them, without a zero before others. The start where there are none, or too many. */
function endOfNumber(bytes: Buffer, start: number): number {
  let at = start
  while (at - start <= MOST_DIGITS && isDigit(bytes[at])) at += 1
  const isPadded = bytes[start] === ZERO && at - start > 1
  return isPadded || at - start > MOST_DIGITS ? start : at
}

function isDigit(byte = 0): boolean {
  return byte >= ZERO && byte <= NINE
}

import { BACKSLASH, QUOTE, SPACE } from './json-bytes.ts'
import { type Frame, MOST_FRAME_BYTES } from './sse.ts'

/**
 * What frames of text look like in a stream. One is like another, wherever it stands, if it has the same bytes before its
 * text and the same behind it, and its text has no byte that means something in JSON: then it can only be read like that one.
 */
export type Likeness = {
  /** Where the text starts, from the start of a frame. */
  readonly textAt: number
  /** How many bytes there are behind the text. */
  readonly restBytes: number
  /** What the caller gets of these; undefined where it is all of them. */
  readonly passedRest: Buffer | undefined
  /** Where the text ends of a frame that starts there and is like the first one; -1 where it is not like that, or not whole. */
  readonly endOfText: (bytes: Buffer, start: number) => number
}

const LF = 0x0a
const FIRST_OF_BOM = 0xef
const REPLACEMENT = '\ufffd'

/**
 * Learns it from a frame of which the text is known, and the bytes that the caller gets. Where the text stands is found by a
 * trial: if a change in that place, and there alone, is read as the same change of the text, it is nowhere else. Undefined
 * where it can't be found, or the frame ends in a way of which it depends on the next byte whether it has ended.
 */
export function likenessOf(
  frame: Frame,
  text: string,
  passed: Buffer,
  read: (data: string) => string | undefined,
): Likeness | undefined {
  const { bytes, data, dataStart, isTerminated } = frame
  if (!isTerminated || bytes.at(-1) !== LF || bytes[0] === FIRST_OF_BOM) return undefined
  // Bytes that are no UTF-8 were replaced, so that places in the data are not those in the bytes.
  if (data === undefined || dataStart === -1 || !isOrdinary(text) || data.includes(REPLACEMENT)) return undefined
  const place = data.lastIndexOf(`"${text}"`) + 1
  if (place === 0) return undefined
  const end = place + text.length
  if (read(`${data.slice(0, end)}.${data.slice(end)}`) !== `${text}.`) return undefined
  const textAt = dataStart + Buffer.byteLength(data.slice(0, place))
  const textEnd = textAt + Buffer.byteLength(text)
  // Something before the text was left out for the caller.
  if (!bytes.subarray(0, textEnd).equals(passed.subarray(0, textEnd))) return undefined
  const rest = passed === bytes ? undefined : Buffer.from(passed.subarray(textEnd))
  return createLikeness(Buffer.from(bytes.subarray(0, textAt)), Buffer.from(bytes.subarray(textEnd)), rest)
}

function createLikeness(before: Buffer, behind: Buffer, passedRest: Buffer | undefined): Likeness {
  return {
    textAt: before.length,
    restBytes: behind.length,
    passedRest,
    endOfText(bytes, start) {
      const textStart = start + before.length
      if (!isAt(before, bytes, start)) return -1
      const textEnd = endOfOrdinary(bytes, textStart)
      if (textEnd === textStart || textEnd - start + behind.length > MOST_FRAME_BYTES) return -1
      return isAt(behind, bytes, textEnd) ? textEnd : -1
    },
  }
}

/** Byte by byte, which is quicker than to call anything for as few as a frame has. */
function isAt(part: Buffer, bytes: Buffer, start: number): boolean {
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

/**
 * JSON in its bytes: the ones that mean something, and where a string or a value ends. The bytes have been parsed before, so that they
 * are valid; nothing is allocated, and nothing recurses.
 */
const TAB = 0x09
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
export const SPACE = 0x20
export const QUOTE = 0x22
export const COMMA = 0x2c
export const OPEN_BRACKET = 0x5b
export const BACKSLASH = 0x5c
export const CLOSE_BRACKET = 0x5d
export const OPEN_BRACE = 0x7b
export const CLOSE_BRACE = 0x7d
export const ASCII_END = 0x80

/** The place after the value that begins at `start`. */
export function endOfValue(raw: Buffer, start: number): number {
  const first = raw[start]
  if (first === QUOTE) return endOfString(raw, start)
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return endOfContainer(raw, start)
  let at = start
  while (at < raw.length && !isEndOfScalar(raw[at])) at += 1
  return at
}

function endOfContainer(raw: Buffer, start: number): number {
  let depth = 0
  let at = start
  while (at < raw.length) {
    const code = raw[at]
    if (code === QUOTE) {
      at = endOfString(raw, at)
      continue
    }
    at += 1
    if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1
    if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth -= 1
    if (depth === 0) return at
  }
  return at
}

/** So far a loop finds the end of a string sooner than a search, which costs more to begin and less to go on. */
const NEAR_BYTES = 48

/** The place after the quote that ends the string that begins at `start`. */
export function endOfString(raw: Buffer, start: number): number {
  const farAt = Math.min(start + NEAR_BYTES, raw.length)
  let at = start + 1
  while (at < farAt) {
    const code = raw[at]
    if (code === QUOTE) return at + 1
    at += code === BACKSLASH ? 2 : 1
  }
  let end = raw.indexOf(QUOTE, at)
  while (end !== -1 && isEscaped(raw, end)) end = raw.indexOf(QUOTE, end + 1)
  return end === -1 ? raw.length : end + 1
}

function isEscaped(raw: Buffer, at: number): boolean {
  let before = at - 1
  while (raw[before] === BACKSLASH) before -= 1
  return (at - before) % 2 === 0
}

export function afterSpace(raw: Buffer, start: number): number {
  let at = start
  while (isSpace(raw[at])) at += 1
  return at
}

/** The place after the last byte before `end` that is no space. */
export function beforeSpace(raw: Buffer, end: number): number {
  let at = end
  while (isSpace(raw[at - 1])) at -= 1
  return at
}

function isSpace(code: number | undefined): boolean {
  return code === SPACE || code === LINE_FEED || code === CARRIAGE_RETURN || code === TAB
}

function isEndOfScalar(code: number | undefined): boolean {
  return isSpace(code) || code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET
}

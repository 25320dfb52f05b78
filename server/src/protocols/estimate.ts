/**
 * A typical count of tokens without a tokenizer: one pass over the text, by kinds of characters. The figures are fitted to
 * current byte-pair vocabularies of about 200,000 tokens; older ones make up to three times as many, or more, of scripts
 * other than Latin.
 */
export function estimateTokens(text: string): number {
  return text.length > LONG_LENGTH ? estimateByParts(text) : estimateWhole(text)
}

/** Beyond it, a text is estimated by parts that are spread over it: one pass over all would take a long turn. */
const LONG_LENGTH = 1_048_576
const PARTS = 32
const PART_LENGTH = 16_384

function estimateByParts(text: string): number {
  const step = Math.floor((text.length - PART_LENGTH) / (PARTS - 1))
  let tokens = 0
  for (let part = 0; part < PARTS; part += 1)
    tokens += estimateWhole(text.slice(part * step, part * step + PART_LENGTH))
  return Math.ceil((tokens * text.length) / (PARTS * PART_LENGTH))
}

function estimateWhole(text: string): number {
  const { length } = text
  const units = unitsOf(text)
  const sums = { plain: 0, plainWords: 0, markedWords: 0, marked: 0 }
  for (let at = 0; at < length; ) {
    const kind = kindAt(units, at)
    if (isLatin(kind)) {
      const end = endOfWord(units, at, length)
      if (hasMarks(units, at, end)) {
        sums.markedWords += 1
        sums.marked += Math.max(1, (end - at - LETTERS_WITHOUT_A_TOKEN) * TOKENS_PER_MARKED_LETTER)
      } else {
        sums.plainWords += 1
        sums.plain += Math.max(1, 1 + (end - at - LETTERS_OF_A_TOKEN) * TOKENS_PER_FURTHER_LETTER)
      }
      at = end
    } else if (kind === OTHER) {
      sums.marked += tokensOfLetter(units[at] ?? 0)
      at += 1
    } else {
      const end = endOfRun(units, at, length)
      sums.marked += tokensOfRun(units, at, end, length)
      at = end
    }
  }
  // Where words have marks, those without are of the same language, and seldom tokens of their own.
  const share = sums.markedWords / Math.max(1, sums.markedWords + sums.plainWords)
  return Math.ceil(sums.marked + sums.plain * (1 + share * TOKENS_PER_PLAIN_WORD_AMONG_MARKED))
}

/**
 * Where the code units of every text are looked at: to ask a string for each of them takes twice as long. It has room for the longest that
 * there has been, which is at most `LONG_LENGTH`.
 */
let room = new Uint16Array(PART_LENGTH)

function unitsOf(text: string): Uint16Array {
  if (text.length > room.length) room = new Uint16Array(text.length)
  // The lower byte first, as every processor has them that we run on.
  Buffer.from(room.buffer).write(text, 'utf16le')
  return room
}

const ASCII_END = 0x80
const LATIN_END = 0x250
const VIETNAMESE_START = 0x1e00
const VIETNAMESE_END = 0x1f00
const LETTERS_OF_A_TOKEN = 8
const TOKENS_PER_FURTHER_LETTER = 0.12
const LETTERS_WITHOUT_A_TOKEN = 1.2
const TOKENS_PER_MARKED_LETTER = 0.48
const TOKENS_PER_PLAIN_WORD_AMONG_MARKED = 0.9
const DIGITS_OF_A_TOKEN = 3
const SIGNS_OF_A_TOKEN = 3
const TOKENS_PER_OTHER_UNIT = 1

/** Tokens for each code unit up to a place in Unicode, from the end of the range before it. */
const RANGES: readonly (readonly [end: number, tokens: number])[] = [
  [0xc0, 1],
  [0x370, 0.6],
  [0x400, 0.42], // Greek
  [0x530, 0.36], // Cyrillic
  [0x590, 0.5], // Armenian
  [0x600, 0.46], // Hebrew
  [0x900, 0.41], // Arabic
  [0x980, 0.36], // Devanagari
  [0xe00, 0.43], // further scripts of India
  [0xe80, 0.48], // Thai
  [0x10a0, 0.7],
  [0x1100, 0.48], // Georgian
  [0x1200, 0.8],
  [0x1f00, 0.7],
  [0x2000, 0.6], // Greek with breathings
  [0x2100, 1], // punctuation
  [0x3000, 1.3], // signs
  [0x3040, 1], // punctuation of East Asia
  [0x3100, 0.72], // kana
  [0x3400, 1],
  [0xa000, 0.85], // Han
  [0xac00, 1],
  [0xd800, 0.75], // Hangul
  // Each half of what needs two units: mostly emoji.
  [0xe000, 0.9],
  [0x10000, 1],
]

function tokensOfLetter(code: number): number {
  let low = 0
  let high = RANGES.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if (code < (RANGES[middle]?.[0] ?? 0)) high = middle
    else low = middle + 1
  }
  return RANGES[low]?.[1] ?? TOKENS_PER_OTHER_UNIT
}

/** The end of a word, or of a part of one that ends before a capital letter. */
function endOfWord(units: Uint16Array, start: number, length: number): number {
  let end = start + 1
  let before = kindAt(units, start)
  for (; end < length; end += 1) {
    const kind = kindAt(units, end)
    if (!isLatin(kind) || (kind === CAPITAL && before !== CAPITAL)) break
    before = kind
  }
  return end
}

function hasMarks(units: Uint16Array, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if (kindAt(units, at) === MARKED) return true
  return false
}

/** The end of a run of digits, of space, or of signs. */
function endOfRun(units: Uint16Array, start: number, length: number): number {
  const kind = kindAt(units, start)
  let end = start + 1
  while (end < length && kindAt(units, end) === kind) end += 1
  return end
}

function tokensOfRun(units: Uint16Array, start: number, end: number, length: number): number {
  const kind = kindAt(units, start)
  if (kind === DIGIT) return Math.ceil((end - start) / DIGITS_OF_A_TOKEN)
  if (kind === SIGN) return Math.ceil((end - start) / SIGNS_OF_A_TOKEN)
  // A single space belongs to what follows it, unless that is a number.
  const isSingle = end - start === 1 && units[start] === 32
  const isBeforeNumber = end < length && kindAt(units, end) === DIGIT
  return isSingle && !isBeforeNumber ? 0 : 1
}

// Those of Latin letters come first. A marked one is none of ASCII, as in many languages.
const SMALL = 0
const CAPITAL = 1
const MARKED = 2
const DIGIT = 3
const SPACE = 4
const SIGN = 5
const OTHER = 6

/** Of each code unit: to look it up takes less than to compare. */
const KINDS = Uint8Array.from({ length: 0x10000 }, (_, code) => {
  if (code >= ASCII_END) return isMarked(code) ? MARKED : OTHER
  if (code >= 97 && code <= 122) return SMALL
  if (code >= 65 && code <= 90) return CAPITAL
  if (code >= 48 && code <= 57) return DIGIT
  return code <= 32 ? SPACE : SIGN
})

function kindAt(units: Uint16Array, at: number): number {
  return KINDS[units[at] ?? 0] ?? OTHER
}

function isLatin(kind: number): boolean {
  return kind <= MARKED
}

function isMarked(code: number): boolean {
  if (code >= VIETNAMESE_START && code < VIETNAMESE_END) return true
  return code >= 0xc0 && code < LATIN_END && code !== 0xd7 && code !== 0xf7
}

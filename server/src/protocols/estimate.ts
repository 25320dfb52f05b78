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
  const isPlain = ASCII_ALONE.test(text)
  const sums = { plain: 0, plainWords: 0, markedWords: 0, marked: 0 }
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at)
    if (isLatin(code)) {
      const end = endOfWord(text, at)
      if (!isPlain && hasMarks(text, at, end)) {
        sums.markedWords += 1
        sums.marked += Math.max(1, (end - at - LETTERS_WITHOUT_A_TOKEN) * TOKENS_PER_MARKED_LETTER)
      } else {
        sums.plainWords += 1
        sums.plain += Math.max(1, 1 + (end - at - LETTERS_OF_A_TOKEN) * TOKENS_PER_FURTHER_LETTER)
      }
      at = end
    } else if (code < ASCII_END) {
      const end = endOfRun(text, at)
      sums.marked += tokensOfRun(text, at, end)
      at = end
    } else {
      sums.marked += tokensOfLetter(code)
      at += 1
    }
  }
  // Where words have marks, those without are of the same language, and seldom tokens of their own.
  const share = sums.markedWords / Math.max(1, sums.markedWords + sums.plainWords)
  return Math.ceil(sums.marked + sums.plain * (1 + share * TOKENS_PER_PLAIN_WORD_AMONG_MARKED))
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are ASCII too.
const ASCII_ALONE = /^[\x00-\x7f]*$/
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
function endOfWord(text: string, start: number): number {
  let end = start + 1
  let isAfterCapital = isCapital(text.charCodeAt(start))
  for (let code = text.charCodeAt(end); isLatin(code); code = text.charCodeAt(end)) {
    const isOne = isCapital(code)
    if (isOne && !isAfterCapital) break
    isAfterCapital = isOne
    end += 1
  }
  return end
}

function hasMarks(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if (text.charCodeAt(at) >= ASCII_END) return true
  return false
}

/** The end of a run of digits, of space, or of signs. */
function endOfRun(text: string, start: number): number {
  const kind = kindOf(text.charCodeAt(start))
  let end = start + 1
  while (end < text.length && kindOf(text.charCodeAt(end)) === kind) end += 1
  return end
}

function tokensOfRun(text: string, start: number, end: number): number {
  const kind = kindOf(text.charCodeAt(start))
  if (kind === DIGIT) return Math.ceil((end - start) / DIGITS_OF_A_TOKEN)
  if (kind === SIGN) return Math.ceil((end - start) / SIGNS_OF_A_TOKEN)
  // A single space belongs to what follows it, unless that is a number.
  const isSingle = end - start === 1 && text.charCodeAt(start) === 32
  return isSingle && kindOf(text.charCodeAt(end)) !== DIGIT ? 0 : 1
}

const LETTER = 0
const DIGIT = 1
const SPACE = 2
const SIGN = 3

/** Of each character of ASCII, which most texts are made of. */
const KINDS = Uint8Array.from({ length: ASCII_END }, (_, code) => {
  if (code >= 48 && code <= 57) return DIGIT
  if (code <= 32) return SPACE
  return isCapital(code) || (code >= 97 && code <= 122) ? LETTER : SIGN
})

function kindOf(code: number): number {
  return KINDS[code] ?? LETTER
}

function isCapital(code: number): boolean {
  return code >= 65 && code <= 90
}

function isLatin(code: number): boolean {
  if (code < ASCII_END) return KINDS[code] === LETTER
  if (code >= VIETNAMESE_START && code < VIETNAMESE_END) return true
  return code >= 0xc0 && code < LATIN_END && code !== 0xd7 && code !== 0xf7
}

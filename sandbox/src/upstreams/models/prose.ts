import type { Random } from '../../random.ts'

const WORDS = [
  'river',
  'stone',
  'amber',
  'quiet',
  'window',
  'carries',
  'follows',
  'under',
  'beyond',
  'bright',
  'seven',
  'harbour',
  'letter',
  'winter',
  'turns',
  'slowly',
  'garden',
  'echoes',
  'copper',
  'morning',
  'between',
  'answers',
  'the',
  'and',
  'with',
  'for',
  'one',
  'open',
  'paper',
  'lantern',
  'road',
  'again',
] as const
const SENTENCE_WORDS = 10
const BLOCK_BYTES = 64 * 1024

/** Sentences of made-up words, all in ASCII. */
export function proseOfWords(random: Random, words: number): string {
  const parts: string[] = []
  for (let at = 0; at < words; at += 1) {
    const word = random.pick(WORDS)
    const isFirst = at % SENTENCE_WORDS === 0
    const isLast = at % SENTENCE_WORDS === SENTENCE_WORDS - 1 || at === words - 1
    parts.push((isFirst ? `${word.charAt(0).toUpperCase()}${word.slice(1)}` : word) + (isLast ? '.' : ''))
  }
  return parts.join(' ')
}

/** Words of exactly so many bytes, the last one cut where it must be. Very long ones repeat themselves. */
export function proseOfBytes(random: Random, bytes: number): string {
  let block = ''
  while (block.length < bytes && block.length < BLOCK_BYTES) block += `${random.pick(WORDS)} `
  return block.repeat(Math.ceil(bytes / Math.max(1, block.length))).slice(0, Math.max(0, bytes))
}

/** The longest beginning of a text that has at most so many bytes of UTF-8. */
export function cutTo(bytes: number, text: string): string {
  if (Buffer.byteLength(text) <= bytes) return text
  const encoded = Buffer.from(text)
  let end = Math.max(0, Math.floor(bytes))
  // A byte 10xxxxxx goes on with a character that has begun before it.
  while (end > 0 && ((encoded[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return encoded.toString('utf8', 0, end)
}

/** A text as pieces of at most so many bytes each, though never less than a character. */
export function* piecesOf(text: string, bytes: number): Iterable<string> {
  if (Buffer.byteLength(text) === text.length) {
    for (let at = 0; at < text.length; at += bytes) yield text.slice(at, at + bytes)
    return
  }
  let piece = ''
  let size = 0
  for (const character of text) {
    const more = Buffer.byteLength(character)
    if (size > 0 && size + more > bytes) {
      yield piece
      piece = ''
      size = 0
    }
    piece += character
    size += more
  }
  if (size > 0) yield piece
}

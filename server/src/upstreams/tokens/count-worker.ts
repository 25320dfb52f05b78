import { parentPort } from 'node:worker_threads'

/** Counts tokens beside the thread that serves calls, because a long text can take seconds. */
export type CountTask = { readonly text: string; readonly tokenizer: 'o200k' | 'cl100k' }

type Counter = (text: string) => number

/** A tokenizer's time is quadratic in the length of a word, so that no piece of a text is longer than this. */
const PIECE_LENGTH = 1024
/** Words whose tokens are kept, beside 100,000 by default. */
const CACHED_WORDS = 10_000
/** What is special to a model is text in a text. */
const AS_TEXT = { disallowedSpecial: new Set<string>() }

const counters = new Map<CountTask['tokenizer'], Counter>()

async function counterFor(tokenizer: CountTask['tokenizer']): Promise<Counter> {
  const known = counters.get(tokenizer)
  if (known !== undefined) return known
  const { countTokens, setMergeCacheSize } =
    tokenizer === 'o200k'
      ? await import('gpt-tokenizer/encoding/o200k_base')
      : await import('gpt-tokenizer/encoding/cl100k_base')
  setMergeCacheSize(CACHED_WORDS)
  const counter = (text: string) => countTokens(text, AS_TEXT)
  counters.set(tokenizer, counter)
  return counter
}

/** In pieces that end before a space where there is one, which changes no count; elsewhere it may add a token. */
export function countPieces(text: string, counter: Counter): number {
  let tokens = 0
  for (let at = 0; at < text.length; ) {
    const next = endOfPiece(text, at)
    tokens += counter(text.slice(at, next))
    at = next
  }
  return tokens
}

function endOfPiece(text: string, start: number): number {
  const end = start + PIECE_LENGTH
  if (end >= text.length) return text.length
  const space = text.slice(start, end).lastIndexOf(' ')
  return space > 0 ? start + space : end
}

parentPort?.on('message', async ({ text, tokenizer }: CountTask) => {
  parentPort?.postMessage(countPieces(text, await counterFor(tokenizer)))
})

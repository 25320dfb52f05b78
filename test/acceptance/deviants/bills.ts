import {
  EMBEDDING_PRICE,
  IMAGE_PRICES,
  IMAGE_TOKENS_PRICE,
  SANDBOX_PRICE,
  VIDEO_PRICES,
} from '../../../harness/seed.ts'
import type { Bill } from '../../../sandbox/src/bill.ts'
import type { JournalEntry } from '../../../sandbox/src/journal.ts'
import { usd } from '../../../server/src/kernel/money.ts'

/** What a vendor's bill comes to, at the prices at which we sell: a vendor's price is ours, so that a hold buys just so much. */
export function billedNanos({ bill, upstream, path, model }: JournalEntry): bigint {
  if (bill === null) return 0n
  const value = upstream === 'video' ? ofSeconds(bill) : ofUnits(bill, rateOf(upstream, path), model ?? '')
  return bill.price_class === 'large' ? 10n * value : value
}

/** What we do not sell, and no vendor may have been asked for. */
export function unsoldIn({ bill }: JournalEntry): readonly string[] {
  if (bill === null) return []
  const { web_searches = 0, audio_input = 0, cache_write_1h = 0, price_class } = bill
  return [
    ...(web_searches > 0 ? ['a search'] : []),
    ...(audio_input > 0 ? ['sound'] : []),
    ...(cache_write_1h > 0 ? ['a long cache'] : []),
    ...(price_class === 'standard' ? [] : ['a large model']),
  ]
}

type Rate = Readonly<Record<'input' | 'output' | 'cacheRead' | 'cacheWrite' | 'credit', bigint>>
const NONE: Rate = { input: 0n, output: 0n, cacheRead: 0n, cacheWrite: 0n, credit: 0n }
/** Of a token, in nanos, by the price of a million. */
const one = (price: string) => usd(price) / 1_000_000n
const CHAT: Rate = {
  ...NONE,
  input: one(SANDBOX_PRICE.input),
  output: one(SANDBOX_PRICE.output),
  cacheRead: one(SANDBOX_PRICE.cacheRead),
  cacheWrite: one(SANDBOX_PRICE.cacheWrite),
}
export const INPUT_NANOS = CHAT.input
export const OUTPUT_NANOS = CHAT.output
const PICTURE: Rate = { ...NONE, input: one(IMAGE_TOKENS_PRICE.input), output: one(IMAGE_TOKENS_PRICE.output) }
const SEARCH = usd('0.01')

function rateOf(upstream: JournalEntry['upstream'], path: string): Rate {
  if (upstream === 'rerank') return { ...NONE, input: one('0.050') }
  if (upstream === 'traffic') return { ...NONE, credit: usd('0.002') }
  if (upstream === 'comments') return { ...NONE, credit: usd('0.00188') }
  if (upstream === 'reseller') return { ...NONE, credit: usd(path.endsWith('stories') ? '0.0029' : '0.00145') }
  if (/(\/embeddings|:embedContent|:batchEmbedContents)$/.test(path))
    return { ...NONE, input: one(EMBEDDING_PRICE.input) }
  return path.endsWith('/images/generations') ? PICTURE : CHAT
}

function ofUnits(bill: Bill, rate: Rate, model: string): bigint {
  if (model.endsWith('/picture')) return ofPictures(bill)
  const { input = 0, audio_input = 0, output = 0, cache_read = 0, cache_write_5m = 0, cache_write_1h = 0 } = bill
  return (
    BigInt(input) * rate.input +
    // As vendors price it, as a rule.
    BigInt(audio_input) * 10n * rate.input +
    BigInt(output) * rate.output +
    BigInt(cache_read) * rate.cacheRead +
    BigInt(cache_write_5m) * rate.cacheWrite +
    BigInt(cache_write_1h) * 2n * rate.input +
    BigInt(bill.web_searches ?? 0) * SEARCH +
    BigInt(bill.credits ?? 0) * rate.credit
  )
}

/** By the tokens of one, which tell its size and quality, whatever was asked for. */
const PICTURES: ReadonlyMap<number, string> = new Map([
  [272, IMAGE_PRICES['1024x1024/low']],
  [1_056, IMAGE_PRICES['1024x1024/medium']],
  [4_160, IMAGE_PRICES['1024x1024/high']],
  [408, IMAGE_PRICES['1536x1024/low']],
  [6_240, IMAGE_PRICES['1536x1024/high']],
])

function ofPictures({ images = 0, output = 0 }: Bill): bigint {
  const price = PICTURES.get(images === 0 ? 0 : output / images)
  if (price === undefined) throw new Error(`${output} tokens are no ${images} pictures that are sold`)
  return BigInt(images) * usd(price)
}

function ofSeconds({ seconds = 0, sr = 0 }: Bill): bigint {
  const price = Object.entries(VIDEO_PRICES).find(([name]) => name === `${sr}P`)?.[1]
  if (price === undefined) throw new Error(`nobody sells videos of ${sr} lines`)
  return (BigInt(Math.ceil(seconds * 1_000)) * usd(price)) / 1_000n
}

/** What the vendor said that a conversation used, at our prices; undefined where it did not say. */
export function claimOf({ usage }: JournalEntry): bigint | undefined {
  if (usage === null) return undefined
  const { input, output, cacheRead, cacheWrite } = claimedTokens(Object(usage))
  return (
    BigInt(input) * CHAT.input +
    BigInt(output) * CHAT.output +
    BigInt(cacheRead) * CHAT.cacheRead +
    BigInt(cacheWrite) * CHAT.cacheWrite
  )
}

type Usage = Readonly<Record<string, number | undefined>> & {
  readonly prompt_tokens_details?: Readonly<Record<string, number | undefined>>
  readonly input_tokens_details?: Readonly<Record<string, number | undefined>>
}

/** What only a total tells of is output. */
function claimedTokens(usage: Usage) {
  if (usage.promptTokenCount !== undefined) {
    const { promptTokenCount: prompt, cachedContentTokenCount: cacheRead = 0, totalTokenCount: total = prompt } = usage
    return { input: prompt - cacheRead, output: total - prompt, cacheRead, cacheWrite: 0 }
  }
  if (usage.input_tokens_details !== undefined) {
    const { input_tokens: prompt = 0, total_tokens: total = prompt, input_tokens_details: details } = usage
    const [cacheRead, cacheWrite] = [details.cached_tokens ?? 0, details.cache_write_tokens ?? 0]
    return { input: prompt - cacheRead - cacheWrite, output: total - prompt, cacheRead, cacheWrite }
  }
  if (usage.prompt_tokens === undefined)
    return {
      input: usage.input_tokens ?? 0,
      output: usage.output_tokens ?? 0,
      cacheRead: usage.cache_read_input_tokens ?? 0,
      cacheWrite: usage.cache_creation_input_tokens ?? 0,
    }
  const { prompt_tokens: prompt, total_tokens: total = prompt, prompt_tokens_details: details = {} } = usage
  const [cacheRead, cacheWrite] = [details.cached_tokens ?? 0, details.cache_write_tokens ?? 0]
  return { input: prompt - cacheRead - cacheWrite, output: total - prompt, cacheRead, cacheWrite }
}

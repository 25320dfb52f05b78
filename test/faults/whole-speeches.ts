import {
  EMBEDDING_MODEL,
  EMBEDDING_PRICE,
  IMAGE_MODEL,
  IMAGE_PRICES,
  IMAGE_TOKENS_MODEL,
  IMAGE_TOKENS_PRICE,
  SANDBOX_PRICE,
} from '../../harness/seed.ts'
import type { JournalEntry } from '../../sandbox/src/journal.ts'
import { pictureTokens } from '../../sandbox/src/upstreams/models/openai-images.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { countOf, type Pictures, passedOn, type Speech, type Tokens } from './speech.ts'

/** Models that make no conversation: their answers always come whole, and have prices of their own. */

const embeddings: Speech = {
  operation: 'embeddings',
  path: () => '/v1/embeddings',
  body: ({ model, words }) => ({ model, input: words }),
  upstreamBody: (body, { model }) => passedOn('openai_embeddings', body, model),
  reported(entry) {
    const input = embeddings.reportedInput(entry)
    return input && { ...input, output: 0 }
  },
  reportedInput: ({ usage }) =>
    usage === null ? undefined : { input: countOf(usage, 'prompt_tokens'), cacheRead: 0, cacheWrite: 0 },
}

type Body = Readonly<Record<string, unknown>>

/** The same in another protocol, of one text or of a list. */
const vectors = (operation: string, action: string, body: (content: Body) => Body): Speech => {
  const speech: Speech = {
    operation,
    path: ({ model }) => `/v1beta/models/${model}:${action}`,
    body: ({ words }) => body({ content: { parts: [{ text: words }] } }),
    upstreamBody: (sent) => Buffer.from(sent),
    reported(entry) {
      const input = speech.reportedInput(entry)
      return input && { ...input, output: 0 }
    },
    reportedInput: ({ usage }) =>
      usage === null ? undefined : { input: countOf(usage, 'promptTokenCount'), cacheRead: 0, cacheWrite: 0 },
  }
  return speech
}
export const VECTORS: readonly Speech[] = [
  embeddings,
  vectors('embed_content', 'embedContent', (one) => one),
  vectors('batch_embed_contents', 'batchEmbedContents', (one) => ({ requests: [one] })),
]

export const pictures: Speech = {
  operation: 'image_generations',
  isUncountable: true,
  path: () => '/v1/images/generations',
  body: ({ model, words, pictures }) => ({ model, prompt: words, ...pictures }),
  upstreamBody: (body, { model }) => passedOn('openai_images', body, model),
  reported(entry) {
    const input = pictures.reportedInput(entry)
    return input && { ...input, output: countOf(entry.usage, 'output_tokens') }
  },
  reportedInput: ({ usage }) =>
    usage === null ? undefined : { input: countOf(usage, 'input_tokens'), cacheRead: 0, cacheWrite: 0 },
}

const MILLION = 1_000_000n
type Price = {
  readonly input: string
  readonly output: string
  readonly cacheRead?: string
  readonly cacheWrite?: string
}
const PRICES: Readonly<Record<string, Price>> = {
  [EMBEDDING_MODEL]: EMBEDDING_PRICE,
  [IMAGE_TOKENS_MODEL]: IMAGE_TOKENS_PRICE,
}

/** What tokens of a model cost. All of conversations have one price. */
export function costOf(model: string | null, { input, output, cacheRead, cacheWrite }: Tokens): bigint {
  const price: Price = PRICES[model ?? ''] ?? SANDBOX_PRICE
  const nanos =
    BigInt(input) * usd(price.input) +
    BigInt(output) * usd(price.output) +
    BigInt(cacheRead) * usd(price.cacheRead ?? price.input) +
    BigInt(cacheWrite) * usd(price.cacheWrite ?? price.input)
  return nanos / MILLION
}

/** Whether a model sells its pictures by the piece. */
export function isByPiece(model: string | null): boolean {
  return model === IMAGE_MODEL
}

/** The kinds that have a price, each with the members by which a request asks for it. */
export const KINDS: readonly (Omit<Pictures, 'n'> & { readonly kind: string; readonly price: bigint })[] =
  Object.entries(IMAGE_PRICES).map(([kind, price]) => {
    const [size = 'auto', quality = 'auto'] = kind.split('/')
    return { kind, price: usd(price), ...(size !== 'auto' && { size }), ...(quality !== 'auto' && { quality }) }
  })

/** What one picture costs that is asked for like this. */
export function priceOfPicture({ size = 'auto', quality = 'auto' }: Omit<Pictures, 'n'>): bigint {
  const found = KINDS.find(({ kind }) => kind === `${size}/${quality}`)
  if (found === undefined) throw new Error(`${size}/${quality} has no price`)
  return found.price
}

/** How many pictures of a kind the upstream has made: its journal has their tokens, whoever pays for what. */
export function picturesIn({ tokens }: JournalEntry, { size, quality }: Omit<Pictures, 'n'>): number {
  return (tokens ?? 0) / pictureTokens(size, quality)
}

import { invalidRequest } from '../../kernel/fault.ts'
import type { Nanos } from '../../kernel/money.ts'
import { rational } from '../../kernel/rational.ts'
import { videoPricingOf } from '../../pricing/by-second.ts'
import type { Counting } from '../../pricing/by-token.ts'
import { type Model, priceOfModel } from '../../pricing/models.ts'
import { outputMostOf } from '../../pricing/output-most.ts'
import { pricingOf } from '../../pricing/price-model.ts'
import type { Priced } from '../../pricing/priced.ts'
import { amountsOf } from '../../pricing/quotes.ts'
import type { ProtocolName } from '../../protocols/protocol.ts'
import { headersFor, SPOKEN } from '../../protocols/protocols.ts'
import { askOfVideo } from '../../protocols/video.ts'

/** What somebody fills in: how each is meant, the kind of the model says. */
export type Fields = { readonly text: string; readonly most: string; readonly size: string; readonly count: string }

/** A request as a caller would send it for what was filled in. */
export type Asked = {
  readonly operationId: string
  readonly protocol: ProtocolName
  readonly body: Readonly<Record<string, unknown>>
}

export type Calculated = {
  readonly most: Nanos
  readonly expected: Nanos
  readonly assumption: string | undefined
  readonly version: string
}

export type Kind = 'conversation' | 'vectors' | 'pictures' | 'videos'

/** In the order in which callers are likely to ask. */
const KINDS: readonly (readonly [ProtocolName, Kind, string])[] = [
  ['openai', 'conversation', 'chat_completions'],
  ['anthropic', 'conversation', 'messages'],
  ['openai_responses', 'conversation', 'responses'],
  ['gemini', 'conversation', 'generate_content'],
  ['openai_embeddings', 'vectors', 'embeddings'],
  ['gemini_embeddings', 'vectors', 'embed_content'],
  ['openai_images', 'pictures', 'image_generations'],
  ['video', 'videos', 'video_synthesis'],
]

export type Sold = { readonly protocol: ProtocolName; readonly kind: Kind; readonly operationId: string }

/** As what a model is sold first; undefined where it has no route. */
export function soldAs({ routes }: Pick<Model, 'routes'>): Sold | undefined {
  const [protocol, kind, operationId] = KINDS.find(([name]) => routes.some((route) => route.protocol === name)) ?? []
  return protocol === undefined || kind === undefined || operationId === undefined
    ? undefined
    : { protocol, kind, operationId }
}

export function requestFor({ id }: Pick<Model, 'id'>, { protocol, operationId }: Sold, fields: Fields): Asked {
  return { operationId, protocol, body: bodyFor(id, protocol, fields) }
}

function bodyFor(model: string, protocol: ProtocolName, { text, most, size, count }: Fields): Asked['body'] {
  const limit = wholeIn(most)
  const messages = [{ role: 'user', content: text }]
  const parts = [{ text }]
  switch (protocol) {
    case 'openai':
      return { model, messages, ...(limit !== undefined && { max_tokens: limit }) }
    case 'anthropic':
      return { model, messages, max_tokens: limit ?? 1_024 }
    case 'openai_responses':
      return { model, input: text, ...(limit !== undefined && { max_output_tokens: limit }) }
    case 'gemini': {
      const config = limit === undefined ? {} : { generationConfig: { maxOutputTokens: limit } }
      return { contents: [{ role: 'user', parts }], ...config }
    }
    case 'openai_embeddings':
      return { model, input: text }
    case 'gemini_embeddings':
      return { content: { parts } }
    case 'openai_images': {
      const [dimensions, quality] = size.split('/')
      const kind = size === '' ? {} : { size: dimensions, quality }
      return { model, prompt: text, ...kind, n: wholeIn(count) ?? 1 }
    }
    case 'video': {
      const seconds = wholeIn(most)
      const parameters = {
        ...(seconds !== undefined && { duration: seconds }),
        ...(size !== '' && { resolution: size }),
      }
      return { model, input: { prompt: text }, parameters }
    }
  }
}

/** Nothing where it is left out; what is no number is refused by whoever reads the request. */
function wholeIn(text: string): number | undefined {
  if (text.trim() === '') return undefined
  const value = Number(text)
  if (Number.isSafeInteger(value)) return value
  throw invalidRequest(`${JSON.stringify(text.slice(0, 40))} is not a whole number. Correct it.`)
}

const ONCE = rational(1n)

/** What a quote for the request would say to somebody who pays what is published: by the same functions. */
export function calculate(model: Model, { protocol, body }: Asked, counting: Counting): Calculated {
  const rawBody = Buffer.from(JSON.stringify(body))
  const priced: Pick<Priced, 'terms' | 'most' | 'expected' | 'assumption'> =
    protocol === 'video' ? ofVideo(model, body, rawBody) : ofModel(model, protocol, { body, rawBody }, counting)
  const { most, expected } = amountsOf(priced)
  return { most, expected, assumption: priced.assumption?.(), version: priced.terms.version }
}

type Read = { readonly body: Asked['body']; readonly rawBody: Buffer }

function ofModel(model: Model, name: Exclude<ProtocolName, 'video'>, { body, rawBody }: Read, counting: Counting) {
  const { protocol } = SPOKEN[name]
  const ask = protocol.ask({ body, rawBody, headers: headersFor(protocol, {}) }, model.limits)
  const routes = model.routes.filter((route) => route.protocol === name)
  const outputMost = outputMostOf(ask, routes, model.limits)
  return pricingOf({ price: priceOfModel(model), ask, outputMost, multiplier: ONCE }, counting)
}

function ofVideo(model: Model, body: Asked['body'], rawBody: Buffer) {
  const ask = askOfVideo(body, rawBody, model.limits)
  return videoPricingOf({ price: priceOfModel(model), ask, multiplier: ONCE })
}

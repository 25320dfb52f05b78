import { z } from 'zod'
import { decimalText } from '../kernel/rational.ts'
import { PROTOCOL_NAMES, type ProtocolName } from '../protocols/protocol.ts'
import { type Model, type ModelPrice, priceOfModel } from './models.ts'

/** From nano-USD for a token to USD for a million, and from nano-USD to USD. */
const PER_MILLION_PLACES = 3
const USD_PLACES = 9
/** From nano-USD for a millisecond to USD for a second. */
const PER_SECOND_PLACES = 6

const usd = z.string().meta({ description: 'Decimal USD.' })
const MODALITIES = ['text', 'image', 'audio', 'file', 'video', 'embedding'] as const
type Modality = (typeof MODALITIES)[number]

/** What callers are told of a model beside its name: enough to choose one, and to know what a call can cost. */
export const shownModelBody = {
  context_length: z.int().optional().meta({ description: 'The most tokens of input and output together.' }),
  max_output_tokens: z.int().optional().meta({ description: 'The largest output limit that is taken.' }),
  default_output_tokens: z.int().optional().meta({ description: 'The output limit of a call that names none.' }),
  protocols: z
    .array(z.enum(PROTOCOL_NAMES))
    .optional()
    .meta({ description: 'In which it can be asked: each has its own path.' }),
  input_modalities: z.array(z.enum(MODALITIES)).optional(),
  output_modalities: z.array(z.enum(MODALITIES)).optional(),
  pricing: z
    .strictObject({
      currency: z.literal('USD'),
      version: z.string(),
      per_million_tokens: z.record(z.string(), usd).optional(),
      per_image: z.record(z.string(), usd).optional(),
      per_second: z.record(z.string(), usd).optional(),
      per_call: z.record(z.string(), usd).optional().meta({ description: 'Of tools that the provider runs.' }),
      tiers: z.array(z.string()).optional().meta({ description: 'Service tiers with prices of their own.' }),
      steps_above_tokens: z.array(z.int()).optional().meta({ description: 'Longer input has prices of its own.' }),
    })
    .optional()
    .meta({ description: 'As published. What an account pays is told by a quote, which has every price.' }),
}

export function shownModel(model: Model) {
  const { limits, routes } = model
  const price = priceOfModel(model)
  const protocols = PROTOCOL_NAMES.filter((name) => routes.some(({ protocol }) => protocol === name))
  const isText = protocols.some((name) => CONVERSATIONS.has(name))
  return {
    context_length: limits.contextWindow,
    // Of pictures, vectors and videos the same numbers mean something else.
    ...(isText && { max_output_tokens: limits.outputMost, default_output_tokens: limits.outputCap }),
    protocols,
    input_modalities: inputOf(model, price, isText),
    output_modalities: outputOf(price, protocols, isText),
    pricing: pricingShown(price),
  }
}

const CONVERSATIONS: ReadonlySet<ProtocolName> = new Set(['openai', 'openai_responses', 'anthropic', 'gemini'])

/** Text, and what the operator has declared or priced of it. */
function inputOf({ limits: { partTokens } }: Model, { classes }: ModelPrice, isText: boolean): Modality[] {
  if (!isText) return ['text']
  const declared = (['image', 'audio', 'file'] as const).filter((kind) => partTokens[kind] !== undefined)
  const priced = [
    ...(classes?.names.includes('input_image') ? (['image'] as const) : []),
    ...(classes?.names.includes('input_audio') ? (['audio'] as const) : []),
  ]
  return [...new Set<Modality>(['text', ...declared, ...priced])]
}

const MADE: Readonly<Partial<Record<ProtocolName, Modality>>> = {
  openai_embeddings: 'embedding',
  gemini_embeddings: 'embedding',
  openai_images: 'image',
  video: 'video',
}

function outputOf({ classes }: ModelPrice, protocols: readonly ProtocolName[], isText: boolean): Modality[] {
  return [
    ...new Set<Modality>([
      ...(isText ? (['text'] as const) : []),
      ...protocols.flatMap((name) => MADE[name] ?? []),
      ...(classes?.names.includes('output_image') ? (['image'] as const) : []),
      ...(classes?.names.includes('output_audio') ? (['audio'] as const) : []),
    ]),
  ]
}

function pricingShown(price: ModelPrice): z.output<typeof shownModelBody.pricing> {
  const { version, images, videos, classes } = price
  const common = { currency: 'USD', version } as const
  if (images !== null) return { ...common, per_image: texts(images, USD_PLACES) }
  if (videos !== null) return { ...common, per_second: texts(videos, PER_SECOND_PLACES) }
  const [standard] = classes?.tiers.values() ?? []
  const [first, ...above] = standard ?? []
  const { input, output, cacheRead, cacheWrite } = price.rates
  const plain = Object.entries({ input, output, cache_read: cacheRead, cache_write: cacheWrite })
  const tiers = [...(classes?.tiers.keys() ?? [])].slice(1)
  return {
    ...common,
    per_million_tokens: texts(first?.rates ?? new Map(plain), PER_MILLION_PLACES),
    ...(classes !== undefined && classes.tools.size > 0 && { per_call: texts(classes.tools, USD_PLACES) }),
    ...(tiers.length > 0 && { tiers }),
    ...(above.length > 0 && { steps_above_tokens: above.map((step) => step.above) }),
  }
}

type Published = { readonly published: Parameters<typeof decimalText>[0] }

function texts(rates: ReadonlyMap<string, Published>, places: number): Record<string, string> {
  return Object.fromEntries([...rates].map(([name, { published }]) => [name, decimalText(published, places)]))
}

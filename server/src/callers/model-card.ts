import type { Operation } from '../catalogue/operation.ts'
import type { Caller } from '../identity/caller.ts'
import { allowsModel, allowsOperation } from '../identity/scopes.ts'
import { decimalText, multiply, rational } from '../kernel/rational.ts'
import { type Model, priceOfModel } from '../pricing/models.ts'
import type { ProtocolName } from '../protocols/protocol.ts'

/** By which operations a model is asked, by the protocols of its routes. */
const OPERATIONS: Readonly<Record<ProtocolName, readonly string[]>> = {
  openai: ['chat_completions'],
  openai_responses: ['responses'],
  openai_embeddings: ['embeddings'],
  openai_images: ['image_generations'],
  anthropic: ['messages', 'messages_count_tokens'],
  gemini: ['generate_content', 'generate_content_count_tokens'],
  gemini_embeddings: ['embed_content', 'batch_embed_contents'],
  video: ['video_synthesis'],
}

/** A model as it is listed, with the operations that are sold and whether this key may ask it: others are listed all the same. */
export function listedModel(model: Model, sold: readonly Operation[], { scopes }: Caller) {
  const card = modelCard(model)
  const own = sold.filter(({ id }) => card.operations.includes(id))
  const isUsable = (one: Operation) => scopes !== null && allowsOperation(scopes, one)
  return {
    ...card,
    operations: card.operations.filter((id) => own.some((one) => one.id === id)),
    allowed: scopes === null || allowsModel(scopes, model.id) || own.some(isUsable),
  }
}

/** From nano-dollars. */
const PLACES = 9
const times = (price: Parameters<typeof multiply>[0], count: bigint) =>
  decimalText(multiply(price, rational(count)), PLACES)

/** A model as an agent is told of it: what it costs, how long its answers can be, and how to ask it. */
function modelCard(model: Model) {
  const { id, displayName, ownedBy, limits, routes } = model
  const { rates, images, videos, version } = priceOfModel(model)
  const operations = [...new Set(routes.flatMap(({ protocol }) => OPERATIONS[protocol]))]
  return {
    model: id,
    name: displayName,
    owned_by: ownedBy,
    operations,
    price: {
      version,
      ...(images === null &&
        videos === null && {
          usd_per_million_tokens: {
            input: times(rates.input.published, 1_000_000n),
            output: times(rates.output.published, 1_000_000n),
            cache_read: times(rates.cacheRead.published, 1_000_000n),
            cache_write: times(rates.cacheWrite.published, 1_000_000n),
          },
        }),
      ...(images !== null && { usd_per_picture: perKind(images, 1n) }),
      ...(videos !== null && { usd_per_second: perKind(videos, 1_000n) }),
    },
    context_window: limits.contextWindow,
    output_limit: { default: limits.outputCap, most: limits.outputMost },
  }
}

type Kinds = ReadonlyMap<string, { readonly published: Parameters<typeof multiply>[0] }>

function perKind(kinds: Kinds, count: bigint): Record<string, string> {
  return Object.fromEntries([...kinds].map(([kind, { published }]) => [kind, times(published, count)]))
}

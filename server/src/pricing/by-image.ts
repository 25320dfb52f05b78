import { invalidRequest } from '../kernel/fault.ts'
import { multiply } from '../kernel/rational.ts'
import { picturesIn } from '../protocols/openai-images.ts'
import type { AskedOfModel, ModelPricing } from './model-pricing.ts'
import type { ModelPrice } from './models.ts'
import { versionAt } from './terms.ts'

/** Pictures by the piece, by their size and quality: as many as came. */
export function byImage(
  { price: { version }, ask, multiplier }: AskedOfModel,
  kind: string,
  images: NonNullable<ModelPrice['images']>,
): ModelPricing {
  const rate = images.get(kind)
  if (rate === undefined) {
    const priced = [...images.keys()].join(', ')
    const detail = `An image of ${JSON.stringify(kind)} (size and quality) has no price. Use one of these: ${priced}.`
    throw invalidRequest(detail)
  }
  const terms = {
    version: versionAt(version, multiplier),
    rates: [{ unit: `${kind} image`, ...rate, price: multiply(rate.published, multiplier) }],
  }
  const asked = [BigInt(ask.choices)]
  return {
    terms,
    most: asked,
    expected: () => asked,
    assumption: () => 'Assumed: as many pictures as are asked for.',
    tokens: 0,
    ofReply({ json, form }) {
      if (form === 'unreadable') return { counts: asked }
      const pictures = picturesIn(json)
      return pictures === undefined ? undefined : { counts: [BigInt(pictures)] }
    },
    ofUnreadable: () => ({ counts: asked }),
    ofDelivered: async () => undefined,
    ofNothing: async () => ({ counts: asked }),
    nothing: () => ({ counts: [0n] }),
  }
}

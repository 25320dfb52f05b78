import { Fault } from '../kernel/fault.ts'
import { byImage } from './by-image.ts'
import { byToken, type Counting } from './by-token.ts'
import type { AskedOfModel, ModelPricing } from './model-pricing.ts'

/** A call of a model at the model's price: by the picture where it has such prices, else by the token. */
export function pricingOf(asked: AskedOfModel, counting: Counting): ModelPricing {
  const { images } = asked.price
  if (images === null) return byToken(asked, counting)
  const { imageKind } = asked.ask
  if (imageKind !== undefined) return byImage(asked, imageKind, images)
  // Its tokens have no price, and must not be free.
  const cause = new Error('a model that sells pictures by the piece was asked for something else')
  throw new Fault('invalid_billing_configuration', { cause })
}

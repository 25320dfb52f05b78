import { multiply, type Rational, rational, roundHalfEven } from '../kernel/rational.ts'
import { classPricesForm } from './class-prices.ts'
import { picturePriceIn, priceIn, videoPriceIn } from './unit-prices.ts'

/**
 * What is left of a price when the upstream is paid, for whatever the operator has said what that costs. What a cost falls back to is a
 * guess, and is not judged.
 */
export type Margin = {
  /** As price lists name it, such as `input` or `tiers.flex.above.200000.output`. */
  readonly member: string
  readonly price: Rational
  readonly cost: Rational
}

/** A version of a model's price, as it is written. */
type Price = Readonly<
  Record<'input' | 'output', string> &
    Record<'cacheRead' | 'cacheWrite' | `provider${'Input' | 'Output' | 'CacheRead' | 'CacheWrite'}`, string | null> &
    Record<'images' | 'videos' | 'providerImages' | 'providerVideos', Kinds> &
    Record<'classes' | 'providerClasses', unknown>
>
type Kinds = Readonly<Record<string, string>> | null
type Rates = ReadonlyMap<string, Rational>
type Written = {
  readonly plain: Readonly<Record<string, string | null>>
  readonly images: Kinds
  readonly videos: Kinds
  readonly classes: unknown
}

const ONCE = rational(1n)

/** Where somebody pays a multiple of the price, what is left of that. */
export function marginsOf(price: Price, times: Rational = ONCE): readonly Margin[] {
  const { input, output, cacheRead, cacheWrite, images, videos, classes } = price
  const sold = ratesIn({
    plain: { input, output, cache_read: cacheRead ?? input, cache_write: cacheWrite ?? input },
    ...{ images, videos, classes },
  })
  const costs = ratesIn({
    plain: {
      ...{ input: price.providerInput, output: price.providerOutput },
      ...{ cache_read: price.providerCacheRead, cache_write: price.providerCacheWrite },
    },
    ...{ images: price.providerImages, videos: price.providerVideos, classes: price.providerClasses },
  })
  const isByPiece = images !== null || videos !== null
  return [...costs].flatMap(([member, cost]) => {
    const rate = sold.get(member)
    // Of what is sold by the piece, tokens cost nothing, and what they cost us is in the piece.
    if (rate === undefined || (isByPiece && !/^(?:images|videos)\./.test(member))) return []
    return [{ member, price: multiply(rate, times), cost }]
  })
}

/** All that has a price of its own, by its member. */
function ratesIn({ plain, images, videos, classes }: Written): Rates {
  const rates = new Map<string, Rational>()
  for (const [name, text] of Object.entries(plain)) if (text !== null) rates.set(name, priceIn(text))
  for (const [kind, text] of Object.entries(images ?? {})) rates.set(`images.${kind}`, picturePriceIn(text))
  for (const [kind, text] of Object.entries(videos ?? {})) rates.set(`videos.${kind}`, videoPriceIn(text))
  // What can't be read is refused elsewhere, in words of its own.
  const { rates: parts = {}, above = [], tiers = {}, tools = {} } = classPricesForm.safeParse(classes ?? {}).data ?? {}
  for (const [tool, price] of Object.entries(tools)) rates.set(`tools.${tool}`, price)
  for (const [name, price] of Object.entries(parts)) rates.set(name, price)
  const standard = [...rates].filter(([name]) => !name.includes('.'))
  addSteps(rates, '', above)
  for (const [tier, own] of Object.entries(tiers)) {
    if ('times' in own)
      for (const [name, price] of standard) rates.set(`tiers.${tier}.${name}`, multiply(price, own.times))
    else {
      for (const [name, price] of Object.entries(own.rates)) rates.set(`tiers.${tier}.${name}`, price)
      addSteps(rates, `tiers.${tier}.`, own.above ?? [])
    }
  }
  return rates
}

type Step = { readonly tokens: number; readonly rates: Readonly<Record<string, Rational>> }

function addSteps(rates: Map<string, Rational>, prefix: string, steps: readonly Step[]): void {
  for (const { tokens, rates: own } of steps)
    for (const [name, price] of Object.entries(own)) rates.set(`${prefix}above.${tokens}.${name}`, price)
}

export function isBelowCost({ price, cost }: Pick<Margin, 'price' | 'cost'>): boolean {
  return price.numerator * cost.denominator < cost.numerator * price.denominator
}

/** What is sold below cost, in words; undefined where nothing is. */
export function belowCost(margins: readonly Margin[]): string | undefined {
  const below = margins.filter(isBelowCost)
  if (below.length === 0) return undefined
  return below.map((margin) => `${margin.member} (${marginText(margin)})`).join(', ')
}

/** So many per cent of the price, with one place; of what is given away there is no such number. */
export function marginText({ price, cost }: Pick<Margin, 'price' | 'cost'>): string {
  if (price.numerator === 0n) return cost.numerator === 0n ? '0.0 %' : 'given away'
  const left = price.numerator * cost.denominator - cost.numerator * price.denominator
  const tenths = roundHalfEven(rational(1_000n * left, price.numerator * cost.denominator))
  const digits = (tenths < 0n ? -tenths : tenths).toString().padStart(2, '0')
  return `${tenths < 0n ? '-' : ''}${digits.slice(0, -1)}.${digits.slice(-1)} %`
}

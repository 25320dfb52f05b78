import { isPartClass, PART_CLASSES, STANDARD, type TokenClass } from '../../catalogue/price-classes.ts'
import { decimalText, type Rational } from '../../kernel/rational.ts'
import { type ClassPrices, classPricesOf, type ModelRate, type Step } from '../class-prices.ts'
import { type ModelPrice, priceJson } from '../models.ts'
import type { PriceText } from '../set-model-price.ts'
import { type Change, numberIn } from './changes.ts'

/**
 * Which moves are held back: by more than ten times up or down, and to or from zero. Such a move is more often a slip than a
 * price. Prices are compared as they are charged, in every class, step and tier: what is left out costs what it falls back to.
 */
const TIMES_MOST = 10n

/** Why a move between two numbers is held back; undefined where it is not. */
export function whyHeld(before: Rational, after: Rational): string | undefined {
  if (before.numerator === 0n && after.numerator === 0n) return undefined
  if (after.numerator === 0n) return 'to zero'
  if (before.numerator === 0n) return 'from zero'
  const [old, fresh] = [before.numerator * after.denominator, after.numerator * before.denominator]
  return fresh > TIMES_MOST * old || old > TIMES_MOST * fresh ? `by more than ${TIMES_MOST} times` : undefined
}

/** Limits, and whatever else of a model is a number and no price. */
export function heldCounts(changes: readonly Change[]): readonly string[] {
  return changes.flatMap(({ member, before, after }) => {
    const [was, is] = [numberIn(before), numberIn(after)]
    const why = was && is && whyHeld(was, is)
    return why === undefined ? [] : [`${member} ${before} → ${after}, ${why}`]
  })
}

/** What of a price is held back. */
export function heldPrices(before: PriceText | null, after: PriceText): readonly string[] {
  const [was, is] = [before && chargedBy(before), chargedBy(after)]
  if (was === undefined) return ['price: the current one cannot be read']
  if (is === undefined) return ['price: the new one cannot be read']
  const moves = [...movesBetween(was ?? NOTHING_SOLD, is)]
  if (was === null) {
    const prices = moves.filter(({ isCost, after: to }) => !isCost && to !== undefined)
    return prices.some(({ after: to }) => to?.numerator !== 0n) ? [] : ['price: everything in it is free']
  }
  return moves.flatMap(heldMove)
}

function heldMove({ member, isCost, before, after, places }: Move): readonly string[] {
  if (after === undefined) return []
  const isGivenAway = before === undefined && !isCost && after.numerator === 0n
  const why = before === undefined ? (isGivenAway ? 'to zero' : undefined) : whyHeld(before, after)
  const was = before === undefined ? 'none' : decimalText(before, places)
  return why === undefined ? [] : [`${member} ${was} → ${decimalText(after, places)}, ${why}`]
}

type Move = {
  readonly member: string
  readonly isCost: boolean
  readonly before: Rational | undefined
  readonly after: Rational | undefined
  /** By how many places nano-USD for the unit become USD for what people write the price of. */
  readonly places: number
}

/** What is sold, and at which prices, however it was written. */
type Charged = Pick<ClassPrices, 'names' | 'tiers' | 'tools'> & {
  readonly images: ReadonlyMap<string, ModelRate>
  readonly videos: ReadonlyMap<string, ModelRate>
}

const NOTHING_SOLD: Charged = {
  ...{ names: [], tiers: new Map(), tools: new Map() },
  ...{ images: new Map(), videos: new Map() },
}

/** Undefined where the price can't be read, and so nothing is sold at it. */
function chargedBy(price: PriceText): Charged | undefined {
  const { data } = priceJson.safeParse({
    ...price,
    ...{ cache_read: price.cacheRead, cache_write: price.cacheWrite },
    ...{ provider_input: price.providerInput, provider_output: price.providerOutput },
    ...{ provider_cache_read: price.providerCacheRead, provider_cache_write: price.providerCacheWrite },
    ...{ provider_images: price.providerImages, provider_videos: price.providerVideos },
    provider_classes: price.providerClasses,
  })
  return data && chargedOf(data)
}

function chargedOf({ rates, images, videos, classes }: ModelPrice): Charged {
  if (images !== null || videos !== null)
    return { ...NOTHING_SOLD, images: images ?? new Map(), videos: videos ?? new Map() }
  const plain = { ...rates, cache_read: rates.cacheRead, cache_write: rates.cacheWrite }
  return { ...NOTHING_SOLD, ...(classes ?? classPricesOf(plain, [], {})) }
}

const PER_MILLION_TOKENS = 3
const PER_PIECE = 9
/** The price of a millisecond, written as that of a second. */
const PER_SECOND = 6

function* movesBetween(before: Charged, after: Charged): Generator<Move> {
  for (const tier of union(before.tiers.keys(), after.tiers.keys()))
    yield* movesOfTier(tier === STANDARD ? '' : `tiers.${tier}.`, before.tiers.get(tier), after.tiers.get(tier))
  for (const tool of union(before.tools.keys(), after.tools.keys()))
    yield* moves(`tools.${tool}`, before.tools.get(tool), after.tools.get(tool), PER_PIECE)
  for (const kind of union(before.images.keys(), after.images.keys()))
    yield* moves(`images.${kind}`, before.images.get(kind), after.images.get(kind), PER_PIECE)
  for (const kind of union(before.videos.keys(), after.videos.keys()))
    yield* moves(`videos.${kind}`, before.videos.get(kind), after.videos.get(kind), PER_SECOND)
}

type Steps = readonly Step[] | undefined

/** Where only one of them has a step, input of that length cost or will cost what the step below it says. */
function* movesOfTier(tier: string, before: Steps, after: Steps): Generator<Move> {
  const both = [...(before ?? []), ...(after ?? [])]
  const names = union(...both.map(({ rates }) => rates.keys()))
  for (const above of union(both.map((step) => step.above)))
    for (const name of names) {
      const member = `${tier}${above === 0 ? '' : `above.${above}.`}${name}`
      yield* moves(member, rateIn(before, above, name), rateIn(after, above, name), PER_MILLION_TOKENS)
    }
}

function rateIn(steps: Steps, above: number, name: TokenClass): ModelRate | undefined {
  const rates = steps?.findLast((step) => step.above <= above)?.rates
  return rates?.get(name) ?? (isPartClass(name) ? rates?.get(PART_CLASSES[name]) : undefined)
}

function* moves(
  member: string,
  before: ModelRate | undefined,
  after: ModelRate | undefined,
  places: number,
): Generator<Move> {
  const { published: was, providerCost: cost } = before ?? {}
  const { published: is, providerCost: newCost } = after ?? {}
  yield { member: `price.${member}`, isCost: false, before: was, after: is, places }
  yield { member: `cost.${member}`, isCost: true, before: cost ?? undefined, after: newCost ?? undefined, places }
}

function union<T>(...all: readonly Iterable<T>[]): readonly T[] {
  return [...new Set(all.flatMap((one) => [...one]))]
}

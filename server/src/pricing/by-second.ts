import { Fault, invalidRequest } from '../kernel/fault.ts'
import { multiply, type Rational } from '../kernel/rational.ts'
import type { VideoAsk, VideoUsage } from '../protocols/video.ts'
import type { ModelPrice } from './models.ts'
import type { Priced } from './priced.ts'
import { type Counts, type Terms, type UnitRate, versionAt } from './terms.ts'

type Asked = {
  readonly price: ModelPrice
  readonly ask: Pick<VideoAsk, 'secondsMost' | 'secondsUsual' | 'videos' | 'resolution' | 'pixels'>
  readonly multiplier: Rational
}

/** Lines of a resolution, as in `720P`. */
const linesOf = (resolution: string) => Number.parseInt(resolution, 10)
/** Pixels of a picture that is as wide as a screen. */
const pixelsOf = (resolution: string) => (linesOf(resolution) ** 2 * 16) / 9
const UNIT = / video millisecond$/

/** What a video may cost: all of its seconds, at the price of its resolution or, where that is open, at the dearest. */
export function videoPricingOf({ price, ask, multiplier }: Asked): Omit<Priced, 'isExact'> {
  if (price.videos === null) {
    const cause = new Error('a model that makes videos has no price of a second')
    throw new Fault('invalid_billing_configuration', { cause })
  }
  const rates = [...price.videos]
    .toSorted(([one], [other]) => linesOf(one) - linesOf(other))
    .map(([resolution, rate]) => ({
      unit: `${resolution} video millisecond`,
      ...rate,
      price: multiply(rate.published, multiplier),
    }))
  const terms = { version: versionAt(price.version, multiplier), rates }
  const most = countsAt(terms, rateAsked(terms, ask), ask.secondsMost * ask.videos)
  const usual = isOpen(ask) ? usualRate(terms) : rateAsked(terms, ask)
  const expected = () => countsAt(terms, usual, ask.secondsUsual * ask.videos)
  return { terms, most, expected, assumption: () => assumptionOf(ask, resolutionsOf(terms)[usual] ?? '') }
}

const isOpen = ({ resolution, pixels }: Asked['ask']) => resolution === undefined && pixels === undefined
const resolutionsOf = ({ rates }: Terms) => rates.map(({ unit }) => unit.replace(UNIT, ''))

/** What most providers make where nobody says; where that has no price, the one in the middle of those that have. */
const USUAL_RESOLUTION = '720P'

function usualRate(terms: Terms): number {
  const place = resolutionsOf(terms).indexOf(USUAL_RESOLUTION)
  return place === -1 ? Math.floor((terms.rates.length - 1) / 2) : place
}

function assumptionOf(ask: Asked['ask'], resolution: string): string {
  const { secondsUsual, secondsMost, videos } = ask
  const length = secondsUsual < secondsMost ? ', as "parameters.duration" is not given' : ''
  const size = isOpen(ask) ? ', as "parameters.resolution" is not given' : ''
  return `Assumed: ${secondsUsual} seconds${videos > 1 ? ` of each of ${videos} videos` : ''}${length}; ${resolution}${size}.`
}

/** The place of the rate by which a request is held for. */
function rateAsked(terms: Terms, { resolution, pixels }: Asked['ask']): number {
  const { rates } = terms
  const names = resolutionsOf(terms)
  if (resolution === undefined && pixels === undefined) return dearest(rates)
  const place =
    resolution === undefined ? names.findIndex((name) => pixelsOf(name) >= (pixels ?? 0)) : names.indexOf(resolution)
  if (place !== -1) return place
  throw invalidRequest(`This resolution has no price. Use one of these: ${names.join(', ')}.`)
}

function dearest(rates: readonly UnitRate[]): number {
  return rates.reduce((best, { price }, at) => (isDearer(price, rates[best]?.price ?? price) ? at : best), 0)
}

function isDearer(one: UnitRate['price'], other: UnitRate['price']): boolean {
  return one.numerator * other.denominator > other.numerator * one.denominator
}

function countsAt({ rates }: Terms, place: number, seconds: number): Counts {
  return rates.map((_, at) => (at === place ? BigInt(Math.round(seconds * 1_000)) : 0n))
}

/**
 * What was used of what was held for, by what the upstream reported; undefined where it does not say how long the video is.
 * One whose resolution is not said, or has no price, costs what it was held for.
 */
export function videoCounts(
  terms: Terms,
  most: Counts,
  { seconds, videos, resolution }: VideoUsage,
): Counts | undefined {
  if (seconds === undefined) return undefined
  const told = terms.rates.findIndex(({ unit }) => unit === `${resolution}P video millisecond`)
  const asked = most.findIndex((count) => count > 0n)
  return countsAt(terms, told === -1 ? Math.max(0, asked) : told, seconds * Math.max(1, videos))
}

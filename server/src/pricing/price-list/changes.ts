import { decimal, decimalText, type Rational } from '../../kernel/rational.ts'
import type { StandingSettings } from '../configure-models.ts'
import type { PriceText } from '../set-model-price.ts'

/** One member of a model that differs: null for what is not there. */
export type Change = {
  readonly member: string
  readonly before: string | null
  readonly after: string | null
  /** How many times as much, to be read and not to be reckoned with; null where one of them is no number, or nothing. */
  readonly factor: number | null
}

/** What a model has, by the members of the file; numbers without what does not change them, such as zeros at the end. */
export type Members = ReadonlyMap<string, string>

export function membersOfSettings(settings: StandingSettings | undefined): Members {
  if (settings === undefined) return new Map()
  const { displayName, ownedBy, contextWindow, outputCap, outputMost, partTokens, tokenizer } = settings
  const counts = { context_window: contextWindow, output_cap: outputCap, output_most: outputMost }
  const parts = Object.entries(partTokens).map(([kind, most]) => [`${kind}_tokens`, most] as const)
  return new Map(
    [...Object.entries({ display_name: displayName, owned_by: ownedBy, ...counts, tokenizer }), ...parts].map(
      ([name, value]) => [name, String(value)],
    ),
  )
}

export function membersOfPrice(price: PriceText | null): Members {
  if (price === null) return new Map()
  // Of a model that is sold by the piece, tokens have no price.
  const isByPiece = price.images !== null || price.videos !== null
  const own = {
    ...(!isByPiece && { input: price.input, output: price.output }),
    ...{ cache_read: price.cacheRead, cache_write: price.cacheWrite },
    ...{ classes: price.classes, images: price.images, videos: price.videos },
  }
  const cost = {
    ...{ input: price.providerInput, output: price.providerOutput },
    ...{ cache_read: price.providerCacheRead, cache_write: price.providerCacheWrite },
    ...{ classes: price.providerClasses, images: price.providerImages, videos: price.providerVideos },
  }
  return new Map(leavesOf({ price: own, cost }))
}

/** Names that only group others: prices are told without them. */
const GROUPS: ReadonlySet<string> = new Set(['classes', 'rates'])

function leavesOf(value: unknown, path = ''): readonly (readonly [string, string])[] {
  if (value === null || value === undefined) return []
  if (typeof value !== 'object') return [[path, plain(String(value))]]
  const under = (name: string) => (GROUPS.has(name) ? path : `${path}${path === '' ? '' : '.'}${name}`)
  // A step is known by its tokens, wherever it stands.
  if (Array.isArray(value))
    return value.flatMap(({ tokens, ...step }: { tokens: unknown }) => leavesOf(step, under(String(tokens))))
  return Object.entries(value).flatMap(([name, inner]) => leavesOf(inner, under(name)))
}

function plain(text: string): string {
  const number = numberIn(text)
  return number === undefined ? text : decimalText(number)
}

export function numberIn(text: string | null | undefined): Rational | undefined {
  try {
    return text === null || text === undefined ? undefined : decimal(text)
  } catch {
    return undefined
  }
}

/** What differs, in the order of the members. */
export function changesBetween(before: Members, after: Members): readonly Change[] {
  return [...new Set([...before.keys(), ...after.keys()])]
    .filter((member) => before.get(member) !== after.get(member))
    .map((member) => {
      const [was, is] = [before.get(member) ?? null, after.get(member) ?? null]
      return { member, before: was, after: is, factor: factorOf(numberIn(was), numberIn(is)) }
    })
}

function factorOf(before: Rational | undefined, after: Rational | undefined): number | null {
  if (before === undefined || after === undefined || before.numerator === 0n || after.numerator === 0n) return null
  return Number(after.numerator * before.denominator) / Number(before.numerator * after.denominator)
}

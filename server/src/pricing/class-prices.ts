import { z } from 'zod'
import {
  ANY_TIER,
  isPartClass,
  isTokenClass,
  type Need,
  PART_CLASS_NAMES,
  PLAIN_CLASSES,
  SERVER_TOOLS,
  type ServerTool,
  STANDARD,
  TOKEN_CLASS_NAMES,
  TOKEN_CLASSES,
  TOOL_CALLS_MOST,
  type TokenClass,
} from '../catalogue/price-classes.ts'
import type { UnitPrice } from '../kernel/money.ts'
import { multiply } from '../kernel/rational.ts'
import { FRACTION_DIGITS, fraction } from './terms.ts'
import { callPriceIn, priceIn, readable, timesIn } from './unit-prices.ts'

/**
 * What a price has beyond the four plain classes: parts of them with prices of their own, steps of long input, service tiers, and
 * calls of tools. It is kept as one JSON object beside the plain prices:
 *
 *     {"rates": {"cache_write_1h": "6"}, "above": [{"tokens": 200000, "rates": {"input": "6", "output": "22.5"}}],
 *      "tiers": {"flex": {"times": "0.5"}}, "tools": {"web_search": "0.01"}, "tool_calls": 5, "tool_input": 20000}
 */
export type ClassPricesText = z.input<typeof classPricesForm>

export type ModelRate = { readonly published: UnitPrice; readonly providerCost: UnitPrice | null }

/** What a token costs by its class, where the input has more tokens than `above`. */
export type Step = { readonly above: number; readonly rates: ReadonlyMap<TokenClass, ModelRate> }

/** All of it worked out, so that whoever prices a call only looks up. */
export type ClassPrices = {
  /** The classes that have a column of their own: the plain ones, then those parts that have a price. */
  readonly names: readonly TokenClass[]
  /** By tier, the standard one first; of each the same steps, that of any input first. */
  readonly tiers: ReadonlyMap<string, readonly Step[]>
  readonly tools: ReadonlyMap<ServerTool, ModelRate>
  /** How many calls of tools an answer may have where the request does not say. Undefined: it has to. */
  readonly toolCalls: number | undefined
  /** The most tokens that a call of a tool brings into the input. Undefined: it may fill the context window. */
  readonly toolInput: number | undefined
}

/** The prices of every model: USD for a token, what was left out already as what it falls back to. */
export type PlainRates = Readonly<Record<(typeof PLAIN_CLASSES)[number], ModelRate>>

const TIER = /^[a-z][a-z0-9_]{0,31}$/
const STEPS_MOST = 8
const TIERS_MOST = 8
/** A call's terms name each of them, and so does a quote. */
const COLUMNS_MOST = 64
/** A quote has them all in a header, as fractions. */
const DIGITS_MOST = 2_400
const TOKENS_MOST = 1_000_000_000

const priceText = readable(priceIn)
const rates = z.partialRecord(z.enum(TOKEN_CLASS_NAMES), priceText)
const parts = z.partialRecord(z.enum(PART_CLASS_NAMES), priceText)
const above = z
  .array(z.strictObject({ tokens: z.int().min(1).max(TOKENS_MOST), rates }))
  .max(STEPS_MOST)
  .refine((steps) => steps.every(({ tokens }, at) => at === 0 || tokens > (steps[at - 1]?.tokens ?? 0)), {
    error: 'must be in the order of their tokens, each once',
  })
const tier = z.union([z.strictObject({ times: readable(timesIn) }), z.strictObject({ rates, above: above.optional() })])

export const classPricesForm = z.strictObject({
  rates: parts.optional(),
  above: above.optional(),
  tiers: z
    .record(z.string().regex(TIER), tier)
    .refine((tiers) => !Object.keys(tiers).some((name) => name === STANDARD || name === ANY_TIER), {
      error: `may not have ${STANDARD} or ${ANY_TIER}`,
    })
    .refine((tiers) => Object.keys(tiers).length <= TIERS_MOST, { error: `may have ${TIERS_MOST} at most` })
    .optional(),
  tools: z.partialRecord(z.enum(SERVER_TOOLS), readable(callPriceIn)).optional(),
  tool_calls: z.int().min(1).max(TOOL_CALLS_MOST).optional(),
  tool_input: z.int().min(1).max(TOKENS_MOST).optional(),
})

type Parsed = z.output<typeof classPricesForm>
type Rates = Readonly<Partial<Record<TokenClass, UnitPrice>>>
type WrittenStep = { readonly tokens: number; readonly rates: Rates }
type Tables = { readonly rates: Rates; readonly above: readonly WrittenStep[] }

/**
 * Works out what every class costs in every tier and step. Throws a RangeError where something is left out that nobody may guess:
 * a step or a tier has each class that the plain price has.
 */
export function classPricesOf(
  plain: PlainRates,
  own: readonly TokenClass[],
  published: Parsed,
  costs: Parsed = {},
): ClassPrices {
  const names = [
    ...PLAIN_CLASSES,
    ...Object.keys(published.rates ?? {})
      .filter(isPartClass)
      .toSorted(byTable),
  ]
  const required = [...new Set([...own, ...names.filter((name) => !PLAIN_CLASSES.some((one) => one === name))])]
  const standard: Tables = { rates: published.rates ?? {}, above: published.above ?? [] }
  const costed: Tables = { rates: costs.rates ?? {}, above: costs.above ?? [] }
  for (const step of standard.above) {
    requireAll(step.rates, required, `above ${step.tokens}`)
    requireKnown(step.rates, names, `above ${step.tokens}`)
  }
  const base = (name: TokenClass): ModelRate => ({
    published: standard.rates[name] ?? plainOf(plain, name).published,
    providerCost: costed.rates[name] ?? plainOf(plain, name).providerCost,
  })
  const first = { above: 0, rates: new Map(names.map((name) => [name, base(name)])) }
  const steps = [first, ...standard.above.map((step) => stepOf(step, names, costed.above, base))]
  const tiers = new Map<string, readonly Step[]>([[STANDARD, steps]])
  for (const [name, given] of Object.entries(published.tiers ?? {}))
    tiers.set(name, tierOf(name, given, { steps, required, names, costs: costs.tiers?.[name] }))
  const tools = new Map(SERVER_TOOLS.flatMap((tool) => toolOf(tool, published.tools?.[tool], costs.tools?.[tool])))
  if (names.length * steps.length * tiers.size + tools.size > COLUMNS_MOST)
    throw new RangeError(`classes, steps and tiers make more than ${COLUMNS_MOST} prices`)
  requireReadable([...tiers.values()].flat())
  if (digitsIn([...tiers.values()].flat()) > DIGITS_MOST)
    throw new RangeError('its prices have too many digits together')
  return { names, tiers, tools, toolCalls: published.tool_calls, toolInput: published.tool_input }
}

/** What is kept with a hold has to be read again by whoever settles it. */
function requireReadable(steps: readonly Step[]): void {
  const prices = steps.flatMap(({ rates: of }) => [...of.values()].flatMap((one) => [one.published, one.providerCost]))
  for (const price of prices)
    if (
      price !== null &&
      fraction(price)
        .split('/')
        .some((digits) => digits.length > FRACTION_DIGITS)
    )
      throw new RangeError(`a price has more than ${FRACTION_DIGITS} digits as a fraction`)
}

function digitsIn(steps: readonly Step[]): number {
  const texts = steps.flatMap(({ rates: of }) => [...of.values()].map(({ published }) => fraction(published)))
  return texts.join(' ').length
}

function byTable(one: TokenClass, other: TokenClass): number {
  return TOKEN_CLASS_NAMES.indexOf(one) - TOKEN_CLASS_NAMES.indexOf(other)
}

/** The plain price of a class, or of that which it is a part of. */
function plainOf(plain: PlainRates, name: TokenClass): ModelRate {
  if (isPlain(name)) return plain[name]
  return plainOf(plain, wholeOf(name) ?? 'input')
}

function isPlain(name: TokenClass): name is (typeof PLAIN_CLASSES)[number] {
  return PLAIN_CLASSES.some((one) => one === name)
}

function wholeOf(name: TokenClass): TokenClass | undefined {
  const entry: { readonly unit: string; readonly of?: string } = TOKEN_CLASSES[name]
  return entry.of !== undefined && isTokenClass(entry.of) ? entry.of : undefined
}

/** The price of a class, or of the nearest that it is a part of. */
function nearest(given: Rates, name: TokenClass): UnitPrice | undefined {
  const whole = wholeOf(name)
  return given[name] ?? (whole === undefined ? undefined : nearest(given, whole))
}

function requireAll(given: Rates, required: readonly TokenClass[], where: string): void {
  const missing = required.filter((name) => given[name] === undefined)
  if (missing.length > 0) throw new RangeError(`${where} needs a price of ${missing.join(', ')} too`)
}

/** A class that the price itself does not have has no column, and would be charged as its whole. */
function requireKnown(given: Rates, names: readonly TokenClass[], where: string): void {
  const others = Object.keys(given).filter((name) => !names.some((one) => one === name))
  if (others.length > 0)
    throw new RangeError(`${where} has a price of ${others.join(', ')}, which the price itself needs too`)
}

function stepOf(
  { tokens, rates: given }: WrittenStep,
  names: readonly TokenClass[],
  costs: readonly WrittenStep[],
  base: (name: TokenClass) => ModelRate,
): Step {
  const cost = costs.find((one) => one.tokens === tokens)?.rates ?? {}
  const rate = (name: TokenClass): ModelRate => ({
    published: nearest(given, name) ?? base(name).published,
    providerCost: nearest(cost, name) ?? base(name).providerCost,
  })
  return { above: tokens, rates: new Map(names.map((name) => [name, rate(name)])) }
}

type Tier = z.output<typeof tier>
type Whole = {
  readonly steps: readonly Step[]
  readonly required: readonly TokenClass[]
  readonly names: readonly TokenClass[]
  readonly costs: Tier | undefined
}

/** A tier has the same steps as the standard one: a long input is nowhere cheaper because somebody forgot it. */
function tierOf(name: string, given: Tier, { steps, required, names, costs }: Whole): readonly Step[] {
  const of = (written: Tier, at: number): Rates | undefined => {
    if ('times' in written) return undefined
    const tokens = steps[at]?.above ?? 0
    return tokens === 0 ? written.rates : written.above?.find((step) => step.tokens === tokens)?.rates
  }
  if (!('times' in given) && (given.above ?? []).length !== steps.length - 1)
    throw new RangeError(`tier ${name} needs the same steps as the standard one`)
  return steps.map((standard, at): Step => {
    const own = of(given, at)
    if (!('times' in given)) {
      requireAll(own ?? {}, required, `tier ${name} from ${standard.above} on`)
      requireKnown(own ?? {}, names, `tier ${name} from ${standard.above} on`)
    }
    const cost = costs === undefined ? undefined : of(costs, at)
    const rate = (one: TokenClass): ModelRate => {
      const { published, providerCost } = standard.rates.get(one) ?? NOTHING
      const timed = 'times' in given ? multiply(published, given.times) : published
      const costTimed =
        costs !== undefined && 'times' in costs && providerCost !== null
          ? multiply(providerCost, costs.times)
          : providerCost
      return {
        published: (own && nearest(own, one)) ?? timed,
        providerCost: (cost && nearest(cost, one)) ?? costTimed,
      }
    }
    return { above: standard.above, rates: new Map(names.map((one) => [one, rate(one)])) }
  })
}

const NOTHING: ModelRate = { published: { numerator: 0n, denominator: 1n }, providerCost: null }

function toolOf(tool: ServerTool, price: UnitPrice | undefined, cost: UnitPrice | undefined) {
  return price === undefined ? [] : [[tool, { published: price, providerCost: cost ?? null }] as const]
}

/**
 * What a request may ask for at this price, beyond plain tokens. Long input is held for within the context window: where that does not
 * reach beyond the last step, it is not the one that a longer input would have.
 */
export function needsMet({ names, tiers, tools }: ClassPrices, contextWindow: number): ReadonlySet<Need> {
  const [steps = []] = tiers.values()
  const isLong = steps.length > 1 && steps.every(({ above: tokens }) => contextWindow > tokens)
  return new Set<Need>([
    ...names.filter(isPartClass),
    ...(isLong ? ['long_context' as const] : []),
    ...[...tools.keys()].map((tool) => `tool:${tool}` as const),
    ...[...tiers.keys()].map((name) => `tier:${name}` as const),
  ])
}

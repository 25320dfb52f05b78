import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  PART_CLASS_NAMES,
  type PartClass,
  PLAIN_CLASSES,
  SERVER_TOOLS,
  type ServerTool,
  type TokenClass,
} from '../server/src/catalogue/price-classes.ts'
import { type ClassPricesText, classPricesForm, classPricesOf } from '../server/src/pricing/class-prices.ts'
import type { ModelPrice } from '../server/src/pricing/models.ts'
import type { Used } from '../server/src/pricing/price-sheet.ts'
import { priceIn } from '../server/src/pricing/unit-prices.ts'

/** A price in words of its own: USD for a million tokens in whole micro-dollars, so that the oracle needs no fractions. */
export type Written = {
  readonly plain: Readonly<Record<TokenClass, number>>
  readonly parts: readonly PartClass[]
  readonly steps: readonly { readonly above: number; readonly rates: Readonly<Record<TokenClass, number>> }[]
  /** Its own prices, or so many thousandths of the standard ones. */
  readonly tiers: Readonly<Record<string, number | readonly Readonly<Record<TokenClass, number>>[]>>
  readonly tools: Readonly<Partial<Record<ServerTool, number>>>
}

export const CLASSES: readonly TokenClass[] = [...PLAIN_CLASSES, ...PART_CLASS_NAMES]
const micros = fc.integer({ min: 0, max: 100_000_000 })
const ratesOf = fc.record(Object.fromEntries(CLASSES.map((name) => [name, micros]))) as fc.Arbitrary<
  Readonly<Record<TokenClass, number>>
>

export const written: fc.Arbitrary<Written> = fc
  .record({
    plain: ratesOf,
    parts: fc.subarray([...PART_CLASS_NAMES], { maxLength: 2 }),
    above: fc.uniqueArray(fc.integer({ min: 1, max: 3_000 }), { maxLength: 2 }),
    stepRates: fc.array(ratesOf, { minLength: 2, maxLength: 2 }),
    times: fc.option(fc.integer({ min: 0, max: 4_000 }), { nil: undefined }),
    own: fc.option(fc.array(ratesOf, { minLength: 3, maxLength: 3 }), { nil: undefined }),
    tools: fc.dictionary(fc.constantFrom(...SERVER_TOOLS), fc.integer({ min: 0, max: 50_000 })),
  })
  .map(({ above, stepRates, times, own, ...rest }) => {
    const steps = above
      .toSorted((a, b) => a - b)
      .map((tokens, at) => ({ above: tokens, rates: stepRates[at] ?? assert.fail() }))
    return {
      ...rest,
      steps,
      tiers: {
        ...(times !== undefined && { flex: times }),
        ...(own !== undefined && { priority: own.slice(0, steps.length + 1) }),
      },
    }
  })

const usdOf = (amount: number) => (amount / 1_000_000).toFixed(6)

export function priceOf({ plain, parts, steps, tiers, tools }: Written): ModelPrice {
  const names = [...PLAIN_CLASSES, ...parts]
  const text = (rates: Readonly<Record<TokenClass, number>>, of: readonly TokenClass[] = names) =>
    Object.fromEntries(of.map((name) => [name, usdOf(rates[name])]))
  const classes: ClassPricesText = {
    rates: text(plain, parts),
    above: steps.map(({ above, rates }) => ({ tokens: above, rates: text(rates) })),
    tiers: Object.fromEntries(
      Object.entries(tiers).map(([name, tier]) => [
        name,
        typeof tier === 'number'
          ? { times: (tier / 1_000).toFixed(3) }
          : {
              rates: text(tier[0] ?? assert.fail()),
              above: steps.map(({ above }, at) => ({ tokens: above, rates: text(tier[at + 1] ?? assert.fail()) })),
            },
      ]),
    ),
    tools: Object.fromEntries(Object.entries(tools).map(([tool, amount]) => [tool, usdOf(amount)])),
  }
  const rate = (name: TokenClass) => ({ published: priceIn(usdOf(plain[name])), providerCost: null })
  const rates = {
    input: rate('input'),
    output: rate('output'),
    cache_read: rate('cache_read'),
    cache_write: rate('cache_write'),
  }
  return {
    version: '1',
    images: null,
    videos: null,
    rates: { ...rates, cacheRead: rates.cache_read, cacheWrite: rates.cache_write },
    classes: classPricesOf(rates, PLAIN_CLASSES, classPricesForm.parse(classes)),
  }
}

/** What it costs, in thousandths of a pico-dollar: written down anew, class by class, from what vendors say. */
export function oracle({ plain, parts, steps, tiers, tools }: Written, used: Used): bigint {
  const inputTokens = used.input + used.cacheRead + used.cacheWrite
  const reached = steps.filter(({ above }) => inputTokens > above).length
  const tier = tiers[used.tier ?? 'standard']
  const standard = reached === 0 ? plain : (steps[reached - 1]?.rates ?? assert.fail())
  const rates = tier === undefined || typeof tier === 'number' ? standard : (tier[reached] ?? assert.fail())
  const thousandths = typeof tier === 'number' ? tier : 1_000
  const own = (part: PartClass, whole: number) => (parts.includes(part) ? Math.min(used.parts?.[part] ?? 0, whole) : 0)
  const longWrites = own('cache_write_1h', used.cacheWrite)
  const audioIn = own('input_audio', used.input)
  const imageIn = own('input_image', used.input - audioIn)
  const audioRead = own('cache_read_audio', used.cacheRead)
  const audioOut = own('output_audio', used.output)
  const imageOut = own('output_image', used.output - audioOut)
  const lines: readonly (readonly [number, number])[] = [
    [used.input - audioIn - imageIn, rates.input],
    [audioIn, rates.input_audio],
    [imageIn, rates.input_image],
    [used.cacheRead - audioRead, rates.cache_read],
    [audioRead, rates.cache_read_audio],
    [used.cacheWrite - longWrites, rates.cache_write],
    [longWrites, rates.cache_write_1h],
    [used.output - audioOut - imageOut, rates.output],
    [audioOut, rates.output_audio],
    [imageOut, rates.output_image],
  ]
  let thousandthPicos = 0n
  for (const [count, amount] of lines) thousandthPicos += BigInt(count) * BigInt(amount) * BigInt(thousandths)
  for (const tool of SERVER_TOOLS)
    thousandthPicos += BigInt(used.calls?.[tool] ?? 0) * BigInt(tools[tool] ?? 0) * 1_000_000_000n
  return thousandthPicos
}

/** To the nano-dollar, halves to the even neighbour. */
export function rounded(thousandthPicos: bigint): bigint {
  const [whole, rest] = [thousandthPicos / 1_000_000n, thousandthPicos % 1_000_000n]
  const isUp = rest > 500_000n || (rest === 500_000n && whole % 2n === 1n)
  return whole + (isUp ? 1n : 0n)
}

import {
  ANY_TIER,
  isPartClass,
  PART_CLASSES,
  PLAIN_CLASSES,
  type ServerTool,
  STANDARD,
  TOKEN_CLASSES,
  type TokenClass,
} from '../catalogue/price-classes.ts'
import { multiply, type Rational, rational } from '../kernel/rational.ts'
import type { Calls, ModelAsk, Parts, TokenUsage } from '../protocols/protocol.ts'
import type { ModelRate, Step } from './class-prices.ts'
import type { ModelPrice } from './models.ts'
import { type Counts, exactCost, fraction, type Terms, versionAt } from './terms.ts'

/** Tokens and calls, as far as anybody has counted them. */
export type Used = TokenUsage & {
  readonly parts?: Parts
  readonly calls?: Calls
  readonly tier?: string
}

export type Asked = Pick<ModelAsk, 'inputMost' | 'needs' | 'partsMost' | 'tier' | 'toolCalls'> & {
  readonly outputMost: number
}

/**
 * A model's price for those who pay a multiple of it: a column for each class of tokens in each step of each tier, and one for each
 * tool. A usage counts in the columns of one step of one tier, so that all of it has the prices of that.
 */
export type Sheet = {
  readonly terms: Terms
  /** The one place that says which price a token or a call has. */
  readonly countsOf: (used: Used) => Counts
  /** The one place that says what a request can cost at the most. */
  readonly mostOf: (asked: Asked) => Counts
}

/** The newest price of a model is one object until it changes, and multiples of it are few. */
const sheets = new WeakMap<ModelPrice, Map<string, Sheet>>()
const SHEETS_LIMIT = 1_000

export function sheetOf(price: ModelPrice, multiplier: Rational): Sheet {
  const ofPrice = sheets.get(price) ?? new Map<string, Sheet>()
  const key = fraction(multiplier)
  const known = ofPrice.get(key)
  if (known !== undefined) return known
  const made = makeSheet(price, multiplier)
  if (ofPrice.size >= SHEETS_LIMIT) ofPrice.clear()
  sheets.set(price, ofPrice.set(key, made))
  return made
}

/** The columns of one step of one tier begin at `start`. */
type Block = {
  readonly tier: string
  readonly above: number
  readonly start: number
  readonly step: Step
  /** The column of the dearest of some classes, once it was asked for. */
  readonly dearest: Map<readonly TokenClass[], number>
}

function makeSheet(price: ModelPrice, multiplier: Rational): Sheet {
  const { names, tiers, tools } = columnsOf(price)
  const blocks: Block[] = []
  for (const [tier, steps] of tiers)
    for (const step of steps)
      blocks.push({ tier, above: step.above, start: blocks.length * names.length, step, dearest: new Map() })
  const priced = (unit: string, rate: ModelRate) => ({ unit, ...rate, price: multiply(rate.published, multiplier) })
  const terms: Terms = {
    version: versionAt(price.version, multiplier),
    rates: [
      ...blocks.flatMap((block) =>
        names.map((name) => priced(unitOf(name, block), block.step.rates.get(name) ?? price.rates.input)),
      ),
      ...[...tools].map(([tool, rate]) => priced(`${tool} call`, rate)),
    ],
  }
  const layout = { names, blocks, tools: [...tools.keys()], width: terms.rates.length }
  return {
    terms,
    countsOf: (used) => countsIn(layout, used),
    mostOf: (asked) => mostIn(layout, terms, asked),
  }
}

/** A price without classes of its own is one step of one tier. */
function columnsOf({ rates, classes }: ModelPrice) {
  if (classes !== undefined) return classes
  const plain = { input: rates.input, output: rates.output, cache_read: rates.cacheRead, cache_write: rates.cacheWrite }
  const step: Step = { above: 0, rates: new Map(PLAIN_CLASSES.map((name) => [name, plain[name]])) }
  const names: readonly TokenClass[] = PLAIN_CLASSES
  return { names, tiers: new Map([[STANDARD, [step]]]), tools: new Map<ServerTool, ModelRate>() }
}

function unitOf(name: TokenClass, { tier, above }: Block): string {
  const { unit } = TOKEN_CLASSES[name]
  return `${tier === STANDARD ? '' : `${tier} `}${above === 0 ? '' : `above-${above} `}${unit}`
}

type Layout = {
  readonly names: readonly TokenClass[]
  readonly blocks: readonly Block[]
  readonly tools: readonly ServerTool[]
  readonly width: number
}

function countsIn({ names, blocks, tools, width }: Layout, used: Used): Counts {
  const { input, cacheRead, cacheWrite, tier = STANDARD } = used
  const { start } = blockFor(blocks, tier, input + cacheRead + cacheWrite)
  const counts = noneOf(width)
  const tokens = splitByClass(names, used)
  for (const [at, name] of names.entries()) counts[start + at] = BigInt(tokens.get(name) ?? 0)
  for (const [at, tool] of tools.entries()) counts[width - tools.length + at] = BigInt(used.calls?.[tool] ?? 0)
  return counts
}

function noneOf(width: number): bigint[] {
  return new Array<bigint>(width).fill(0n)
}

/** The last step that the input is beyond, all of it with what caches had. A tier without prices is the standard one. */
function blockFor(blocks: readonly Block[], tier: string, inputTokens: number): Block {
  const own = blocks.filter((block) => block.tier === tier)
  const [first] = blocks
  if (first === undefined) throw new Error('a price has no step')
  if (own.length === 0) return blockFor(blocks, first.tier, inputTokens)
  return own.findLast(({ above }) => above === 0 || inputTokens > above) ?? first
}

/** Each token in one class: what is in a part that has a price of its own is not in its whole. */
function splitByClass(names: readonly TokenClass[], used: Used): ReadonlyMap<TokenClass, number> {
  const { input, output, cacheRead, cacheWrite, parts = {} } = used
  const tokens = new Map<TokenClass, number>([
    ['input', input],
    ['output', output],
    ['cache_read', cacheRead],
    ['cache_write', cacheWrite],
  ])
  for (const name of names) {
    if (!isPartClass(name)) continue
    const whole = PART_CLASSES[name]
    const left = tokens.get(whole) ?? 0
    const own = Math.min(parts[name] ?? 0, left)
    tokens.set(name, own).set(whole, left - own)
  }
  return tokens
}

// Lists that are the same for every call, so that the dearest of each is looked for once a price.
/** The classes that a share of the input may be reported in. */
function inputClasses(text: readonly TokenClass[]) {
  const image: readonly TokenClass[] = [...text, 'input_image']
  const any: readonly TokenClass[] = [...image, 'input_audio', 'cache_read_audio']
  return { text, image, any }
}
const INPUT = inputClasses(['input', 'cache_read', 'cache_write'])
const INPUT_KEPT_AN_HOUR = inputClasses([...INPUT.text, 'cache_write_1h'])
const OUTPUT = ['output'] as const
const OUTPUT_SPOKEN = [...OUTPUT, 'output_audio'] as const
const OUTPUT_DRAWN = [...OUTPUT, 'output_image'] as const
const OUTPUT_OF_ANY_KIND = [...OUTPUT_SPOKEN, 'output_image'] as const

/** In the dearest step that it may come to, of the dearest tier that it may be answered in. */
function mostIn(layout: Layout, terms: Terms, asked: Asked): Counts {
  const { tier = ANY_TIER, inputMost } = asked
  const allowed = layout.blocks.filter(
    (block) =>
      (tier === ANY_TIER || block.tier === tier || block.tier === STANDARD) &&
      (block.above === 0 || inputMost > block.above),
  )
  const [first = [], ...others] = allowed.map((block) => mostOfBlock(layout, terms, block, asked))
  return others.reduce((dearest, one) => (isDearer(terms, one, dearest) ? one : dearest), first)
}

function isDearer(terms: Terms, one: Counts, other: Counts): boolean {
  return isMore(exactCost(terms, one), exactCost(terms, other))
}

function isMore(a: Rational, b: Rational): boolean {
  return a.numerator * b.denominator > b.numerator * a.denominator
}

const ZERO = rational(0n)

/** Each share of the input at the dearest class that it may be reported in, and so the output. */
function mostOfBlock(layout: Layout, terms: Terms, block: Block, asked: Asked): Counts {
  const { inputMost, outputMost, needs, partsMost = { image: 0, any: 0 }, toolCalls = 0 } = asked
  const counts = noneOf(layout.width)
  const take = (classes: readonly TokenClass[], tokens: number) => {
    if (tokens === 0) return
    const at = dearestColumn(block, layout, classes)
    counts[at] = (counts[at] ?? 0n) + BigInt(tokens)
  }
  const classes = needs?.has('cache_write_1h') ? INPUT_KEPT_AN_HOUR : INPUT
  // What may have any class is dearest, and is counted first.
  const any = Math.min(partsMost.any, inputMost)
  const image = Math.min(partsMost.image, inputMost - any)
  take(classes.any, any)
  take(classes.image, image)
  take(classes.text, inputMost - any - image)
  take(outputClasses(asked), outputMost)
  const tool = dearestTool(terms, layout, needs)
  if (tool !== undefined) counts[tool] = BigInt(toolCalls)
  return counts
}

function dearestColumn({ start, step, dearest }: Block, { names }: Layout, classes: readonly TokenClass[]): number {
  const known = dearest.get(classes)
  if (known !== undefined) return known
  const found =
    start +
    names.indexOf(
      dearestOf(
        step,
        classes.filter((name) => names.includes(name)),
      ),
    )
  dearest.set(classes, found)
  return found
}

/** Calls are bounded for all tools together, and may all be of one: the column of the dearest that is asked for. */
function dearestTool({ rates }: Terms, { tools, width }: Layout, needs: Asked['needs']): number | undefined {
  const columns = tools.flatMap((tool, at) => (needs?.has(`tool:${tool}`) ? [width - tools.length + at] : []))
  const priceAt = (at: number) => rates[at]?.price ?? ZERO
  return columns.reduce<number | undefined>(
    (dearest, at) => (dearest === undefined || isMore(priceAt(at), priceAt(dearest)) ? at : dearest),
    undefined,
  )
}

function outputClasses({ needs }: Asked): readonly TokenClass[] {
  const isDrawn = needs?.has('output_image') === true
  if (needs?.has('output_audio')) return isDrawn ? OUTPUT_OF_ANY_KIND : OUTPUT_SPOKEN
  return isDrawn ? OUTPUT_DRAWN : OUTPUT
}

function dearestOf({ rates }: Step, classes: readonly TokenClass[]): TokenClass {
  const value = (name: TokenClass) => rates.get(name)?.published ?? ZERO
  return classes.reduce((dearest, name) => (isMore(value(name), value(dearest)) ? name : dearest))
}

import { multiply, type Rational } from '../kernel/rational.ts'
import { UNREAD_ALLOWANCE, unreadText } from '../protocols/generated-text.ts'
import type { Reported, TokenUsage } from '../protocols/protocol.ts'
import type { TokenCounter, Tokenizer } from '../upstreams/tokens/count-tokens.ts'
import type { AskedOfModel, ModelPricing, WholeReply } from './model-pricing.ts'
import type { ModelPrice } from './models.ts'
import type { Measured } from './priced.ts'
import { type Counts, fraction, type Terms } from './terms.ts'

/** The classes in which tokens are priced, and the order of a model's rates and counts. */
const CLASSES = ['input', 'output', 'cacheRead', 'cacheWrite'] as const
const UNITS = {
  input: 'input token',
  output: 'output token',
  cacheRead: 'cache-read token',
  cacheWrite: 'cache-write token',
} as const
const READING = ['input', 'cacheRead', 'cacheWrite'] as const
const NONE: TokenUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
const countsOf = ({ input, output, cacheRead, cacheWrite }: TokenUsage): Counts => [
  BigInt(input),
  BigInt(output),
  BigInt(cacheRead),
  BigInt(cacheWrite),
]

/** What answers have as a rule, where a limit would allow more. */
const USUAL_OUTPUT = 500

/** Who counts tokens that nobody reports. */
export type Counting = { readonly counter: Pick<TokenCounter, 'count'>; readonly tokenizer: Tokenizer }

/** Tokens at the price of their class, as the upstream reports them; what it does not report is counted. */
export function byToken(
  { price, ask, outputMost, multiplier }: AskedOfModel,
  { counter, tokenizer }: Counting,
): ModelPricing {
  const { terms, dearest } = sheetOf(price, multiplier)
  // Every picture has about as many tokens as its model declares.
  const usual = (ask.imageKind === undefined ? Math.min(ask.outputLimit, USUAL_OUTPUT) : ask.outputLimit) * ask.choices

  function usedBy(reported: Reported, text: string): Promise<Measured> | Measured {
    const { input, output } = reported
    if (input === undefined || output === undefined) return counted(reported, text)
    return measured({ ...NONE, ...reported, input, output }, 'provider')
  }

  async function counted(reported: Reported, text: string): Promise<Measured> {
    const [input, output] = await Promise.all([
      reported.input ?? counter.count(ask.inputText(), tokenizer),
      reported.output ?? counter.count(text, tokenizer),
    ])
    // What was counted is all of the input, from wherever it was read.
    const caches = reported.input === undefined ? {} : reported
    return measured({ ...NONE, ...caches, input, output }, 'counted')
  }

  const most = { ...NONE, [dearest]: ask.inputMost, output: outputMost }
  /** Vectors are no tokens. */
  const isCountable = ask.outputLimit > 0

  function ofUnreadable(text: string | undefined): Promise<Measured> | Measured {
    // Neither a picture nor what is packed can be counted by looking at it.
    if (ask.imageKind !== undefined) return measured(most, 'counted')
    return usedBy(text === undefined ? { output: outputMost } : {}, isCountable ? (text ?? '') : '')
  }

  function ofReply({ reported, text, form, json, raw }: WholeReply): ReturnType<ModelPricing['ofReply']> {
    if (reported.output !== undefined || text !== '') return usedBy(reported, text)
    if (form === 'nothing') return undefined
    if (form === 'unreadable' || ask.imageKind !== undefined) return ofUnreadable(raw())
    // It has the form of an answer, but its words may stand where nobody looks for them.
    const unread = isCountable ? unreadText(json) : ''
    return usedBy(reported, unread.length > UNREAD_ALLOWANCE ? unread : '')
  }

  return {
    terms,
    most: countsOf(most),
    expected: countsOf({ ...NONE, input: ask.inputEstimate, output: usual }),
    // One at least: who has none left begins nothing that counts tokens.
    tokens: Math.max(1, ask.inputEstimate + ask.outputLimit * ask.choices),
    ofReply,
    ofUnreadable,
    ofDelivered: ({ reported, text, isOwed }) =>
      text === '' && reported.output === undefined && !isOwed ? undefined : usedBy(reported, text),
    ofNothing: (reported) => usedBy({ output: 0, ...reported }, ''),
    nothing: { counts: countsOf(NONE) },
  }
}

/** A model's price for those who pay a multiple of it. */
type Sheet = { readonly terms: Terms; readonly dearest: (typeof READING)[number] }

/** The newest price of a model is one object until it changes, and multiples of it are few. */
const sheets = new WeakMap<ModelPrice, Map<string, Sheet>>()
const SHEETS_LIMIT = 1_000

function sheetOf(price: ModelPrice, multiplier: Rational): Sheet {
  const ofPrice = sheets.get(price) ?? new Map<string, Sheet>()
  const key = fraction(multiplier)
  const known = ofPrice.get(key)
  if (known !== undefined) return known
  const made = makeSheet(price, multiplier)
  if (ofPrice.size >= SHEETS_LIMIT) ofPrice.clear()
  sheets.set(price, ofPrice.set(key, made))
  return made
}

function makeSheet({ version, rates }: ModelPrice, multiplier: Rational): Sheet {
  const priceOf = (name: (typeof CLASSES)[number]) => multiply(rates[name].published, multiplier)
  const terms = {
    version,
    rates: CLASSES.map((name) => ({ unit: UNITS[name], ...rates[name], price: priceOf(name) })),
  }
  const asNumber = ({ numerator, denominator }: Rational) => Number(numerator) / Number(denominator)
  // All of the input is held for at the dearest price that input can have.
  const dearest = READING.toSorted((a, b) => asNumber(priceOf(b)) - asNumber(priceOf(a)))[0] ?? 'input'
  return { terms, dearest }
}

function measured(usage: TokenUsage, source: 'provider' | 'counted'): Measured {
  return {
    counts: countsOf(usage),
    inputTokens: usage.input,
    outputTokens: usage.output,
    cacheReadTokens: usage.cacheRead,
    cacheWriteTokens: usage.cacheWrite,
    source,
  }
}

import { ANY_TIER, STANDARD } from '../catalogue/price-classes.ts'
import { UNREAD_ALLOWANCE, unreadText } from '../protocols/generated-text.ts'
import type { Reported, TokenUsage } from '../protocols/protocol.ts'
import type { TokenCounter, Tokenizer } from '../upstreams/tokens/count-tokens.ts'
import type { AskedOfModel, ModelPricing, WholeReply } from './model-pricing.ts'
import { type Sheet, sheetOf, type Used } from './price-sheet.ts'
import type { Measured } from './priced.ts'

const NONE: TokenUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }

/** What answers have as a rule, where a limit would allow more. */
const USUAL_OUTPUT = 500

/** Who counts tokens that nobody reports. */
export type Counting = { readonly counter: Pick<TokenCounter, 'count'>; readonly tokenizer: Tokenizer }

/** Tokens at the price of their class, as the upstream reports them; what it does not report is counted. */
export function byToken(
  { price, ask, outputMost, multiplier }: AskedOfModel,
  { counter, tokenizer }: Counting,
): ModelPricing {
  const sheet = sheetOf(price, multiplier)
  const { terms, countsOf } = sheet
  /** Neither sound nor pictures can be counted by looking at them. */
  const isMedia = ask.needs?.has('output_audio') === true || ask.needs?.has('output_image') === true
  const measured = (usage: Used, source: 'provider' | 'counted') => measuredBy(sheet, usage, source)
  // Every picture has about as many tokens as its model declares.
  const usual = (ask.imageKind === undefined ? Math.min(ask.outputLimit, USUAL_OUTPUT) : ask.outputLimit) * ask.choices

  function usedBy(reported: Reported, text: string): Promise<Measured> | Measured {
    const { input, output } = reported
    if (input === undefined || output === undefined) return counted(reported, text)
    return measured(usageOf({ ...reported, input, output }), 'provider')
  }

  async function counted(reported: Reported, text: string): Promise<Measured> {
    const [input, output] = await Promise.all([
      reported.input ?? countInput(),
      reported.output ?? counter.count(text, tokenizer),
    ])
    // What was counted is all of the input, from wherever it was read.
    const { cacheRead: _, cacheWrite: __, ...rest } = reported
    return measured(usageOf({ ...(reported.input === undefined ? rest : reported), input, output }), 'counted')
  }

  async function countInput(): Promise<number> {
    const { texts, mostOfEach } = ask.longInputs ?? { texts: [], mostOfEach: 0 }
    const long = texts.map(async (text) => Math.min(mostOfEach, await counter.count(text, tokenizer)))
    const counts = await Promise.all([counter.count(ask.inputText(), tokenizer), ...long])
    return counts.reduce((sum, count) => sum + count, 0)
  }

  /** A tier that nobody reports is the one that was asked for, where that is one. */
  function usageOf(reported: Reported & { readonly input: number; readonly output: number }): Used {
    const tier = reported.tier ?? (ask.tier === ANY_TIER ? STANDARD : ask.tier)
    return { ...NONE, ...reported, ...(tier !== undefined && { tier }) }
  }

  const most = sheet.mostOf({ ...ask, outputMost })
  const atMost: Measured = {
    ...measured({ ...NONE, input: ask.inputMost, output: outputMost }, 'counted'),
    counts: most,
  }
  /** Vectors are no tokens. */
  const isCountable = ask.outputLimit > 0

  function ofUnreadable(text: string | undefined): Promise<Measured> | Measured {
    if (isMedia) return atMost
    return usedBy(text === undefined ? { output: outputMost } : {}, isCountable ? (text ?? '') : '')
  }

  function ofReply({ reported, text, form, json, hasMedia, raw }: WholeReply): ReturnType<ModelPricing['ofReply']> {
    const isUncountable = isMedia && hasMedia
    if (reported.output !== undefined || (text !== '' && !isUncountable)) return usedBy(reported, text)
    if (form === 'nothing') return undefined
    if (form === 'unreadable' || isUncountable) return ofUnreadable(raw())
    // It has the form of an answer, but its words may stand where nobody looks for them.
    const unread = isCountable ? unreadText(json) : ''
    return usedBy(reported, unread.length > UNREAD_ALLOWANCE ? unread : '')
  }

  return {
    terms,
    most,
    expected: countsOf(usageOf({ input: ask.inputEstimate, output: usual })),
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

function measuredBy({ countsOf }: Sheet, usage: Used, source: 'provider' | 'counted'): Measured {
  return {
    counts: countsOf(usage),
    inputTokens: usage.input,
    outputTokens: usage.output,
    cacheReadTokens: usage.cacheRead,
    cacheWriteTokens: usage.cacheWrite,
    source,
  }
}

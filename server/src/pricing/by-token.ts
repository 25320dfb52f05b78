import { ANY_TIER, STANDARD } from '../catalogue/price-classes.ts'
import { UNREAD_ALLOWANCE, unreadText } from '../protocols/generated-text.ts'
import type { Calls, ModelAsk, Reported, TokenUsage } from '../protocols/protocol.ts'
import type { TokenCounter, Tokenizer } from '../upstreams/tokens/count-tokens.ts'
import type { AskedOfModel, ModelPricing, WholeReply } from './model-pricing.ts'
import { type Sheet, sheetOf, type Used } from './price-sheet.ts'
import type { Measured } from './priced.ts'
import { mostFor } from './terms.ts'

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

  /** What was told before the end of a stream may say too little of what it delivered: the larger of both counts. */
  function usedBy(reported: Reported, text: string, isWhole = true): Promise<Measured> | Measured {
    const { input, output } = reported
    if (input === undefined || output === undefined || !isWhole) return counted(reported, text, isWhole)
    return measured(usageOf({ ...reported, input, output }), 'provider')
  }

  async function counted(reported: Reported, text: string, isWhole: boolean): Promise<Measured> {
    const isFinal = reported.output !== undefined && isWhole
    const [read, written] = await Promise.all([
      reported.input === undefined ? countInput(reported.calls) : undefined,
      isFinal ? undefined : countOutput(reported, text),
    ])
    const input = read?.input ?? reported.input ?? 0
    const said = reported.output ?? reported.outputSoFar ?? 0
    const output = Math.max(said, written?.output ?? 0)
    const parts = { ...reported.parts, ...read?.parts, ...(output > said && written?.parts) }
    // What was counted is all of the input, from wherever it was read.
    const { cacheRead: _, cacheWrite: __, ...rest } = reported
    const isReported = read === undefined && reported.output === output
    return measured(
      usageOf({ ...(read === undefined ? reported : rest), parts, input, output }),
      isReported ? 'provider' : 'counted',
    )
  }

  async function countOutput({ soundTokens = 0, parts }: Reported, text: string) {
    const words = await counter.count(text, tokenizer)
    const sound = Math.max(0, Math.min(soundTokens, outputMost - words))
    return { output: words + sound, parts: { output_audio: Math.max(sound, parts?.output_audio ?? 0) } }
  }

  /** All of it once, and once more for each call of a tool that the upstream is known to have made: the model reads what that brought. */
  async function countInput(calls: Calls = {}) {
    const { texts, mostOfEach } = ask.longInputs ?? { texts: [], mostOfEach: 0 }
    const long = texts.map(async (text) => Math.min(mostOfEach, await counter.count(text, tokenizer)))
    const counts = await Promise.all([counter.count(ask.inputText(), tokenizer), ...long])
    const { image, audio, other } = ask.inputParts ?? { image: 0, audio: 0, other: 0 }
    const once = counts.reduce((sum, count) => sum + count, image + audio + other)
    const rounds = Object.values(calls).reduce((sum, count) => sum + count, 1)
    const { partsMost = { image: 0, any: 0 }, inputMost } = ask
    // Never more than is held for.
    const parts = {
      input_image: Math.min(image * rounds, partsMost.image),
      input_audio: Math.min(audio * rounds, partsMost.any),
    }
    return { input: Math.min(once * rounds, inputMost), parts }
  }

  /** A tier that nobody reports is the one that was asked for, where that is one. */
  function usageOf(reported: Reported & { readonly input: number; readonly output: number }): Used {
    const tier = reported.tier ?? (ask.tier === ANY_TIER ? STANDARD : ask.tier)
    return { ...NONE, ...reported, ...(tier !== undefined && { tier }) }
  }

  const most = sheet.mostOf({ ...ask, outputMost })
  const atMost = (): Measured => ({
    ...measured({ ...NONE, input: ask.inputMost, output: outputMost }, 'counted'),
    counts: most,
  })
  /** Vectors are no tokens. */
  const isCountable = ask.outputLimit > 0

  function ofUnreadable(text: string | undefined): Promise<Measured> | Measured {
    if (isMedia) return atMost()
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
    expected: () => countsOf(usageOf({ input: Math.min(ask.inputEstimate, ask.inputMost), output: usual })),
    assumption: () => assumptionOf(ask, usual, outputMost),
    // One at least: who has none left begins nothing that counts tokens.
    tokens: Math.max(1, ask.inputEstimate + ask.outputLimit * ask.choices),
    ofReply,
    ofUnreadable,
    ofDelivered: ({ reported, text, isOwed, isWhole }) =>
      isOwed || text !== '' || hasOutput(reported) ? usedBy(reported, text, isWhole) : undefined,
    ofNothing: (reported) => usedBy({ output: reported.outputSoFar ?? 0, ...reported }, ''),
    nothing: () => ({ counts: countsOf(NONE) }),
    heldFor: (outputMost, moreInput) =>
      mostFor(terms, sheet.mostOf({ ...ask, inputMost: ask.inputMost + moreInput, outputMost })),
    mostWith: (outputMost) => sheet.mostOf({ ...ask, outputMost }),
  }
}

function hasOutput({ output, outputSoFar, soundTokens }: Reported): boolean {
  return (output ?? outputSoFar ?? soundTokens) !== undefined
}

/** In what an estimate differs from the most: how much is written, from where input is read, and what tools cost. */
function assumptionOf({ inputEstimate, needs }: ModelAsk, usual: number, outputMost: number): string {
  const most = usual < outputMost ? ` (${readable(outputMost)} at most)` : ''
  const assumed = [
    `about ${readable(inputEstimate)} tokens of input`,
    ...(outputMost === 0 ? [] : [`${readable(usual)} of output${most}`]),
    'nothing read from or written to a cache',
    ...([...(needs ?? [])].some((need) => need.startsWith('tool:')) ? ['no call of a tool'] : []),
  ]
  return `Assumed: ${assumed.join(', ')}.`
}

const readable = (count: number) => count.toLocaleString('en-US')

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

import type { PlantedBug } from './planted-bug.ts'

const SHEET = 'server/src/pricing/price-sheet.test.ts'
const USAGE = 'server/src/pricing/usage-classes.test.ts'
const CLASSES = 'server/src/pricing/class-prices.test.ts'
const ASKS = 'server/src/protocols/priced-asks.test.ts'
const OVER_HTTP = 'test/acceptance/models/price-classes.test.ts'
const HOLD = 'A hold covers the most that a call can cost.'
const CHARGE = 'A charge is that of what the upstream reports, each token once and at its own price.'

/** Prices in classes, steps, tiers and tools: what is held too little, charged too much, or never charged. */
export const bugsOfClasses: readonly PlantedBug[] = [
  {
    id: 'hour-held-as-minutes',
    title: 'a cache of one hour is held for at the price of five minutes',
    promise: HOLD,
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/price-sheet.ts',
        find: "needs?.has('cache_write_1h') ? [...TEXT, 'cache_write_1h'] : TEXT",
        replace: 'TEXT',
      },
    ],
    caughtBy: [
      { file: SHEET, title: 'is never below what an honest upstream may report' },
      { file: SHEET, title: 'has no price in it that the request does not ask for' },
    ],
  },
  {
    id: 'step-of-new-input-alone',
    title: 'what was read from a cache does not count towards the price of long input',
    promise: 'Long input is priced by all of it, caches included.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/price-sheet.ts',
        find: 'blockFor(blocks, tier, input + cacheRead + cacheWrite)',
        replace: 'blockFor(blocks, tier, input)',
      },
    ],
    caughtBy: [
      { file: SHEET, title: 'is what an independent reckoning says, to the nano-dollar' },
      { file: OVER_HTTP, title: 'from the first token beyond the step on' },
    ],
  },
  {
    id: 'step-held-at-the-first',
    title: 'input that may be long is held for at the price of short input',
    promise: HOLD,
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/price-sheet.ts',
        find: '(block.above === 0 || inputMost > block.above)',
        replace: 'block.above === 0',
      },
    ],
    caughtBy: [{ file: SHEET, title: 'is never below what an honest upstream may report' }],
  },
  {
    id: 'part-charged-twice',
    title: 'what has a price of its own is charged once more with its whole',
    promise: CHARGE,
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/price-sheet.ts',
        find: 'tokens.set(name, own).set(whole, left - own)',
        replace: 'tokens.set(name, own)',
      },
    ],
    caughtBy: [
      { file: SHEET, title: 'is what an independent reckoning says, to the nano-dollar' },
      { file: USAGE, title: 'to the nano-dollar: anthropic' },
    ],
  },
  {
    id: 'chosen-tier-held-as-standard',
    title: 'where the upstream chooses the tier, the standard one is held for',
    promise: HOLD,
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/price-sheet.ts',
        find: 'tier === ANY_TIER || block.tier',
        replace: 'block.tier',
      },
    ],
    caughtBy: [
      { file: SHEET, title: 'has the dearest tier where the upstream may choose' },
      { file: SHEET, title: 'is never below what an honest upstream may report' },
    ],
  },
  {
    id: 'tier-as-asked',
    title: 'a call is charged in the tier that was asked for, though the upstream says that it gave another',
    promise: 'The tier that was given decides the charge.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/by-token.ts',
        find: 'reported.tier ?? (ask.tier === ANY_TIER ? STANDARD : ask.tier)',
        replace: 'ask.tier === ANY_TIER ? STANDARD : ask.tier',
      },
    ],
    caughtBy: [{ file: OVER_HTTP, title: 'costs the tier that the upstream says' }],
  },
  {
    id: 'searches-for-nothing',
    title: 'calls of tools are counted, and not charged in a stream',
    promise: 'Every call of a tool that an upstream ran is charged.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/openai-responses-reply.ts',
        find: '...callsOf(moreOf(calls, ran)), ',
        replace: '',
      },
    ],
    caughtBy: [{ file: OVER_HTTP, title: 'costs each call of a tool that the upstream ran' }],
  },
  {
    id: 'rounds-held-once',
    title: 'what is read again after each call of a tool is held for once',
    promise: HOLD,
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/bound.ts',
        find: 'prompt.hosted === undefined ? once : mostOfRounds(once, prompt.hosted, limits)',
        replace: 'once',
      },
    ],
    caughtBy: [{ file: ASKS, title: 'has the model read all of it again in each round' }],
  },
  {
    id: 'written-words-read-for-nothing',
    title: 'what a model wrote before it called a tool is not held for, though it reads that again',
    promise: HOLD,
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/bound.ts',
        find: 'once + brought + outputMost',
        replace: 'once + brought',
      },
    ],
    caughtBy: [{ file: ASKS, title: 'has the model read all of it again in each round' }],
  },
  {
    id: 'rounds-of-allowed-calls-alone',
    title: 'rounds in which a call is refused by the upstream are not held for',
    promise: HOLD,
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/anthropic-request.ts',
        find: 'rounds: Math.max(calls, ROUNDS_LEAST)',
        replace: 'rounds: calls',
      },
    ],
    caughtBy: [{ file: ASKS, title: 'goes on after calls that are too many' }],
  },
  {
    id: 'bound-that-is-not-sent',
    title: 'as many calls are held for as the price allows, and nothing tells the upstream',
    promise: 'What has no bound is refused.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/anthropic-request.ts',
        find: 'callsIn(tool.max_uses, ',
        replace: 'callsIn(tool.max_uses ?? sold?.toolCalls, ',
      },
    ],
    caughtBy: [{ file: ASKS, title: 'refuses a tool whose calls have no bound' }],
  },
  {
    id: 'tool-without-a-bound',
    title: 'a tool whose calls nobody bounds is taken, and one call is held for',
    promise: 'What has no bound is refused.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/members.ts',
        find: 'if (!isGiven(value)) throw',
        replace: 'if (!isGiven(value)) return 1\n  if (!isGiven(value)) throw',
      },
    ],
    caughtBy: [
      { file: OVER_HTTP, title: 'MODEL-6 what a model has no price of' },
      { file: ASKS, title: 'refuses a tool whose calls have no bound' },
    ],
  },
  {
    id: 'image-taken-for-text',
    title: 'a part that is no text is held for at the price of text',
    promise: HOLD,
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/price-sheet.ts',
        find: 'take([...text, ...PICTURES, ...SOUNDS], any)',
        replace: 'take(text, any)',
      },
    ],
    caughtBy: [{ file: SHEET, title: 'is never below what an honest upstream may report' }],
  },
  {
    id: 'drawn-by-default-held-as-text',
    title: 'a model that draws unless told otherwise is held for at the price of text',
    promise: HOLD,
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/gemini-request.ts',
        find: 'if (itemsIn(responseModalities).length > 0) return needs',
        replace: 'if (needs !== undefined) return needs',
      },
    ],
    caughtBy: [{ file: ASKS, title: 'is whatever a model of Gemini gives by itself' }],
  },
  {
    id: 'long-input-beyond-the-window',
    title: 'input that is longer than the context window of the hold is taken',
    promise: HOLD,
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/class-prices.ts',
        find: 'steps.length > 1 && steps.every(({ above: tokens }) => contextWindow > tokens)',
        replace: 'steps.length > 1',
      },
    ],
    caughtBy: [{ file: CLASSES, title: 'has long input where the context window reaches beyond the last step' }],
  },
  {
    id: 'searches-of-a-cut-stream',
    title: 'calls of tools in a stream that breaks off are not charged',
    promise: 'Every call of a tool that an upstream ran is charged.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/anthropic-reply.ts',
        find: 'callsOf(moreOf(reported.calls, calls))',
        replace: 'callsOf(reported.calls ?? {})',
      },
    ],
    caughtBy: [{ file: 'server/src/protocols/anthropic-reply.test.ts', title: 'are counted before they are reported' }],
  },
  {
    id: 'preview-at-the-price-of-a-search',
    title: 'the preview of a search is sold at the price of a search',
    promise: 'What has no price is refused.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/openai-responses-members.ts',
        find: 'web_search_preview: PREVIEW,',
        replace: 'web_search_preview: WEB_SEARCH,',
      },
    ],
    caughtBy: [{ file: ASKS, title: 'is no preview of a search' }],
  },
  {
    id: 'cached-picture-as-new',
    title: 'a picture that was read from a cache is charged as a new one',
    promise: CHARGE,
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/gemini-reply.ts',
        find: 'Math.max(0, imageIn - imageCached)',
        replace: 'imageIn',
      },
    ],
    caughtBy: [{ file: USAGE, title: 'to the nano-dollar: gemini' }],
  },
  {
    id: 'hour-within-a-fetched-page',
    title: 'a cache of one hour is not seen in what a tool has fetched',
    promise: HOLD,
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/anthropic-members.ts',
        find: "ranWith('web_fetch_tool_result', () => fetched)",
        replace: 'ranUpstream',
      },
    ],
    caughtBy: [
      {
        file: 'server/src/protocols/anthropic-request.test.ts',
        title: 'is refused wherever a long cache is asked for',
      },
    ],
  },
  {
    id: 'blocked-prompt-at-the-hold',
    title: 'an answer without pictures costs the hold, because it might have had some',
    promise: CHARGE,
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/by-token.ts',
        find: 'isMedia && hasMedia',
        replace: 'isMedia',
      },
    ],
    caughtBy: [
      { file: 'server/src/pricing/by-token.test.ts', title: 'is counted where it has neither sound nor pictures' },
    ],
  },
]

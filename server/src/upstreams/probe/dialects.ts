import type { Members } from '../../catalogue/member-table.ts'
import { countIn, memberOf } from '../../catalogue/price.ts'
import { anthropic } from '../../protocols/anthropic.ts'
import { gemini, geminiStream } from '../../protocols/gemini.ts'
import { openai } from '../../protocols/openai.ts'
import { openaiResponses } from '../../protocols/openai-responses.ts'
import type { Protocol, ProtocolName } from '../../protocols/protocol.ts'
import { itemsOf } from '../../protocols/usage.ts'

/** The protocols of conversations: only there is an output that a limit can bound. */
export type ProbedProtocol = 'openai' | 'openai_responses' | 'anthropic' | 'gemini'

export function isProbed(protocol: ProtocolName): protocol is ProbedProtocol {
  return Object.hasOwn(DIALECTS, protocol)
}

/** The counts of an answer as the vendor writes them, before anybody adds them up. */
export type RawCounts = {
  readonly input: number | undefined
  /** Without what is counted apart. */
  readonly output: number | undefined
  readonly reasoning: number | undefined
  readonly total: number | undefined
}

/** How a protocol asks the probe's question, and where its answer says what the probe looks for. */
type Dialect = {
  readonly whole: Protocol
  readonly streamed: Protocol
  readonly bodyFor: (model: string, members: Members) => Members
  /** Whether no request is taken that has no limit. */
  readonly needsLimit: boolean
  /** So low that an answer which heeds it can't be mistaken for one that ended by itself, and that vendors take it. */
  readonly lowLimit: number
  /** Whether a total counts what the output does not: reasoning, as a rule. */
  readonly hasTotal: boolean
  /** What asks for a stream, beside the path. */
  readonly stream: Members
  /** Asks for a little reasoning; left out where that would cost more than everything else together. */
  readonly reasoning?: Members
  /** A member in another case that shows in the answer, alone: a vendor may prefer the right spelling where both stand. */
  readonly folded: Members
  /** Whether it shows as a stream; otherwise as an answer that is cut. */
  readonly foldsIntoStream: boolean
  readonly stopOf: (json: unknown) => unknown
  readonly lengthStop: string
  readonly countsOf: (json: unknown) => RawCounts
}

/** Its natural answer has a few hundred tokens, in words that no tokenizer makes one of. */
export const QUESTION =
  'Write the whole numbers from one to sixty as English words, in order, separated by commas, and nothing else. ' +
  'Do not use digits, do not explain anything, and do not stop before sixty.'

/** The limit in another case, so small that an answer which heeds it can't be mistaken. */
export const FOLDED_LIMIT = 4

/** The lowest that one protocol's own vendor takes is more than what the others need. */
export const LOW_LIMITS = { most: 8, responses: 16 } as const

const messages = [{ role: 'user', content: QUESTION }]

export const DIALECTS: Readonly<Record<ProbedProtocol, Dialect>> = {
  openai: {
    whole: openai,
    streamed: openai,
    bodyFor: (model, members) => ({ model, messages, ...members }),
    needsLimit: false,
    lowLimit: LOW_LIMITS.most,
    hasTotal: true,
    stream: { stream: true, stream_options: { include_usage: true } },
    reasoning: { reasoning_effort: 'low' },
    folded: { STREAM: true },
    foldsIntoStream: true,
    stopOf: (json) => memberOf(itemsOf(memberOf(json, 'choices'))[0], 'finish_reason'),
    lengthStop: 'length',
    countsOf: (json) => ({
      input: countIn(memberOf(json, 'usage', 'prompt_tokens')),
      output: countIn(memberOf(json, 'usage', 'completion_tokens')),
      reasoning: countIn(memberOf(json, 'usage', 'completion_tokens_details', 'reasoning_tokens')),
      total: countIn(memberOf(json, 'usage', 'total_tokens')),
    }),
  },
  openai_responses: {
    whole: openaiResponses,
    streamed: openaiResponses,
    bodyFor: (model, members) => ({ model, input: QUESTION, store: false, ...members }),
    needsLimit: false,
    lowLimit: LOW_LIMITS.responses,
    hasTotal: true,
    stream: { stream: true },
    reasoning: { reasoning: { effort: 'low' } },
    folded: { STREAM: true },
    foldsIntoStream: true,
    stopOf: (json) => memberOf(json, 'incomplete_details', 'reason'),
    lengthStop: 'max_output_tokens',
    countsOf: (json) => ({
      input: countIn(memberOf(json, 'usage', 'input_tokens')),
      output: countIn(memberOf(json, 'usage', 'output_tokens')),
      reasoning: countIn(memberOf(json, 'usage', 'output_tokens_details', 'reasoning_tokens')),
      total: countIn(memberOf(json, 'usage', 'total_tokens')),
    }),
  },
  anthropic: {
    whole: anthropic,
    streamed: anthropic,
    bodyFor: (model, members) => ({ model, messages, ...members }),
    needsLimit: true,
    lowLimit: LOW_LIMITS.most,
    hasTotal: false,
    stream: { stream: true },
    folded: { STREAM: true },
    foldsIntoStream: true,
    stopOf: (json) => memberOf(json, 'stop_reason'),
    lengthStop: 'max_tokens',
    countsOf: (json) => ({
      input: countIn(memberOf(json, 'usage', 'input_tokens')),
      output: countIn(memberOf(json, 'usage', 'output_tokens')),
      reasoning: countIn(memberOf(json, 'usage', 'output_tokens_details', 'thinking_tokens')),
      total: undefined,
    }),
  },
  gemini: {
    whole: gemini,
    streamed: geminiStream,
    bodyFor: (_, generationConfig) => ({ contents: [{ role: 'user', parts: [{ text: QUESTION }] }], generationConfig }),
    needsLimit: false,
    lowLimit: LOW_LIMITS.most,
    hasTotal: false,
    stream: {},
    reasoning: { thinkingConfig: { thinkingBudget: 128 } },
    folded: { MAXOUTPUTTOKENS: FOLDED_LIMIT },
    foldsIntoStream: false,
    stopOf: (json) => memberOf(itemsOf(memberOf(json, 'candidates'))[0], 'finishReason'),
    lengthStop: 'MAX_TOKENS',
    countsOf: (json) => geminiCounts(memberOf(json, 'usageMetadata')),
  },
}

/** Thoughts stand beside the candidates in this protocol, and both are output. */
function geminiCounts(usage: unknown): RawCounts {
  const candidates = countIn(memberOf(usage, 'candidatesTokenCount'))
  const reasoning = countIn(memberOf(usage, 'thoughtsTokenCount'))
  const isSaid = candidates !== undefined || reasoning !== undefined
  return {
    input: countIn(memberOf(usage, 'promptTokenCount')),
    output: isSaid ? (candidates ?? 0) + (reasoning ?? 0) : undefined,
    reasoning,
    total: countIn(memberOf(usage, 'totalTokenCount')),
  }
}

import type { ProtocolName } from '../../../server/src/protocols/protocol.ts'

/** Those of conversations. */
export type Protocol = Extract<ProtocolName, 'openai' | 'openai_responses' | 'anthropic' | 'gemini'>

/** A library that callers have, which is asked in our words: what it makes of them is its own. */
export type Client = {
  readonly name: string
  readonly protocol: Protocol
  readonly ask: (to: Addressee, question: Question, options: Options) => Promise<Said>
  /** What the library tells of something that it threw. */
  readonly failureOf: (thrown: unknown) => Failure
  /** Whether it keeps to itself what it does not know of the usage in a stream. */
  readonly hidesCostInStreams?: boolean
  /** Whether it keeps nothing of an error but the body. */
  readonly hidesHeadersOfErrors?: boolean
}

/** All that a library is told of us. */
export type Addressee = { readonly url: string; readonly secret: string }

export type Question = {
  readonly model: string
  readonly turns: readonly Turn[]
  readonly tool?: Tool
  /** The schema of the answer, or any object. */
  readonly json?: Schema | 'any object'
  readonly limit?: number
}

export type Turn =
  | { readonly by: 'user'; readonly text: string; readonly png?: string }
  | { readonly by: 'assistant'; readonly text: string }
  | { readonly by: 'tool'; readonly call: ToolCall; readonly result: string }

export type Schema = {
  readonly type: 'object'
  readonly properties: Readonly<Record<string, { readonly type: 'string' | 'integer' }>>
  readonly required: string[]
  readonly additionalProperties: false
}
export type Tool = { readonly name: string; readonly description: string; readonly schema: Schema }
export type ToolCall = { readonly id: string; readonly name: string; readonly input: unknown }

export type Options = {
  readonly streamed: boolean
  readonly signal?: AbortSignal
  /** Told of each piece of text as it comes. */
  readonly onText?: (text: string) => void
}

export type Said = {
  readonly text: string
  readonly calls: readonly ToolCall[]
  readonly finish: 'stop' | 'length' | 'tool' | undefined
  readonly usage: Tokens
  /** What the call cost, where the library lets that through: in a header, or in the usage of a stream. */
  readonly costUsd: string | undefined
  readonly requestId: string | undefined
}

/** In classes that do not overlap. */
export type Tokens = {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

export type Failure = {
  readonly className: string
  readonly status: number | undefined
  readonly code: unknown
  readonly type: unknown
  readonly requestId: string | undefined
  readonly retryAfter: string | undefined
}

export const COST_HEADER = 'x-farebox-cost-usd'
export const DEFAULT_LIMIT = 1_000

export function finishOf(reason: unknown): Said['finish'] {
  switch (reason) {
    case 'stop':
    case 'end_turn':
    case 'completed':
    case 'STOP':
      return 'stop'
    case 'length':
    case 'max_tokens':
    case 'max_output_tokens':
    case 'MAX_TOKENS':
      return 'length'
    case 'tool_calls':
    case 'tool-calls':
    case 'tool_use':
      return 'tool'
    default:
      return undefined
  }
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

import { SANDBOX_LIMITS } from '../../harness/seed.ts'
import type { JournalEntry } from '../../sandbox/src/journal.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { SPOKEN } from '../../server/src/upstreams/protocols/protocols.ts'

/** Tokens in classes that do not overlap, as they are priced. */
export type Tokens = {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

/** A question to a model. */
export type Question = {
  readonly model: string
  readonly words: string
  readonly isStream: boolean
  readonly outputLimit?: number
  /** Whether the caller asks for the usage at the end of a stream, where the protocol leaves that to it. */
  readonly wantsUsage: boolean
}

/** What a caller reads in a frame of a stream. */
export type Heard = {
  readonly text?: string
  readonly isEnd?: boolean
  readonly costNanos?: bigint
  /** An error, and whose request it says to be about. */
  readonly error?: { readonly code: string; readonly about: string }
}

/** How models are asked in one protocol, and what its callers hear and its upstream reports. One more is one more row. */
export type Speech = {
  readonly operation: string
  readonly path: (question: Question) => string
  readonly body: (question: Question) => Members
  /** The body as it reaches the upstream, by which its journal knows it. */
  readonly upstreamBody: (body: string, question: Question) => Buffer
  readonly hear: (event: string, data: string) => Heard
  /** Whether the last frame of such a stream tells what it cost, of an upstream that reports. */
  readonly tellsCost: (question: Pick<Question, 'wantsUsage'>) => boolean
  /** What the upstream has reported of a call, where it came to report all of it. */
  readonly reported: (entry: JournalEntry) => Tokens | undefined
  /** The tokens of the input by their classes, as far as they were reported. */
  readonly reportedInput: (entry: JournalEntry) => Omit<Tokens, 'output'> | undefined
}

type Members = Readonly<Record<string, unknown>>

const openai: Speech = {
  operation: 'chat_completions',
  path: () => '/v1/chat/completions',
  body: ({ model, words, isStream, outputLimit, wantsUsage }) => ({
    model,
    messages: [{ role: 'user', content: words }],
    ...(outputLimit !== undefined && { max_completion_tokens: outputLimit }),
    ...(isStream && { stream: true }),
    ...(isStream && wantsUsage && { stream_options: { include_usage: true } }),
  }),
  upstreamBody: (body, { model }) => passedOn('openai', body, model),
  hear(_, data) {
    if (data === '[DONE]') return { isEnd: true }
    const json = jsonOf(data)
    return {
      ...textOf(memberOf(memberOf(memberOf(json, 'choices'), '0'), 'delta'), 'content'),
      ...costOf(memberOf(json, 'usage')),
      ...errorOf(json),
    }
  },
  tellsCost: ({ wantsUsage }) => wantsUsage,
  reported({ usage }) {
    if (usage === null) return undefined
    const details = memberOf(usage, 'prompt_tokens_details')
    const [cacheRead, cacheWrite] = [countOf(details, 'cached_tokens'), countOf(details, 'cache_write_tokens')]
    const input = countOf(usage, 'prompt_tokens') - cacheRead - cacheWrite
    return { input, output: countOf(usage, 'completion_tokens'), cacheRead, cacheWrite }
  },
  reportedInput: (entry) => openai.reported(entry),
}

const anthropic: Speech = {
  operation: 'messages',
  path: () => '/v1/messages',
  body: ({ model, words, isStream, outputLimit }) => ({
    model,
    messages: [{ role: 'user', content: words }],
    ...(outputLimit !== undefined && { max_tokens: outputLimit }),
    ...(isStream && { stream: true }),
  }),
  upstreamBody: (body, { model }) => passedOn('anthropic', body, model),
  hear(event, data) {
    if (event === 'message_stop') return { isEnd: true }
    const json = jsonOf(data)
    if (event === 'error') return { error: { code: '', about: '' }, ...errorOf(json) }
    return { ...textOf(memberOf(json, 'delta'), 'text'), ...costOf(memberOf(json, 'usage')) }
  },
  tellsCost: () => true,
  reported(entry) {
    const { usage, tokens, stream, outcome } = entry
    const input = anthropic.reportedInput(entry)
    if (usage === null || input === undefined) return undefined
    const output = countOf(usage, 'output_tokens')
    // A stream opens with figures of its own, in which the output is 1 at the most.
    const isFirst = stream === true && output !== tokens && outcome !== 'answered'
    return isFirst ? undefined : { ...input, output }
  },
  reportedInput({ usage }) {
    if (usage === null) return undefined
    return {
      input: countOf(usage, 'input_tokens'),
      cacheRead: countOf(usage, 'cache_read_input_tokens'),
      cacheWrite: countOf(usage, 'cache_creation_input_tokens'),
    }
  },
}

export const SPEECHES: readonly [Speech, ...Speech[]] = [openai, anthropic]

export function speechOf(operation: string | null | undefined): Speech | undefined {
  return SPEECHES.find((speech) => speech.operation === operation)
}

/** What was sent of an answer, where not all of it was reported: the input, and the output that went over the wire. */
export function sentOf(speech: Speech, entry: JournalEntry): Tokens {
  const input = speech.reportedInput(entry) ?? { input: entry.input_tokens ?? 0, cacheRead: 0, cacheWrite: 0 }
  return { ...input, output: entry.tokens ?? 0 }
}

function passedOn(name: keyof typeof SPOKEN, body: string, model: string): Buffer {
  const request = { body: JSON.parse(body), rawBody: Buffer.from(body), headers: {} }
  return SPOKEN[name].protocol.ask(request, SANDBOX_LIMITS).bodyFor(model)
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Object.getOwnPropertyDescriptor(value, name)?.value : undefined
}

function countOf(value: unknown, name: string): number {
  return Number(memberOf(value, name) ?? 0)
}

function textOf(delta: unknown, name: string): Heard {
  const text = memberOf(delta, name)
  return typeof text === 'string' ? { text } : {}
}

function costOf(usage: unknown): Heard {
  const cost = memberOf(usage, 'cost_usd')
  return typeof cost === 'string' ? { costNanos: usd(cost) } : {}
}

function errorOf(json: unknown): Heard {
  const error = memberOf(json, 'error')
  if (error === undefined) return {}
  return { error: { code: String(memberOf(error, 'code')), about: String(memberOf(json, 'request_id')) } }
}

function jsonOf(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    return undefined
  }
}

import type { JournalEntry } from '../../sandbox/src/journal.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { countOf, type Heard, memberOf, passedOn, type Speech, type StreamedSpeech, type Tokens } from './speech.ts'
import { pictures, VECTORS } from './whole-speeches.ts'

const openai: StreamedSpeech = {
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
      ...textOf(memberOf(json, 'choices', '0', 'delta'), 'content'),
      ...costOf(json, 'usage'),
      ...errorOf(json),
    }
  },
  reported({ usage }) {
    if (usage === null) return undefined
    const details = memberOf(usage, 'prompt_tokens_details')
    const [cacheRead, cacheWrite] = [countOf(details, 'cached_tokens'), countOf(details, 'cache_write_tokens')]
    const prompt = countOf(usage, 'prompt_tokens')
    // What was thought may be in the total alone.
    const output = Math.max(countOf(usage, 'completion_tokens'), countOf(usage, 'total_tokens') - prompt)
    return { input: prompt - cacheRead - cacheWrite, output, cacheRead, cacheWrite }
  },
  reportedInput: (entry) => openai.reported(entry),
}

const responses: StreamedSpeech = {
  operation: 'responses',
  path: () => '/v1/responses',
  body: ({ model, words, isStream, outputLimit }) => ({
    model,
    input: words,
    ...(outputLimit !== undefined && { max_output_tokens: outputLimit }),
    ...(isStream && { stream: true }),
  }),
  upstreamBody: (body, { model }) => passedOn('openai_responses', body, model),
  hear(event, data) {
    const json = jsonOf(data)
    if (event === 'error') return { error: { code: '', about: '' }, ...costOf(json, 'usage'), ...errorOf(json) }
    if (event === 'response.completed' || event === 'response.incomplete')
      return { isEnd: true, ...costOf(json, 'usage'), ...costOf(memberOf(json, 'response'), 'usage') }
    return event === 'response.output_text.delta' ? textOf(json, 'delta') : {}
  },
  reported({ usage }) {
    if (usage === null) return undefined
    const details = memberOf(usage, 'input_tokens_details')
    const [cacheRead, cacheWrite] = [countOf(details, 'cached_tokens'), countOf(details, 'cache_write_tokens')]
    const prompt = countOf(usage, 'input_tokens')
    // What was thought may be in the total alone.
    const output = Math.max(countOf(usage, 'output_tokens'), countOf(usage, 'total_tokens') - prompt)
    return { input: prompt - cacheRead - cacheWrite, output, cacheRead, cacheWrite }
  },
  reportedInput: (entry) => responses.reported(entry),
}

const anthropic: StreamedSpeech = {
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
    if (event === 'error') return { error: { code: '', about: '' }, ...costOf(json, 'usage'), ...errorOf(json) }
    return { ...textOf(memberOf(json, 'delta'), 'text'), ...costOf(json, 'usage') }
  },
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

const gemini: StreamedSpeech = {
  operation: 'generate_content',
  streamOperation: 'stream_generate_content',
  path: ({ model, isStream }) =>
    `/v1beta/models/${model}:${isStream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  body: ({ words, outputLimit }) => ({
    contents: [{ role: 'user', parts: [{ text: words }] }],
    ...(outputLimit !== undefined && { generationConfig: { maxOutputTokens: outputLimit } }),
  }),
  upstreamBody: (body, { model }) => passedOn('gemini', body, model),
  hear(_, data) {
    const json = jsonOf(data)
    const candidate = memberOf(json, 'candidates', '0')
    const [ours, request] = [memberOf(json, 'error', 'details', '0'), memberOf(json, 'error', 'details', '1')]
    const error = { code: String(memberOf(ours, 'reason')), about: String(memberOf(request, 'requestId')) }
    return {
      ...textOf(memberOf(candidate, 'content', 'parts', '0'), 'text'),
      ...costOf(json, 'usageMetadata'),
      // It has no last frame of its own; this one is held back until the call is settled.
      ...(memberOf(candidate, 'finishReason') !== undefined && { isEnd: true }),
      ...(memberOf(json, 'error') !== undefined && { error }),
    }
  },
  reportsAsItGoes: true,
  /** Of a stream that broke off: what its last frame said. */
  reported(entry) {
    const input = gemini.reportedInput(entry)
    const { usage } = entry
    return input && { ...input, output: countOf(usage, 'candidatesTokenCount') + countOf(usage, 'thoughtsTokenCount') }
  },
  reportedInput({ usage }) {
    if (usage === null) return undefined
    const cacheRead = countOf(usage, 'cachedContentTokenCount')
    return { input: countOf(usage, 'promptTokenCount') - cacheRead, cacheRead, cacheWrite: 0 }
  },
}

/** Those that no limit stops but that of a customer's tier. */
export const UNLIMITED: readonly [StreamedSpeech, ...StreamedSpeech[]] = [openai, responses, anthropic]
/** Those that stream. */
export const SPEECHES: readonly [StreamedSpeech, ...StreamedSpeech[]] = [...UNLIMITED, gemini]

export function streamedSpeechOf(operation: string | null | undefined): StreamedSpeech | undefined {
  return SPEECHES.find(({ operation: whole, streamOperation = whole }) => streamOperation === operation)
}

export function speechOf(operation: string | null | undefined): Speech | undefined {
  const whole = [...SPEECHES, ...VECTORS, pictures].find((speech) => speech.operation === operation)
  return whole ?? streamedSpeechOf(operation)
}

/** What was sent of an answer, where not all of it was reported: the input, and the output that went over the wire. */
export function sentOf(speech: Speech, entry: JournalEntry): Tokens {
  const input = speech.reportedInput(entry) ?? { input: entry.input_tokens ?? 0, cacheRead: 0, cacheWrite: 0 }
  return { ...input, output: entry.tokens ?? 0 }
}

function textOf(delta: unknown, name: string): Heard {
  const text = memberOf(delta, name)
  return typeof text === 'string' ? { text } : {}
}

/** In its usage, beside its other members, or in an error of ours, wherever that has its particulars. */
function costOf(json: unknown, usageName: string): Heard {
  const error = memberOf(json, 'error')
  const places = [
    memberOf(json, usageName),
    json,
    error,
    memberOf(error, 'details'),
    memberOf(error, 'details', '0', 'metadata'),
  ]
  const cost = places.map((place) => memberOf(place, 'cost_usd')).find((one) => typeof one === 'string')
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

import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import {
  APICallError,
  generateText,
  jsonSchema,
  type LanguageModel,
  type LanguageModelUsage,
  type ModelMessage,
  Output,
  streamText,
  type ToolSet,
} from 'ai'
import {
  type Addressee,
  type Client,
  COST_HEADER,
  DEFAULT_LIMIT,
  type Failure,
  finishOf,
  type Options,
  type Protocol,
  type Question,
  type Said,
  type Tokens,
  type Tool,
  type Turn,
  textOf,
} from './sdk-client.ts'
import { wordsIn } from './sdk-gemini.ts'

export const aiOverOpenai: Client = { ...clientOf('ai over openai', 'openai'), hidesCostInStreams: true }
export const aiOverResponses = clientOf('ai over responses', 'openai_responses')
export const aiOverAnthropic = clientOf('ai over anthropic', 'anthropic')
export const aiOverGemini = clientOf('ai over gemini', 'gemini')

function clientOf(name: string, protocol: Protocol): Client {
  return {
    name,
    protocol,
    async ask(to, question, { streamed, ...options }) {
      const model = aiModel(protocol, to, question.model)
      return streamed ? askStreamed(model, question, options) : askWhole(model, question, options)
    },
    failureOf: (thrown) => failureOf(protocol, thrown),
  }
}

export function aiModel(protocol: Protocol, { url, secret: apiKey }: Addressee, name: string): LanguageModel {
  // A name with a slash is a path to this provider, so that it has to be the whole one.
  if (protocol === 'gemini') return createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey })(`models/${name}`)
  const settings = { baseURL: `${url}/v1`, apiKey }
  if (protocol === 'anthropic') return createAnthropic(settings)(name)
  const openai = createOpenAI(settings)
  // What it speaks by itself is the newer one of its vendor's protocols.
  return protocol === 'openai' ? openai.chat(name) : openai(name)
}

function bodyOf(model: LanguageModel, { turns, tool, json, limit = DEFAULT_LIMIT }: Question, { signal }: Rest) {
  return {
    model,
    messages: turns.flatMap(messagesOf),
    maxOutputTokens: limit,
    maxRetries: 0,
    ...(signal !== undefined && { abortSignal: signal }),
    ...(tool !== undefined && { tools: toolsOf(tool) }),
    ...(json !== undefined && { output: outputOf(json) }),
  }
}

function toolsOf({ name, description, schema }: Tool): ToolSet {
  return { [name]: { description, inputSchema: jsonSchema({ ...schema }) } }
}

function outputOf(json: NonNullable<Question['json']>) {
  return json === 'any object' ? Output.json() : Output.object({ schema: jsonSchema<object>({ ...json }) })
}

function messagesOf(turn: Turn): ModelMessage[] {
  if (turn.by === 'assistant') return [{ role: 'assistant', content: turn.text }]
  if (turn.by === 'tool') {
    const { id: toolCallId, name: toolName, input } = turn.call
    const output = { type: 'text' as const, value: turn.result }
    return [
      { role: 'assistant', content: [{ type: 'tool-call', toolCallId, toolName, input }] },
      { role: 'tool', content: [{ type: 'tool-result', toolCallId, toolName, output }] },
    ]
  }
  if (turn.png === undefined) return [{ role: 'user', content: turn.text }]
  return [
    {
      role: 'user',
      content: [
        { type: 'text', text: turn.text },
        { type: 'file', data: turn.png, mediaType: 'image/png' },
      ],
    },
  ]
}

type Rest = Omit<Options, 'streamed'>

async function askWhole(model: LanguageModel, question: Question, options: Rest): Promise<Said> {
  const { text, toolCalls, finishReason, usage, finalStep } = await generateText(bodyOf(model, question, options))
  const { headers = {} } = finalStep.response
  return {
    text,
    calls: toolCalls.map(callOf),
    finish: finishOf(finishReason),
    usage: tokensOf(usage),
    costUsd: headers[COST_HEADER],
    requestId: headers['x-request-id'],
  }
}

async function askStreamed(model: LanguageModel, question: Question, options: Rest): Promise<Said> {
  // What goes wrong is a part of the stream; by itself the library would also write it to the console.
  const result = streamText({ ...bodyOf(model, question, options), onError: () => {} })
  for await (const part of result.stream) {
    if (part.type === 'error') throw part.error
    if (part.type === 'abort') throw new DOMException('the call was given up', 'AbortError')
    if (part.type === 'text-delta') options.onText?.(part.text)
  }
  const usage = await result.usage
  const { headers = {} } = (await result.finalStep).response
  return {
    text: await result.text,
    calls: (await result.toolCalls).map(callOf),
    finish: finishOf(await result.finishReason),
    usage: tokensOf(usage),
    costUsd: textOf(usage.raw?.cost_usd),
    requestId: headers['x-request-id'],
  }
}

function callOf(call: { readonly toolCallId: string; readonly toolName: string; readonly input: unknown }) {
  return { id: call.toolCallId, name: call.toolName, input: call.input }
}

function tokensOf({ inputTokenDetails, outputTokens }: LanguageModelUsage): Tokens {
  return {
    input: inputTokenDetails.noCacheTokens ?? 0,
    output: outputTokens ?? 0,
    cacheRead: inputTokenDetails.cacheReadTokens ?? 0,
    cacheWrite: inputTokenDetails.cacheWriteTokens ?? 0,
  }
}

function failureOf(protocol: Protocol, thrown: unknown): Failure {
  if (thrown instanceof Error && thrown.name === IN_STREAM) return failureInStream(protocol, thrown)
  if (!APICallError.isInstance(thrown)) throw thrown
  const { statusCode: status, responseBody, responseHeaders = {} } = thrown
  const { error } = Object(JSON.parse(responseBody ?? '{}'))
  const { code, type } = protocol === 'gemini' ? wordsIn(error) : Object(error)
  return {
    className: thrown.name,
    status,
    code,
    type,
    requestId: responseHeaders['x-request-id'],
    retryAfter: responseHeaders['retry-after'],
  }
}

/** What the library calls an error that came when the stream had begun. It makes up a status, and has no headers. */
const IN_STREAM = 'AI_StreamProviderError'

function failureInStream(protocol: Protocol, thrown: Error): Failure {
  const { code, type, data } = Object(thrown)
  const words = { code, type, requestId: undefined, retryAfter: undefined }
  return { className: thrown.name, status: undefined, ...(protocol === 'gemini' ? wordsIn(data) : words) }
}

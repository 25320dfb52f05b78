import Anthropic from '@anthropic-ai/sdk'
import AnthropicBefore1 from 'anthropic-sdk-0'
import {
  type Addressee,
  type Client,
  COST_HEADER,
  DEFAULT_LIMIT,
  type Failure,
  finishOf,
  type Options,
  type Question,
  type Said,
  type Tokens,
  type Turn,
  textOf,
} from './sdk-client.ts'

/** Two generations of one library. They send the key and the protocol's version in different ways. */
export type Generation = typeof Anthropic | typeof AnthropicBefore1
type Body = Omit<Anthropic.MessageCreateParamsNonStreaming, 'stream'>

export const anthropicClient = clientOf('anthropic 1.x', Anthropic)
export const anthropicClientBefore1 = clientOf('anthropic 0.x', AnthropicBefore1)

function clientOf(name: string, Sdk: Generation): Client {
  return {
    name,
    protocol: 'anthropic',
    async ask(to, question, { streamed, ...options }) {
      // The two have the same methods, and types that TypeScript does not call with one another's.
      const client = connectAnthropic(Sdk, to)
      return streamed ? askStreamed(client, question, options) : askWhole(client, question, options)
    },
    failureOf: (thrown) => failureOf(Sdk, thrown),
  }
}

/** A time limit of one's own lets large limits of output be asked for in one piece. */
export function connectAnthropic(Sdk: Generation, { url, secret }: Addressee, options = { maxRetries: 0 }): Anthropic {
  const client = new Sdk({ baseURL: url, apiKey: secret, timeout: 60_000, ...options })
  return client as Anthropic
}

export function anthropicBody({ model, turns, tool, json, limit = DEFAULT_LIMIT }: Question): Body {
  return {
    model,
    messages: turns.flatMap(messagesOf),
    max_tokens: limit,
    ...(tool !== undefined && {
      tools: [{ name: tool.name, description: tool.description, input_schema: tool.schema }],
    }),
    ...(typeof json === 'object' && { output_config: { format: { type: 'json_schema', schema: { ...json } } } }),
  }
}

function messagesOf(turn: Turn): Anthropic.MessageParam[] {
  if (turn.by === 'assistant') return [{ role: 'assistant', content: turn.text }]
  if (turn.by === 'tool') {
    const { id, name, input } = turn.call
    return [
      { role: 'assistant', content: [{ type: 'tool_use', id, name, input }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: turn.result }] },
    ]
  }
  if (turn.png === undefined) return [{ role: 'user', content: turn.text }]
  const source = { type: 'base64' as const, media_type: 'image/png' as const, data: turn.png }
  return [
    {
      role: 'user',
      content: [
        { type: 'text', text: turn.text },
        { type: 'image', source },
      ],
    },
  ]
}

type Rest = Omit<Options, 'streamed'>

async function askWhole(client: Anthropic, question: Question, { signal }: Rest): Promise<Said> {
  const { data, response, request_id } = await client.messages
    .create(anthropicBody(question), { signal })
    .withResponse()
  return saidIn(data, response.headers.get(COST_HEADER) ?? undefined, request_id ?? undefined)
}

async function askStreamed(client: Anthropic, question: Question, { signal, onText }: Rest): Promise<Said> {
  const stream = client.messages.stream(anthropicBody(question), { signal })
  let costUsd: string | undefined
  stream.on('text', (text) => onText?.(text))
  stream.on('streamEvent', (event) => {
    if (event.type === 'message_delta') costUsd = textOf(Object(event.usage).cost_usd)
  })
  const message = await stream.finalMessage()
  return saidIn(message, costUsd, stream.request_id ?? undefined)
}

function saidIn(message: Anthropic.Message, costUsd: string | undefined, requestId: string | undefined): Said {
  const { content, stop_reason, usage } = message
  return {
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    calls: content.flatMap((block) =>
      block.type === 'tool_use' ? [{ id: block.id, name: block.name, input: block.input }] : [],
    ),
    finish: finishOf(stop_reason),
    usage: tokensOf(usage),
    costUsd,
    requestId,
  }
}

function tokensOf(usage: Anthropic.Usage): Tokens {
  return {
    input: usage.input_tokens,
    output: usage.output_tokens,
    cacheRead: usage.cache_read_input_tokens ?? 0,
    cacheWrite: usage.cache_creation_input_tokens ?? 0,
  }
}

function failureOf(Sdk: Generation, thrown: unknown): Failure {
  if (!(thrown instanceof Sdk.APIError)) throw thrown
  const { status, type, requestID, headers, error } = thrown
  return {
    className: thrown.constructor.name,
    status,
    code: Object(Object(error).error).code,
    type,
    requestId: requestID ?? undefined,
    retryAfter: headers?.get('retry-after') ?? undefined,
  }
}

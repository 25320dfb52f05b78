import OpenAI, { type ClientOptions } from 'openai'
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
  type ToolCall,
  type Turn,
  textOf,
} from './sdk-client.ts'

type Body = Omit<OpenAI.Chat.ChatCompletionCreateParamsNonStreaming, 'stream'>
type Message = OpenAI.Chat.ChatCompletionMessageParam

export const openaiClient: Client = {
  name: 'openai',
  protocol: 'openai',
  async ask(to, question, { streamed, ...options }) {
    return streamed ? askStreamed(to, question, options) : askWhole(to, question, options)
  },
  failureOf,
}

export function connectOpenai({ url, secret }: Addressee, options: ClientOptions = { maxRetries: 0 }): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: secret, ...options })
}

export function openaiBody({ model, turns, tool, json, limit = DEFAULT_LIMIT }: Question): Body {
  return {
    model,
    messages: turns.flatMap(messagesOf),
    max_completion_tokens: limit,
    ...(tool !== undefined && {
      tools: [
        {
          type: 'function',
          function: { name: tool.name, description: tool.description, parameters: { ...tool.schema } },
        },
      ],
    }),
    ...(json !== undefined && { response_format: formatOf(json) }),
  }
}

function formatOf(json: NonNullable<Question['json']>): NonNullable<Body['response_format']> {
  if (json === 'any object') return { type: 'json_object' }
  return { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema: { ...json } } }
}

function messagesOf(turn: Turn): Message[] {
  if (turn.by === 'assistant') return [{ role: 'assistant', content: turn.text }]
  if (turn.by === 'tool') {
    const { id, name, input } = turn.call
    const call = { id, type: 'function' as const, function: { name, arguments: JSON.stringify(input) } }
    return [
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: id, content: turn.result },
    ]
  }
  if (turn.png === undefined) return [{ role: 'user', content: turn.text }]
  const url = `data:image/png;base64,${turn.png}`
  return [
    {
      role: 'user',
      content: [
        { type: 'text', text: turn.text },
        { type: 'image_url', image_url: { url } },
      ],
    },
  ]
}

type Rest = Omit<Options, 'streamed'>

async function askWhole(to: Addressee, question: Question, { signal }: Rest): Promise<Said> {
  const { data, response, request_id } = await connectOpenai(to)
    .chat.completions.create(openaiBody(question), { signal })
    .withResponse()
  const [choice] = data.choices
  const calls = (choice?.message.tool_calls ?? []).flatMap((call) =>
    call.type === 'function' ? [callOf(call.id, call.function.name, call.function.arguments)] : [],
  )
  return {
    text: choice?.message.content ?? '',
    calls,
    finish: finishOf(choice?.finish_reason),
    usage: tokensOf(data.usage),
    costUsd: response.headers.get(COST_HEADER) ?? undefined,
    requestId: request_id ?? undefined,
  }
}

async function askStreamed(to: Addressee, question: Question, { signal, onText }: Rest): Promise<Said> {
  const body = { ...openaiBody(question), stream: true as const, stream_options: { include_usage: true } }
  const { data: stream, request_id } = await connectOpenai(to).chat.completions.create(body, { signal }).withResponse()
  const texts: string[] = []
  const pieces = new Map<number, { id: string; name: string; json: string }>()
  let finish: unknown
  let usage: OpenAI.CompletionUsage | null | undefined
  for await (const chunk of stream) {
    usage = chunk.usage ?? usage
    for (const { delta, finish_reason } of chunk.choices) {
      finish = finish_reason ?? finish
      if (delta.content) {
        texts.push(delta.content)
        onText?.(delta.content)
      }
      for (const { index, id, function: part } of delta.tool_calls ?? []) {
        const piece = pieces.get(index) ?? { id: id ?? '', name: part?.name ?? '', json: '' }
        pieces.set(index, { ...piece, json: piece.json + (part?.arguments ?? '') })
      }
    }
  }
  return {
    text: texts.join(''),
    calls: [...pieces.values()].map(({ id, name, json }) => callOf(id, name, json)),
    finish: finishOf(finish),
    usage: tokensOf(usage),
    costUsd: textOf(Object(usage).cost_usd),
    requestId: request_id ?? undefined,
  }
}

export function callOf(id: string, name: string, json: string): ToolCall {
  return { id, name, input: JSON.parse(json) }
}

function tokensOf(usage: OpenAI.CompletionUsage | null | undefined): Tokens {
  const { cached_tokens: cacheRead = 0, cache_write_tokens: cacheWrite = 0 } = Object(usage?.prompt_tokens_details)
  return {
    input: (usage?.prompt_tokens ?? 0) - cacheRead - cacheWrite,
    output: usage?.completion_tokens ?? 0,
    cacheRead,
    cacheWrite,
  }
}

export function failureOf(thrown: unknown): Failure {
  if (!(thrown instanceof OpenAI.APIError)) throw thrown
  const { status, code, type, requestID, headers } = thrown
  return {
    className: thrown.constructor.name,
    status,
    code,
    type,
    requestId: requestID ?? undefined,
    retryAfter: headers?.get('retry-after') ?? undefined,
  }
}

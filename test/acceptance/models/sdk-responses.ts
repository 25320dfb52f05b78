import type OpenAI from 'openai'
import {
  type Addressee,
  type Client,
  COST_HEADER,
  DEFAULT_LIMIT,
  finishOf,
  type Options,
  type Question,
  type Said,
  type Tokens,
  type Turn,
  textOf,
} from './sdk-client.ts'
import { callOf, connectOpenai, failureOf } from './sdk-openai.ts'

type Body = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'stream'>
type Item = OpenAI.Responses.ResponseInputItem
type Response = OpenAI.Responses.Response

/** The library of the chat, by the other one of its protocols. */
export const responsesClient: Client = {
  name: 'openai responses',
  protocol: 'openai_responses',
  async ask(to, question, { streamed, ...options }) {
    return streamed ? askStreamed(to, question, options) : askWhole(to, question, options)
  },
  failureOf,
}

export function responsesBody({ model, turns, tool, json, limit = DEFAULT_LIMIT }: Question): Body {
  return {
    model,
    input: turns.flatMap(itemsOf),
    max_output_tokens: limit,
    ...(tool !== undefined && {
      tools: [
        {
          type: 'function',
          name: tool.name,
          description: tool.description,
          parameters: { ...tool.schema },
          strict: true,
        },
      ],
    }),
    ...(json !== undefined && { text: { format: formatOf(json) } }),
  }
}

function formatOf(json: NonNullable<Question['json']>): OpenAI.Responses.ResponseFormatTextConfig {
  if (json === 'any object') return { type: 'json_object' }
  return { type: 'json_schema', name: 'answer', strict: true, schema: { ...json } }
}

function itemsOf(turn: Turn): Item[] {
  if (turn.by === 'assistant') return [{ role: 'assistant', content: turn.text }]
  if (turn.by === 'tool') {
    const { id: call_id, name, input } = turn.call
    return [
      { type: 'function_call', call_id, name, arguments: JSON.stringify(input) },
      { type: 'function_call_output', call_id, output: turn.result },
    ]
  }
  if (turn.png === undefined) return [{ role: 'user', content: turn.text }]
  const image_url = `data:image/png;base64,${turn.png}`
  return [
    {
      role: 'user',
      content: [
        { type: 'input_text', text: turn.text },
        { type: 'input_image', image_url, detail: 'auto' },
      ],
    },
  ]
}

type Rest = Omit<Options, 'streamed'>

async function askWhole(to: Addressee, question: Question, { signal }: Rest): Promise<Said> {
  const { data, response, request_id } = await connectOpenai(to)
    .responses.create(responsesBody(question), { signal })
    .withResponse()
  return {
    ...saidIn(data),
    costUsd: response.headers.get(COST_HEADER) ?? undefined,
    requestId: request_id ?? undefined,
  }
}

async function askStreamed(to: Addressee, question: Question, { signal, onText }: Rest): Promise<Said> {
  const { data: stream, request_id } = await connectOpenai(to)
    .responses.create({ ...responsesBody(question), stream: true }, { signal })
    .withResponse()
  const texts: string[] = []
  let last: Response | undefined
  for await (const event of stream) {
    if (event.type === 'response.output_text.delta') {
      texts.push(event.delta)
      onText?.(event.delta)
    }
    if (event.type === 'response.completed' || event.type === 'response.incomplete') last = event.response
  }
  const said = last === undefined ? NOTHING : saidIn(last)
  return {
    ...said,
    text: texts.join(''),
    costUsd: textOf(Object(last?.usage).cost_usd),
    requestId: request_id ?? undefined,
  }
}

type InResponse = Omit<Said, 'costUsd' | 'requestId'>

const NOTHING: InResponse = {
  text: '',
  calls: [],
  finish: undefined,
  usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
}

function saidIn({ output, usage, status, incomplete_details: cut }: Response): InResponse {
  const calls = output.flatMap((item) =>
    item.type === 'function_call' ? [callOf(item.call_id, item.name, item.arguments)] : [],
  )
  const texts = output.flatMap((item) =>
    item.type === 'message' ? item.content.flatMap((part) => (part.type === 'output_text' ? [part.text] : [])) : [],
  )
  return {
    text: texts.join(''),
    calls,
    finish: calls.length > 0 ? 'tool' : finishOf(cut?.reason ?? status),
    usage: tokensOf(usage),
  }
}

function tokensOf(usage: OpenAI.Responses.ResponseUsage | undefined): Tokens {
  const { cached_tokens: cacheRead = 0, cache_write_tokens: cacheWrite = 0 } = Object(usage?.input_tokens_details)
  return {
    input: (usage?.input_tokens ?? 0) - cacheRead - cacheWrite,
    output: usage?.output_tokens ?? 0,
    cacheRead,
    cacheWrite,
  }
}

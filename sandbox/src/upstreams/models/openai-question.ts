import { isObject, type JsonObject } from '../../upstream.ts'
import { jsonText } from './json-of-schema.ts'
import {
  given,
  isModelName,
  isWholeNumber,
  objectsIn,
  plainSegment,
  type Question,
  type Tool,
  textOf,
  type Wrong,
} from './question.ts'
import type { Segment } from './tokens.ts'

/** What this protocol asks beyond any question to a model. */
export type OpenaiQuestion = Question & {
  readonly cacheKey: string | undefined
  /** The segments with a mark at the end, as all of a prompt is cached. */
  readonly cached: readonly Segment[]
}

const CHOICES_LIMIT = 128
const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function']
const EFFORT_TOKENS: Readonly<Record<string, number>> = { minimal: 8, low: 32, medium: 64, high: 128, xhigh: 256 }
const ANY_OBJECT: JsonObject = { properties: { answer: { type: 'string' } } }

export function openaiQuestion(body: unknown): OpenaiQuestion | Wrong {
  if (!isObject(body)) return { wrong: 'We could not parse the JSON body of your request.', field: null }
  const wrong = wrongField(body)
  if (wrong !== undefined) return { wrong: `Invalid value for '${wrong}'.`, field: wrong }
  const messages = objectsIn(body.messages)
  const segments = [...toolSegments(body.tools), ...messages.flatMap(messageSegments)]
  const last = messages.at(-1)
  const maxTokens = body.max_completion_tokens ?? body.max_tokens
  const lastUser = messages.findLast(({ role }) => role === 'user')
  return {
    model: String(body.model),
    isStreamed: body.stream === true,
    messages: messages.length,
    prompt: textOf(lastUser?.content),
    toolResult: last?.role === 'tool' ? textOf(last.content) : undefined,
    tool: last?.role === 'user' ? toolToCall(body) : undefined,
    schema: schemaIn(body.response_format),
    maxTokens: given(maxTokens) ? Number(maxTokens) : undefined,
    choices: Number(body.n ?? 1),
    reasoningTokens: EFFORT_TOKENS[String(body.reasoning_effort)] ?? 0,
    segments,
    cacheKey: typeof body.prompt_cache_key === 'string' ? body.prompt_cache_key : undefined,
    cached: segments.map((segment, at) => (at === segments.length - 1 ? { ...segment, cachedFor: '5m' } : segment)),
  }
}

function wrongField(body: JsonObject): string | undefined {
  const { model, messages, n, stream, tools } = body
  if (!isModelName(model)) return 'model'
  if (!Array.isArray(messages) || messages.length === 0) return 'messages'
  const at = messages.findIndex((message) => !isObject(message) || !ROLES.includes(String(message.role)))
  if (at >= 0) return `messages[${at}]`
  for (const field of ['max_tokens', 'max_completion_tokens'])
    if (given(body[field]) && !isWholeNumber(body[field], 1)) return field
  if (given(n) && !(isWholeNumber(n, 1) && n <= CHOICES_LIMIT)) return 'n'
  if (given(stream) && typeof stream !== 'boolean') return 'stream'
  if (given(tools) && !(Array.isArray(tools) && tools.every(isObject))) return 'tools'
  if (given(body.stream_options) && stream !== true) return 'stream_options'
  return undefined
}

function toolSegments(tools: unknown): Segment[] {
  return objectsIn(tools).map((tool) => plainSegment(jsonText(tool)))
}

function messageSegments({ content, tool_calls: calls }: JsonObject): Segment[] {
  const segments = typeof content === 'string' ? [plainSegment(content)] : objectsIn(content).map(partSegment)
  for (const call of objectsIn(calls))
    if (isObject(call.function))
      segments.push(plainSegment(`${call.function.name ?? ''}${call.function.arguments ?? ''}`))
  return segments
}

function partSegment(part: JsonObject): Segment {
  if (typeof part.text === 'string') return plainSegment(part.text)
  if (typeof part.refusal === 'string') return plainSegment(part.refusal)
  return { text: jsonText(part), isImage: part.type === 'image_url', cachedFor: undefined }
}

/** The one that is named, or else the first. */
function toolToCall({ tools, tool_choice: choice }: JsonObject): Tool | undefined {
  if (choice === 'none') return undefined
  const functions = objectsIn(tools).flatMap((tool) => (isObject(tool.function) ? [tool.function] : []))
  const wanted = isObject(choice) && isObject(choice.function) ? choice.function.name : undefined
  const called = functions.find(({ name }) => name === wanted) ?? functions[0]
  return typeof called?.name === 'string' ? { name: called.name, schema: called.parameters } : undefined
}

function schemaIn(format: unknown): unknown {
  if (!isObject(format)) return undefined
  if (format.type === 'json_object') return ANY_OBJECT
  if (format.type !== 'json_schema') return undefined
  return isObject(format.json_schema) ? (format.json_schema.schema ?? ANY_OBJECT) : ANY_OBJECT
}

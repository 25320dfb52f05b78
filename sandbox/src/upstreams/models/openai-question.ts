import { type Deviance, limitIn } from '../../deviants.ts'
import { isObject, type JsonObject } from '../../json.ts'
import { withExtras } from './extras.ts'
import { jsonText } from './json-of-schema.ts'
import {
  given,
  isModelName,
  isWholeNumber,
  lastTextOf,
  namedTool,
  objectsIn,
  plainSegment,
  type Question,
  schemaSegments,
  type Tool,
  textOf,
  type Wrong,
} from './question.ts'
import type { Segment } from './tokens.ts'

/** What this protocol asks beyond any question to a model. */
export type OpenaiQuestion = Question & {
  readonly cacheKey: string | undefined
}

/** Where both are given, the first counts. */
const LIMITS = ['max_completion_tokens', 'max_tokens']
const CHOICES_LIMIT = 128
const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function']
const EFFORT_TOKENS: Readonly<Record<string, number>> = { minimal: 8, low: 32, medium: 64, high: 128, xhigh: 256 }
export const ANY_OBJECT: JsonObject = { properties: { answer: { type: 'string' } } }

export function openaiQuestion(body: unknown, deviance: Deviance): OpenaiQuestion | Wrong {
  if (!isObject(body)) return { wrong: 'We could not parse the JSON body of your request.', field: null }
  const wrong = wrongField(body)
  if (wrong !== undefined) return { wrong: `Invalid value for '${wrong}'.`, field: wrong }
  const messages = objectsIn(body.messages)
  const segments = [
    ...toolSegments(body.tools),
    ...schemaSegments(body.response_format),
    ...messages.flatMap(messageSegments),
  ]
  const last = messages.at(-1)
  const offered = toolsOffered(body)
  const lastUser = messages.findLast(({ role }) => role === 'user')
  const question: OpenaiQuestion = {
    model: String(body.model),
    isStreamed: body.stream === true,
    messages: messages.length,
    prompt: lastTextOf(lastUser?.content),
    toolResult: last?.role === 'tool' ? textOf(last.content) : undefined,
    toolResults: messages.filter(({ role }) => role === 'tool').length,
    offered,
    tool: last?.role === 'user' ? toolToCall(body, offered) : undefined,
    isBound: body.tool_choice === 'required' || isObject(body.tool_choice),
    schema: schemaIn(body.response_format),
    maxTokens: limitIn(body, LIMITS, deviance),
    choices: Number(body.n ?? 1),
    reasoningTokens: thoughtTokens(body.reasoning_effort, deviance),
    segments,
    webSearches: searchesIn(body),
    cacheKey: cacheKeyIn(body),
  }
  return withExtras(question, body, deviance)
}

export function cacheKeyIn({ prompt_cache_key: key }: JsonObject): string | undefined {
  return typeof key === 'string' ? key : undefined
}

/** A vendor that counts thoughts apart has them unasked. */
export function thoughtTokens(effort: unknown, { countsReasoningApart }: Deviance): number {
  return EFFORT_TOKENS[String(effort ?? (countsReasoningApart ? 'medium' : 'none'))] ?? 0
}

function searchesIn({ tools, web_search_options: options }: JsonObject): number {
  return given(options) || objectsIn(tools).some(isSearch) ? 1 : 0
}

export function isSearch({ type }: JsonObject): boolean {
  return typeof type === 'string' && type.startsWith('web_search')
}

function wrongField(body: JsonObject): string | undefined {
  const { model, messages, n, stream, tools } = body
  if (!isModelName(model)) return 'model'
  if (!Array.isArray(messages) || messages.length === 0) return 'messages'
  const at = messages.findIndex((message) => !isObject(message) || !ROLES.includes(String(message.role)))
  if (at >= 0) return `messages[${at}]`
  for (const field of LIMITS) if (given(body[field]) && !isWholeNumber(body[field], 1)) return field
  if (given(n) && !(isWholeNumber(n, 1) && n <= CHOICES_LIMIT)) return 'n'
  if (given(stream) && typeof stream !== 'boolean') return 'stream'
  if (given(tools) && !(Array.isArray(tools) && tools.every(isObject))) return 'tools'
  if (given(body.stream_options) && stream !== true) return 'stream_options'
  return undefined
}

export function toolSegments(tools: unknown): Segment[] {
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
  const { type } = part
  return { text: jsonText(part), isImage: type === 'image_url', isAudio: type === 'input_audio', cachedFor: undefined }
}

function toolsOffered({ tools, tool_choice: choice }: JsonObject): readonly Tool[] {
  if (choice === 'none') return []
  return objectsIn(tools).flatMap((tool) => {
    const { name, parameters } = isObject(tool.function) && !isSearch(tool) ? tool.function : {}
    return typeof name === 'string' ? [{ name, schema: parameters }] : []
  })
}

function toolToCall({ tool_choice: choice }: JsonObject, offered: readonly Tool[]): Tool | undefined {
  return namedTool(offered, isObject(choice) && isObject(choice.function) ? choice.function.name : undefined)
}

function schemaIn(format: unknown): unknown {
  if (!isObject(format)) return undefined
  if (format.type === 'json_object') return ANY_OBJECT
  if (format.type !== 'json_schema') return undefined
  return isObject(format.json_schema) ? (format.json_schema.schema ?? ANY_OBJECT) : ANY_OBJECT
}

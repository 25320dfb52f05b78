import { type Deviance, limitIn } from '../../deviants.ts'
import { isObject, type JsonObject } from '../../json.ts'
import { withExtras } from './extras.ts'
import { jsonText } from './json-of-schema.ts'
import {
  ANY_OBJECT,
  cacheKeyIn,
  isSearch,
  type OpenaiQuestion,
  thoughtTokens,
  toolSegments,
} from './openai-question.ts'
import {
  given,
  isModelName,
  isWholeNumber,
  lastTextOf,
  namedTool,
  objectsIn,
  plainSegment,
  schemaSegments,
  type Tool,
  textOf,
  type Wrong,
} from './question.ts'
import type { Segment } from './tokens.ts'

const LIMIT = 'max_output_tokens'
const ROLES = ['system', 'developer', 'user', 'assistant']
/** What a tool has returned. */
const OUTPUTS = ['function_call_output', 'custom_tool_call_output']
/** What refers to an answer that the vendor has kept; the sandbox keeps none. */
const KEPT = ['previous_response_id', 'conversation', 'prompt']

export function responsesQuestion(body: unknown, deviance: Deviance): OpenaiQuestion | Wrong {
  if (!isObject(body)) return { wrong: 'We could not parse the JSON body of your request.', field: null }
  const wrong = wrongField(body)
  if (wrong !== undefined) return { wrong: `Invalid value for '${wrong}'.`, field: wrong }
  const items = itemsOf(body.input)
  const segments = [
    ...(typeof body.instructions === 'string' ? [plainSegment(body.instructions)] : []),
    ...toolSegments(body.tools),
    ...schemaSegments(isObject(body.text) ? body.text.format : undefined),
    ...items.flatMap(itemSegments),
  ]
  const last = items.at(-1)
  const offered = toolsOffered(body)
  const question: OpenaiQuestion = {
    model: String(body.model),
    isStreamed: body.stream === true,
    messages: items.length,
    prompt: lastTextOf(items.findLast(({ role }) => role === 'user')?.content),
    toolResult: OUTPUTS.includes(String(last?.type)) ? textOf(last?.output) : undefined,
    toolResults: items.filter(({ type }) => OUTPUTS.includes(String(type))).length,
    offered,
    tool: last?.role === 'user' ? toolToCall(body, offered) : undefined,
    isBound: body.tool_choice === 'required' || isObject(body.tool_choice),
    schema: schemaIn(body.text),
    maxTokens: limitIn(body, [LIMIT], deviance),
    choices: 1,
    reasoningTokens: thoughtTokens(isObject(body.reasoning) ? body.reasoning.effort : undefined, deviance),
    segments,
    webSearches: objectsIn(body.tools).some(isSearch) ? 1 : 0,
    cacheKey: cacheKeyIn(body),
  }
  return withExtras(question, body, deviance)
}

/** A text is a message of the user. */
function itemsOf(input: unknown): JsonObject[] {
  return typeof input === 'string' ? [{ role: 'user', content: input }] : objectsIn(input)
}

function wrongField(body: JsonObject): string | undefined {
  const { model, input, stream, tools } = body
  if (!isModelName(model)) return 'model'
  if (typeof input !== 'string' && !(Array.isArray(input) && input.length > 0)) return 'input'
  const at = typeof input === 'string' ? -1 : input.findIndex((item) => !isItem(item))
  if (at >= 0) return `input[${at}]`
  for (const field of KEPT) if (given(body[field])) return field
  if (given(body[LIMIT]) && !isWholeNumber(body[LIMIT], 1)) return LIMIT
  if (given(stream) && typeof stream !== 'boolean') return 'stream'
  if (given(tools) && !(Array.isArray(tools) && tools.every(isObject))) return 'tools'
  // What runs in the background is fetched later, from where it is kept.
  if (body.background === true) return 'background'
  if (given(body.stream_options) && stream !== true) return 'stream_options'
  return undefined
}

function isItem(item: unknown): item is JsonObject {
  if (!isObject(item)) return false
  const { type, role } = item
  return given(type) && type !== 'message' ? type !== 'item_reference' : ROLES.includes(String(role))
}

function itemSegments(item: JsonObject): Segment[] {
  const { type, content, output } = item
  if (!given(type) || type === 'message') return contentSegments(content)
  if (OUTPUTS.includes(String(type))) return contentSegments(output)
  if (type === 'function_call') return [plainSegment(`${item.name ?? ''}${item.arguments ?? ''}`)]
  if (type === 'custom_tool_call') return [plainSegment(`${item.name ?? ''}${item.input ?? ''}`)]
  if (type !== 'reasoning') return [plainSegment(jsonText(item))]
  return [plainSegment(textOf(item.summary) + textOf(item.content) + String(item.encrypted_content ?? ''))]
}

function contentSegments(content: unknown): Segment[] {
  return typeof content === 'string' ? [plainSegment(content)] : objectsIn(content).map(partSegment)
}

function partSegment(part: JsonObject): Segment {
  if (typeof part.text === 'string') return plainSegment(part.text)
  if (typeof part.refusal === 'string') return plainSegment(part.refusal)
  const { type } = part
  return {
    text: jsonText(part),
    isImage: type === 'input_image',
    isAudio: type === 'input_audio',
    cachedFor: undefined,
  }
}

/** The tools that a caller runs, wherever the request has them, each with the namespace that it is in. */
export function ownTools({ tools, input }: JsonObject): readonly JsonObject[] {
  const added = objectsIn(input).filter(({ type }) => type === 'additional_tools')
  return [tools, ...added.map((item) => item.tools)].flatMap((list) => toolsIn(list))
}

function toolsIn(tools: unknown, namespace?: unknown): readonly JsonObject[] {
  return objectsIn(tools).flatMap((tool) => {
    if (tool.type === 'namespace') return toolsIn(tool.tools, tool.name)
    return tool.type === 'function' || tool.type === 'custom'
      ? [{ ...tool, ...(given(namespace) && { namespace }) }]
      : []
  })
}

function toolsOffered(body: JsonObject): readonly Tool[] {
  if (body.tool_choice === 'none') return []
  return ownTools(body).flatMap(({ name, parameters }) =>
    typeof name === 'string' ? [{ name, schema: parameters }] : [],
  )
}

function toolToCall({ tool_choice: choice }: JsonObject, offered: readonly Tool[]): Tool | undefined {
  return namedTool(offered, isObject(choice) ? choice.name : undefined)
}

function schemaIn(text: unknown): unknown {
  const format = isObject(text) ? text.format : undefined
  if (!isObject(format)) return undefined
  if (format.type === 'json_object') return ANY_OBJECT
  return format.type === 'json_schema' ? (format.schema ?? ANY_OBJECT) : undefined
}

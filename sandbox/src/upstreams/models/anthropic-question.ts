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
  type Question,
  schemaSegments,
  type Tool,
  textOf,
  type Wrong,
} from './question.ts'
import type { Segment } from './tokens.ts'

/** What is thought at the most, however much the budget allows. */
const THINKING_TOKENS = 40

export function anthropicQuestion(body: unknown, isCount: boolean, deviance: Deviance): Question | Wrong {
  if (!isObject(body)) return { wrong: 'The request body is not valid JSON.', field: null }
  const wrong = wrongField(body, isCount)
  if (wrong !== undefined) return { wrong: `${wrong}: Field required or not valid`, field: wrong }
  const messages = objectsIn(body.messages)
  // What the system says in between takes no turn.
  const last = messages.findLast(({ role }) => role !== 'system')
  const results = objectsIn(last?.content).filter(isResult)
  const offered = toolsOffered(body)
  const isUsers = last?.role === 'user' && results.length === 0
  const lastUser = messages.findLast(({ role, content }) => role === 'user' && textOf(content) !== '')
  const question: Question = {
    model: String(body.model),
    isStreamed: body.stream === true,
    messages: messages.length,
    prompt: lastTextOf(lastUser?.content),
    toolResult: results.length > 0 ? results.map(({ content }) => textOf(content)).join(' ') : undefined,
    toolResults: messages.flatMap(({ content }) => objectsIn(content).filter(isResult)).length,
    offered,
    tool: isUsers ? toolToCall(body, offered) : undefined,
    isBound: isObject(body.tool_choice) && ['any', 'tool'].includes(String(body.tool_choice.type)),
    schema: schemaIn(body.output_config),
    maxTokens: isCount ? undefined : limitIn(body, ['max_tokens'], deviance),
    choices: 1,
    reasoningTokens: thinkingTokens(body.thinking),
    segments: segmentsIn(body),
    webSearches: objectsIn(body.tools).some(isSearch) ? 1 : 0,
  }
  return withExtras(question, body, deviance)
}

function isResult({ type }: JsonObject): boolean {
  return type === 'tool_result'
}

/** `web_search_20250305` and its like, which the vendor runs itself. */
function isSearch({ type }: JsonObject): boolean {
  return typeof type === 'string' && type.startsWith('web_search')
}

function wrongField(body: JsonObject, isCount: boolean): string | undefined {
  const { model, messages, max_tokens: maxTokens, system, tools, stream, thinking } = body
  if (!isModelName(model)) return 'model'
  if (!isCount && !isWholeNumber(maxTokens, 1)) return 'max_tokens'
  if (!Array.isArray(messages) || messages.length === 0) return 'messages'
  const at = messages.findIndex((message, index) => !isObject(message) || !isMessage(message, index))
  if (at >= 0) return `messages.${at}`
  if (given(system) && typeof system !== 'string' && !Array.isArray(system)) return 'system'
  if (given(tools) && !(Array.isArray(tools) && tools.every(isObject))) return 'tools'
  if (given(stream) && typeof stream !== 'boolean') return 'stream'
  if (isObject(thinking) && thinking.type === 'enabled' && !isWholeNumber(thinking.budget_tokens, 1))
    return 'thinking.enabled.budget_tokens'
  return undefined
}

/** The system may speak in the middle of a conversation, and does not open it. */
function isMessage({ role, content }: JsonObject, index: number): boolean {
  const isSpeaker = role === 'user' || role === 'assistant' || (role === 'system' && index > 0)
  return isSpeaker && (typeof content === 'string' || Array.isArray(content))
}

/** In the order in which the vendor's cache sees them: tools, system, messages. */
function segmentsIn({
  tools,
  system,
  messages,
  output_config: config,
  cache_control: whole,
}: JsonObject): readonly Segment[] {
  const segments = [
    ...objectsIn(tools).map((tool) => segmentOf(jsonText(tool), tool)),
    ...schemaSegments(isObject(config) ? config.format : undefined),
    ...contentSegments(system),
    ...objectsIn(messages).flatMap(({ content }) => contentSegments(content)),
  ]
  const last = segments.at(-1)
  if (!last || !isObject(whole)) return segments
  // A mark on the request itself caches all of it.
  return [...segments.slice(0, -1), { ...last, cachedFor: last.cachedFor ?? lifeOf(whole) }]
}

function contentSegments(content: unknown): Segment[] {
  if (typeof content === 'string') return [segmentOf(content, {})]
  return objectsIn(content).flatMap(blockSegments)
}

function blockSegments(block: JsonObject): Segment[] {
  if (block.type === 'image') return [{ ...segmentOf(jsonText(withoutMark(block)), block), isImage: true }]
  if (block.type === 'tool_result') return resultSegments(block)
  return [segmentOf(blockText(block), block)]
}

/** The mark of a result stands at its end. */
function resultSegments({ content, ...block }: JsonObject): Segment[] {
  if (!Array.isArray(content)) return [segmentOf(typeof content === 'string' ? content : '', block)]
  const inner = objectsIn(content).map(
    (part): Segment => ({ ...segmentOf(blockText(part), part), isImage: part.type === 'image' }),
  )
  return block.cache_control ? [...inner, segmentOf('', block)] : inner
}

function blockText(block: JsonObject): string {
  if (typeof block.text === 'string') return block.text
  if (typeof block.thinking === 'string') return block.thinking
  if (block.type === 'tool_use') return `${block.name ?? ''}${jsonText(block.input)}`
  return jsonText(withoutMark(block))
}

/** Where the mark stands makes no difference to what is cached. */
function withoutMark({ cache_control, ...block }: JsonObject): JsonObject {
  return block
}

function segmentOf(text: string, { cache_control: mark }: JsonObject): Segment {
  return { text, isImage: false, cachedFor: isObject(mark) ? lifeOf(mark) : undefined }
}

function lifeOf({ ttl }: JsonObject): '5m' | '1h' {
  return ttl === '1h' ? '1h' : '5m'
}

function toolsOffered({ tools, tool_choice: choice, messages }: JsonObject): readonly Tool[] {
  if (isObject(choice) && choice.type === 'none') return []
  const found = toolsFound(messages)
  return objectsIn(tools).flatMap((tool) => {
    // A deferred tool is not known to the model until it has looked for it.
    const isKnown = !isSearch(tool) && (tool.defer_loading !== true || found.has(tool.name))
    return isKnown && typeof tool.name === 'string' ? [{ name: tool.name, schema: tool.input_schema }] : []
  })
}

/** What a tool of the caller's own that looks for tools has returned. */
function toolsFound(messages: unknown): ReadonlySet<unknown> {
  const blocks = objectsIn(messages).flatMap(({ content }) => objectsIn(content))
  const parts = blocks.flatMap(({ type, content }) => (type === 'tool_result' ? objectsIn(content) : []))
  return new Set(parts.flatMap(({ type, tool_name: name }) => (type === 'tool_reference' ? [name] : [])))
}

function toolToCall({ tool_choice: choice }: JsonObject, offered: readonly Tool[]): Tool | undefined {
  return namedTool(offered, isObject(choice) && choice.type === 'tool' ? choice.name : undefined)
}

function thinkingTokens(thinking: unknown): number {
  if (!isObject(thinking)) return 0
  if (thinking.type === 'enabled') return Math.min(Number(thinking.budget_tokens), THINKING_TOKENS)
  return thinking.type === 'adaptive' ? THINKING_TOKENS : 0
}

function schemaIn(config: unknown): unknown {
  const format = isObject(config) ? config.format : undefined
  return isObject(format) && format.type === 'json_schema' ? (format.schema ?? {}) : undefined
}

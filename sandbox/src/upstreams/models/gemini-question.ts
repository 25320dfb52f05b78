import { type Deviance, limitIn } from '../../deviants.ts'
import { isObject, type JsonObject } from '../../json.ts'
import { withExtras } from './extras.ts'
import { jsonText } from './json-of-schema.ts'
import {
  given,
  isModelName,
  isWholeNumber,
  lastTextOf,
  objectsIn,
  plainSegment,
  type Question,
  type Tool,
  textOf,
  type Wrong,
} from './question.ts'
import type { Segment } from './tokens.ts'

/** What this protocol asks beyond any question to a model. */
export type GeminiQuestion = Question & { readonly showsThoughts: boolean }

const LIMITS = ['maxOutputTokens', 'max_output_tokens']
const CHOICES_LIMIT = 8
/** What is thought at the most, however much the budget allows. */
const THOUGHT_TOKENS = 40
const ANY_OBJECT: JsonObject = { properties: { answer: { type: 'string' } } }

/** The model and whether the answer is to be a stream are in the path, not in the body. */
export function geminiQuestion(
  body: unknown,
  model: string,
  isStreamed: boolean,
  deviance: Deviance,
): GeminiQuestion | Wrong {
  if (!isObject(body)) return { wrong: 'Invalid JSON payload received.', field: null }
  const config = objectIn(body, 'generationConfig')
  const wrong = isModelName(model) ? wrongField(body, config) : 'model'
  if (wrong !== undefined) return { wrong: `Invalid value at '${wrong}'.`, field: wrong }
  const contents = listIn(body, 'contents')
  const last = contents.at(-1)
  const results = resultsIn(last)
  const offered = toolsOffered(body)
  const lastUser = contents.findLast((content) => isUsers(content) && textOf(partsOf(content)) !== '')
  const question: GeminiQuestion = {
    model,
    isStreamed,
    messages: contents.length,
    prompt: lastTextOf(partsOf(lastUser)),
    toolResult: results.length > 0 ? results.map(({ response }) => jsonText(response)).join(' ') : undefined,
    toolResults: contents.flatMap(resultsIn).length,
    offered,
    tool: isUsers(last) && results.length === 0 ? toolToCall(body, offered) : undefined,
    isBound: member(callingConfig(body), 'mode') === 'ANY',
    schema: schemaIn(config),
    maxTokens: limitIn(config, LIMITS, deviance),
    choices: Number(member(config, 'candidateCount') ?? 1),
    reasoningTokens: thoughtTokens(objectIn(config, 'thinkingConfig')),
    showsThoughts: member(objectIn(config, 'thinkingConfig'), 'includeThoughts') === true,
    segments: segmentsIn(body, contents),
    webSearches: listIn(body, 'tools').some((tool) => given(member(tool, 'googleSearch'))) ? 1 : 0,
  }
  return withExtras(question, body, deviance)
}

/** The vendor takes both spellings of every member. */
export function member(object: JsonObject, name: string): unknown {
  return object[name] ?? object[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]
}

function objectIn(object: JsonObject, name: string): JsonObject {
  const value = member(object, name)
  return isObject(value) ? value : {}
}

/** The vendor takes a single item where a list is meant. */
export function listIn(object: JsonObject, name: string): JsonObject[] {
  const value = member(object, name)
  return isObject(value) ? [value] : objectsIn(value)
}

export function partsOf(content: JsonObject | undefined): JsonObject[] {
  return content === undefined ? [] : listIn(content, 'parts')
}

function resultsIn(content: JsonObject | undefined): JsonObject[] {
  return partsOf(content).flatMap((part) =>
    given(member(part, 'functionResponse')) ? [objectIn(part, 'functionResponse')] : [],
  )
}

/** Who says nothing of his role is the user. */
function isUsers(content: JsonObject | undefined): boolean {
  return content !== undefined && (content.role ?? 'user') === 'user'
}

function wrongField(body: JsonObject, config: JsonObject): string | undefined {
  const contents = listIn(body, 'contents')
  if (contents.length === 0) return 'contents'
  const at = contents.findIndex(({ role }) => given(role) && !['user', 'model', 'function'].includes(String(role)))
  if (at >= 0) return `contents[${at}].role`
  const maxTokens = member(config, 'maxOutputTokens')
  if (given(maxTokens) && !isWholeNumber(maxTokens, 1)) return 'generation_config.max_output_tokens'
  const count = member(config, 'candidateCount')
  if (given(count) && !(isWholeNumber(count, 1) && count <= CHOICES_LIMIT)) return 'generation_config.candidate_count'
  return undefined
}

function segmentsIn(body: JsonObject, contents: readonly JsonObject[]): readonly Segment[] {
  const system = partsOf(objectIn(body, 'systemInstruction'))
  return [
    ...listIn(body, 'tools').map((tool) => plainSegment(jsonText(tool))),
    ...[...system, ...contents.flatMap(partsOf)].map(partSegment),
  ]
}

function partSegment(part: JsonObject): Segment {
  if (typeof part.text === 'string') return plainSegment(part.text)
  const call = objectIn(part, 'functionCall')
  if (typeof call.name === 'string') return plainSegment(`${call.name}${jsonText(call.args)}`)
  const result = objectIn(part, 'functionResponse')
  if (given(result.response)) return plainSegment(jsonText(result.response))
  const data = { ...objectIn(part, 'fileData'), ...objectIn(part, 'inlineData') }
  const type = String(member(data, 'mimeType'))
  const kind = { isImage: type.startsWith('image/'), isAudio: type.startsWith('audio/') }
  return { text: jsonText(part), ...kind, cachedFor: undefined }
}

function callingConfig(body: JsonObject): JsonObject {
  return objectIn(objectIn(body, 'toolConfig'), 'functionCallingConfig')
}

function toolsOffered(body: JsonObject): readonly Tool[] {
  if (callingConfig(body).mode === 'NONE') return []
  const declared = listIn(body, 'tools').flatMap((tool) => listIn(tool, 'functionDeclarations'))
  return declared.flatMap((tool) => {
    const schema = tool.parameters ?? member(tool, 'parametersJsonSchema')
    return typeof tool.name === 'string' ? [{ name: tool.name, schema: typesInLowerCase(schema) }] : []
  })
}

function toolToCall(body: JsonObject, offered: readonly Tool[]): Tool | undefined {
  const allowed = member(callingConfig(body), 'allowedFunctionNames')
  return offered.find(({ name }) => Array.isArray(allowed) && allowed.includes(name)) ?? offered[0]
}

function schemaIn(config: JsonObject): unknown {
  if (member(config, 'responseMimeType') !== 'application/json') return undefined
  const schema = member(config, 'responseSchema') ?? member(config, 'responseJsonSchema')
  return schema === undefined ? ANY_OBJECT : typesInLowerCase(schema)
}

/** Schemas of this protocol have types in capitals, others may have them as JSON schema does. */
function typesInLowerCase(schema: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(schema ?? {}), (name, value) =>
      name === 'type' && typeof value === 'string' ? value.toLowerCase() : value,
    )
  } catch {
    return {}
  }
}

/** A budget below zero is the model's own choice. */
function thoughtTokens(config: JsonObject): number {
  const budget = member(config, 'thinkingBudget')
  if (typeof budget === 'number') return budget < 0 ? THOUGHT_TOKENS : Math.min(budget, THOUGHT_TOKENS)
  return given(member(config, 'thinkingLevel')) ? THOUGHT_TOKENS : 0
}

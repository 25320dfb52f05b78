import { isObject, type JsonObject } from '../../json.ts'

import { jsonText } from './json-of-schema.ts'
import type { Segment } from './tokens.ts'

/** A tool that the caller runs. */
export type Tool = { readonly name: string; readonly schema: unknown }

/** What a model is asked, whichever protocol it came by. */
export type Question = {
  readonly model: string
  readonly isStreamed: boolean
  /** How many messages the conversation has. */
  readonly messages: number
  /** The last text of the user: agents put reminders of their own in front of it. */
  readonly prompt: string
  /** What a tool has returned, where that is what the model is to go on with. */
  readonly toolResult: string | undefined
  /** How many results of tools are in the conversation. */
  readonly toolResults: number
  /** The tools that the caller runs and that the model may call. */
  readonly offered: readonly Tool[]
  /** The tool that the model is free or bound to call now. */
  readonly tool: Tool | undefined
  /** Whether it has to call one. */
  readonly isBound: boolean
  /** The answer is to be JSON, fitting this schema. */
  readonly schema: unknown
  readonly maxTokens: number | undefined
  readonly choices: number
  readonly reasoningTokens: number
  readonly segments: readonly Segment[]
  /** Searches of the web that the vendor runs itself, and charges for. */
  readonly webSearches: number
  readonly extras?: Extras
}

/** A request that the vendor refuses, with the field and the vendor's sentence about it. */
export type Wrong = { readonly wrong: string; readonly field: string | null }

const MODEL_LIMIT = 256

/** Every frame of a stream repeats it, so it is not for long texts. */
export function isModelName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MODEL_LIMIT
}

export function isWholeNumber(value: unknown, least: number): value is number {
  return Number.isSafeInteger(value) && Number(value) >= least
}

/** Absent and null are the same to both vendors. */
export function given(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** The one that is named, or else the first. */
export function namedTool(offered: readonly Tool[], wanted: unknown): Tool | undefined {
  return offered.find(({ name }) => name === wanted) ?? offered[0]
}

/** The schema that an answer has to have is put into the prompt by the vendor, and counted as input. */
export function schemaSegments(format: unknown): readonly Segment[] {
  return isObject(format) && format.type === 'json_schema' ? [plainSegment(jsonText(format))] : []
}

export function plainSegment(text: string): Segment {
  return { text, isImage: false, cachedFor: undefined }
}

export function objectsIn(list: unknown): JsonObject[] {
  return Array.isArray(list) ? list.filter(isObject) : []
}

/** The last text of a content that is a text or a list of parts. */
export function lastTextOf(content: unknown): string {
  return textOf(Array.isArray(content) ? content.filter((part) => textOf([part]) !== '').slice(-1) : content)
}

/** The texts of a content that is a text or a list of parts. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  const texts = objectsIn(content).map(({ text }) => text)
  return texts.filter((text) => typeof text === 'string').join('')
}

/** What members that no protocol of these has make of an answer. */
export type Extras = {
  /** So long it is, whatever limits it. */
  readonly outputTokens: number | undefined
  /** Read with the prompt. */
  readonly inputTokens: number
  /** All of it is counted so often. */
  readonly times: number
}

export const NO_EXTRAS: Extras = { outputTokens: undefined, inputTokens: 0, times: 1 }

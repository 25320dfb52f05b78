/** What an upstream says of the tokens of a call, and where it stands in the bytes of a frame. */
import {
  PART_CLASS_NAMES,
  type PartClass,
  SERVER_TOOLS,
  type ServerTool,
  tierNamed,
} from '../catalogue/price-classes.ts'
import { CLOSE_BRACE, CLOSE_BRACKET, endOfString, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './json-bytes.ts'
import { isMembers } from './members.ts'
import type { ErrorEnd, Reported, TokenUsage } from './protocol.ts'
import { memberIn } from './splice-json.ts'
import type { Frame } from './sse.ts'

/** What was said, without what was not. */
export function reportedOf(counts: { readonly [Class in keyof TokenUsage]: number | undefined }): Reported {
  const { input, output, cacheRead, cacheWrite } = counts
  return {
    ...(input !== undefined && { input }),
    ...(output !== undefined && { output }),
    ...(cacheRead !== undefined && { cacheRead }),
    ...(cacheWrite !== undefined && { cacheWrite }),
  }
}

type Said<Name extends string> = { readonly [One in Name]?: number | undefined }

/** Those that have any tokens: what is zero says nothing. */
export function partsOf(counts: Said<PartClass>): Pick<Reported, 'parts'> {
  const parts: Partial<Record<PartClass, number>> = {}
  for (const name of PART_CLASS_NAMES) {
    const count = counts[name] ?? 0
    if (count > 0) parts[name] = count
  }
  return Object.keys(parts).length === 0 ? {} : { parts }
}

/** Of tools that an upstream ran. */
export function callsOf(counts: Said<ServerTool>): Pick<Reported, 'calls'> {
  const calls: Partial<Record<ServerTool, number>> = {}
  for (const tool of SERVER_TOOLS) {
    const count = counts[tool] ?? 0
    if (count > 0) calls[tool] = count
  }
  return Object.keys(calls).length === 0 ? {} : { calls }
}

/** Streams have it as two bytes for each of 24,000 samples a second, of which vendors make 20 to 25 tokens. */
const BASE64_OF_SOUND_TOKEN = (2 * 24_000 * 4) / 3 / 25

/** Of sound in base64, as far as it has come. */
export function soundTokensOf(chars: number): Pick<Reported, 'soundTokens'> {
  return chars === 0 ? {} : { soundTokens: Math.ceil(chars / BASE64_OF_SOUND_TOKEN) }
}

const TIER_LENGTH = 32

/** The tier that an upstream says that it has answered in. */
export function tierOf(value: unknown): Pick<Reported, 'tier'> {
  return typeof value === 'string' && value !== '' && value.length <= TIER_LENGTH ? { tier: tierNamed(value) } : {}
}

/**
 * What parts of a whole have where they were counted beside it, against their protocol: a total has room for them beyond
 * everything else, and they are more than their whole, or all that the total has beyond. Else 0.
 */
export function countedBeside(
  parts: number,
  { whole, excess }: { readonly whole: number; readonly excess: number },
): number {
  return excess >= parts && (parts > whole || parts === excess) ? parts : 0
}

/** Of a JSON value that should be a list. */
export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/**
 * Where the usage of a frame takes one more member: before its closing brace, so that ours is the last of its name; of several
 * usages in the last, which is the one that parsers read. -1 where that is not safe: the data is in several lines, or the usage has no member that a comma could follow.
 */
export function endOfUsage({ bytes, dataStart, dataEnd }: Frame, path: readonly string[] = ['usage']): number {
  if (dataStart === -1) return -1
  let value: Buffer | undefined = bytes.subarray(dataStart, dataEnd)
  for (const name of path) value = value && memberIn(value, name)
  if (value === undefined || value.at(-1) !== CLOSE_BRACE || !value.includes(QUOTE)) return -1
  return value.byteOffset - bytes.byteOffset + value.length - 1
}

/** Where a frame whose data is an object with members takes one more, as the last; -1 where the data is in several lines. */
export function endOfMembers({ bytes, dataStart, dataEnd }: Frame): number {
  if (dataStart === -1) return -1
  const end = bytes.lastIndexOf(CLOSE_BRACE, dataEnd - 1)
  return bytes.subarray(dataStart, end).includes(QUOTE) ? end : -1
}

/** What we call the cost of a call, wherever a stream tells it. */
export const COST = 'cost_usd'

/**
 * An upstream's error, a frame of JSON, written anew with what the call cost and the id of its request where refusals of ours have them.
 * Costs and ids that its upstream tells are left out: callers would take them for ours.
 */
export function errorTold({ data = '', event }: Frame, { cost, requestId }: ErrorEnd): Buffer {
  const frame: unknown = JSON.parse(data, (name, value) => (name === COST ? undefined : value))
  const members: Readonly<Record<string, unknown>> = Object(frame)
  const { error } = members
  const told = isMembers(error) ? { ...members, error: { ...error, [COST]: cost } } : { ...members, [COST]: cost }
  const text = JSON.stringify({ ...told, request_id: requestId })
  return Buffer.from(`${event === undefined ? '' : `event: ${event}\n`}data: ${text}\n\n`)
}

/**
 * The frame without a usage that is null, of data that has parsed as an object with such a member. The bytes that are looked
 * for are never part of a string: its quote would have a backslash before it, or would end the string before `usage`, and
 * neither parses. What an object inside has under that name stays, and so does what is written with space in between.
 */
export function withoutNullUsage({ bytes, dataStart, dataEnd }: Frame): Buffer {
  if (dataStart === -1) return bytes
  const start = bytes.lastIndexOf(NULL_USAGE, dataEnd)
  const end = start + NULL_USAGE.length
  if (start < dataStart || !isOutermost(bytes, end, dataEnd)) return bytes
  return Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)])
}

const NULL_USAGE = Buffer.from(',"usage":null')

/** Whether a place between the members of an object has but one brace to close behind it. */
function isOutermost(bytes: Buffer, start: number, end: number): boolean {
  let depth = 1
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at]
    if (byte === QUOTE) at = endOfString(bytes, at) - 1
    else if (depth === 0 && (byte === CLOSE_BRACE || byte === CLOSE_BRACKET)) return false
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth += 1
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth -= 1
  }
  return true
}

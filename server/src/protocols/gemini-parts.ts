import type { Table } from '../catalogue/member-table.ts'
import { type Gathered, gatherRest, isAudio, isShortRole, kindOfType } from './gather.ts'
import {
  CONTENT,
  FILE_DATA,
  FUNCTION_RESPONSE,
  INLINE_DATA,
  PART,
  PART_RESOLUTION,
  VIDEO_METADATA,
} from './gemini-members.ts'
import { spelled } from './gemini-names.ts'
import { isGiven, isMembers, type Members, refusal } from './members.ts'

/** What a part may have whose tokens are known: it is text, or the upstream writes it as such, or a kind is declared for it. */
const MEASURABLE: ReadonlySet<string> = new Set([
  ...['functionCall', 'executableCode', 'codeExecutionResult', 'thought', 'thoughtSignature'],
  ...['videoMetadata', 'mediaResolution', 'mediaProcessing', 'partMetadata', 'speechMetadata'],
])

/** One or many: the protocol takes a single item where a list is meant. */
export function itemsIn(value: unknown): readonly unknown[] {
  if (!isGiven(value)) return []
  return Array.isArray(value) ? value : [value]
}

/** What a turn of the conversation, or an instruction, brings into the prompt. */
export function gatherContent(content: unknown, gathered: Gathered): void {
  if (typeof content === 'string') gathered.texts.push(content)
  else if (!isMembers(content)) gathered.structures.push(content)
  else {
    const { role, parts, ...rest } = spelled(content, CONTENT)
    if (isGiven(role) && !isShortRole(role)) gathered.structures.push(role)
    for (const part of itemsIn(parts)) gatherPart(part, gathered)
    gatherRest(rest, gathered)
  }
}

/** A part has one of its kinds, but nothing is left out of the bound where it has several. */
function gatherPart(part: unknown, gathered: Gathered): void {
  if (typeof part === 'string') gathered.texts.push(part)
  else if (!isMembers(part)) gathered.structures.push(part)
  else {
    const members = spelled(part, PART)
    const { text, inlineData, fileData, functionResponse, ...rest } = members
    if (typeof text === 'string') gathered.texts.push(text)
    else if (isGiven(text)) gathered.structures.push(text)
    if (isGiven(inlineData)) gatherData(inlineData, INLINE_DATA, isRescaled(members), gathered)
    // What is behind an address need not be what its caller calls it.
    if (isGiven(fileData)) gatherData(fileData, FILE_DATA, true, gathered)
    if (isGiven(functionResponse)) gatherResponse(functionResponse, gathered)
    if (Object.keys(rest).some((name) => !MEASURABLE.has(name))) gathered.parts.push(undefined)
    gatherRest(rest, gathered)
  }
}

function gatherData(data: unknown, table: Table, rescaled: boolean, gathered: Gathered): void {
  const { data: _, fileUri, ...rest }: Members = isMembers(data) ? spelled(data, table) : { unread: data }
  if (typeof rest.mimeType !== 'string' || rest.mimeType === '')
    throw refusal(`"${table.title}" must have "mimeType": audio, images and files have different prices.`)
  const isSound = isAudio(rest.mimeType, gathered)
  const kind = isSound ? 'audio' : kindOfType(rest.mimeType)
  gathered.parts.push(rescaled || isAudio(fileUri, gathered) ? undefined : kind)
  gatherRest(rest, gathered)
}

/** What a tool has returned may have pictures and files beside it. */
function gatherResponse(response: unknown, gathered: Gathered): void {
  if (!isMembers(response)) {
    gathered.structures.push(response)
    return
  }
  const { parts, ...rest } = spelled(response, FUNCTION_RESPONSE)
  for (const part of itemsIn(parts)) gatherPart(part, gathered)
  gatherRest(rest, gathered)
}

/** Whether the caller says how many tokens a part has, or pictures a second. What is declared for its kind is not about that. */
function isRescaled({ videoMetadata, mediaResolution }: Members): boolean {
  const { fps } = isMembers(videoMetadata) ? spelled(videoMetadata, VIDEO_METADATA) : {}
  const { numTokens } = isMembers(mediaResolution) ? spelled(mediaResolution, PART_RESOLUTION) : {}
  return isGiven(fps) || isGiven(numTokens)
}

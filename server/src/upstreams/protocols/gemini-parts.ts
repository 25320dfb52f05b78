import { type Gathered, gatherRest, isShortRole } from './gather.ts'
import { namesOf, spelled } from './gemini-names.ts'
import { isGiven, isMembers, type Members } from './members.ts'
import type { PartKind } from './protocol.ts'

const CONTENT = namesOf('role', 'parts')
/** What a part may have whose tokens are known: it is text, or the upstream writes it as such, or a kind is declared for it. */
const PART = namesOf(
  ...['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse', 'executableCode', 'codeExecutionResult'],
  ...['thought', 'thoughtSignature', 'videoMetadata', 'mediaResolution', 'partMetadata', 'speechMetadata'],
)
const RESPONSE = namesOf('parts')
const DATA = namesOf('mimeType', 'data', 'fileUri')
const SCALE = namesOf('fps', 'numTokens')

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
    if (isGiven(inlineData)) gatherData(inlineData, isRescaled(members), gathered)
    // What is behind an address need not be what its caller calls it.
    if (isGiven(fileData)) gatherData(fileData, true, gathered)
    if (isGiven(functionResponse)) gatherResponse(functionResponse, gathered)
    if (Object.keys(rest).some((name) => !PART.has(name.toLowerCase()))) gathered.parts.push(undefined)
    gatherRest(rest, gathered)
  }
}

function gatherData(data: unknown, rescaled: boolean, gathered: Gathered): void {
  const { data: _, fileUri: __, ...rest } = isMembers(data) ? spelled(data, DATA) : { unread: data }
  gathered.parts.push(rescaled ? undefined : kindOf(rest.mimeType))
  gatherRest(rest, gathered)
}

/** What a tool has returned may have pictures and files beside it. */
function gatherResponse(response: unknown, gathered: Gathered): void {
  if (!isMembers(response)) {
    gathered.structures.push(response)
    return
  }
  const { parts, ...rest } = spelled(response, RESPONSE)
  for (const part of itemsIn(parts)) gatherPart(part, gathered)
  gatherRest(rest, gathered)
}

function kindOf(mimeType: unknown): PartKind | undefined {
  if (typeof mimeType !== 'string' || mimeType === '') return undefined
  const [type] = mimeType.toLowerCase().split('/')
  return type === 'image' || type === 'audio' ? type : 'file'
}

/** Whether the caller says how many tokens a part has, or pictures a second. What is declared for its kind is not about that. */
function isRescaled({ videoMetadata, mediaResolution }: Members): boolean {
  return [videoMetadata, mediaResolution].some((scale) => {
    if (!isMembers(scale)) return false
    const { fps, numTokens } = spelled(scale, SCALE)
    return isGiven(fps) || isGiven(numTokens)
  })
}

import { isGiven, isMembers, type Members, refusal } from './members.ts'
import type { ModelLimits, PartKind } from './protocol.ts'
import { NO_AUDIO } from './reasons.ts'

/** A prompt while it is read out of a body. */
export type Gathered = {
  readonly texts: string[]
  readonly structures: unknown[]
  readonly parts: (PartKind | undefined)[]
  /** Whether the model has a price of audio. */
  readonly takesAudio: boolean
}

export function emptyPrompt({ sold }: Pick<ModelLimits, 'sold'>): Gathered {
  return { texts: [], structures: [], parts: [], takesAudio: sold?.needs.has('input_audio') === true }
}

const ROLE_LENGTH = 16
const ADDRESSES = ['url', 'image_url']
/** Where the data of a part stands, which is no text of the prompt. */
const DATA_MEMBERS = [...ADDRESSES, 'data', 'file_data', 'file_id', 'file_url']

const AUDIO = /^(data:)?(audio\/|application\/ogg)/i
/** An address that is fetched, or the picture itself. Vendors take nothing but pictures from such an address. */
const PICTURE_URL = /^(https?:|data:image\/)/i
const PICTURE_TYPE = /^image\//i
const SCHEME_LENGTH = 256

/** What a template's share for each message covers; a longer role is counted as text. */
export function isShortRole(role: unknown): boolean {
  return typeof role === 'string' && role.length <= ROLE_LENGTH
}

/** How a protocol has its parts: where the text of one stands by its type, and what kind any other is. */
export type PartForms = {
  readonly texts: ReadonlyMap<unknown, string>
  readonly kindOf: (type: unknown, part: Members) => PartKind | undefined
}

/** What a role says, in text or in parts. */
export function gatherMessage(message: unknown, forms: PartForms, gathered: Gathered): void {
  if (!isMembers(message)) {
    gathered.structures.push(message)
    return
  }
  const { role, content, ...rest } = message
  if (!isShortRole(role)) gathered.structures.push(role)
  gatherContent(content, forms, gathered)
  gatherRest(rest, gathered)
}

export function gatherContent(content: unknown, forms: PartForms, gathered: Gathered): void {
  if (typeof content === 'string') gathered.texts.push(content)
  else if (Array.isArray(content)) for (const part of content) gatherPart(part, forms, gathered)
  else if (isGiven(content)) gatherPart(content, forms, gathered)
}

function gatherPart(part: unknown, { texts, kindOf }: PartForms, gathered: Gathered): void {
  if (!isMembers(part)) {
    gathered.structures.push(part)
    return
  }
  const { type, ...rest } = part
  const member = texts.get(type)
  if (member !== undefined) gatherText(rest, member, gathered)
  else gatherOther(rest, kindOf(type, rest), gathered)
}

/** Of the members beside a conversation: those that an upstream writes into the prompt, and those that no prompt has, large as they may be. */
export type MemberPlaces = { readonly structures: readonly string[]; readonly outside: readonly string[] }

/** Gathers what is written into the prompt; gives the members of which that is not known. */
export function gatherBeside(members: Members, { structures, outside }: MemberPlaces, gathered: Gathered): Members {
  const others: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(members)) {
    if (structures.includes(name)) gathered.structures.push(value)
    else if (!outside.includes(name)) others[name] = value
  }
  return others
}

/** A part that is text, with whatever else it has. */
export function gatherText(part: Members, member: string, gathered: Gathered): void {
  const { [member]: text, ...rest } = part
  if (typeof text === 'string') gathered.texts.push(text)
  else gathered.structures.push(text)
  gatherRest(rest, gathered)
}

/**
 * Whether a caller calls it audio, wherever it says so: in the type of the data, or in the address that holds it. Where the model
 * has no price of audio, that is refused.
 */
export function isAudio(what: unknown, { takesAudio }: Pick<Gathered, 'takesAudio'>): boolean {
  if (typeof what !== 'string' || !AUDIO.test(startOf(what))) return false
  if (takesAudio) return true
  throw refusal(`A part with audio is not supported: ${NO_AUDIO}`)
}

/** What a media type says that the data are. Whatever is no picture may have as many pages or minutes as a file. */
export function kindOfType(mediaType: unknown): PartKind {
  return typeof mediaType === 'string' && PICTURE_TYPE.test(startOf(mediaType)) ? 'image' : 'file'
}

/** What a caller calls a picture is held as one only where all its data are: a document in its place is read as a file. */
export function kindOfPicture(source: unknown): PartKind {
  const { media_type: mediaType, ...members }: Members = isMembers(source) ? source : { url: source }
  for (const [name, value] of Object.entries(members)) {
    // One protocol has in an object what another has beside its type, and some upstreams read both.
    if (ADDRESSES.includes(name) && isMembers(value) && kindOfPicture(value) === 'file') return 'file'
    if (!isData(name, value) || name === 'file_id') continue
    const isPicture = ADDRESSES.includes(name)
      ? PICTURE_URL.test(startOf(String(value)))
      : kindOfType(mediaType) === 'image'
    if (!isPicture) return 'file'
  }
  return 'image'
}

/** Readers of addresses leave spaces and control characters out. */
function startOf(text: string): string {
  return text
    .trimStart()
    .slice(0, SCHEME_LENGTH)
    .replace(/[\s\p{C}]/gu, '')
}

/** A part that is no text. Without its data, it can still reach the prompt as text, such as by a file's name. */
export function gatherOther(part: Members, kind: PartKind | undefined, gathered: Gathered): void {
  let hasAudio = false
  const labels: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(part)) {
    for (const said of [value, ...(isMembers(value) ? Object.values(value) : [])])
      hasAudio = isAudio(said, gathered) || hasAudio
    const label = isMembers(value) ? withoutData(value) : value
    if (isMembers(label) ? Object.keys(label).length > 0 : !isData(name, label)) labels[name] = label
  }
  // What is declared for a file is not about sound in its place.
  gathered.parts.push(hasAudio && kind !== 'audio' ? undefined : kind)
  gatherRest(labels, gathered)
}

export function gatherRest(rest: Members, gathered: Gathered): void {
  if (Object.keys(rest).length > 0) gathered.structures.push(rest)
}

function withoutData(members: Members): Members {
  return Object.fromEntries(Object.entries(members).filter(([name, value]) => !isData(name, value)))
}

function isData(name: string, value: unknown): boolean {
  return typeof value === 'string' && DATA_MEMBERS.includes(name)
}

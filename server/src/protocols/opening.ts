import { memberOf } from '../catalogue/price.ts'
import type { ProtocolName } from './protocol.ts'

/**
 * How a conversation begins: system prompt, tools and first message of the user, which every turn repeats; and how it goes on. Of long ones
 * only pieces are taken, so that the work has a bound: it has to tell conversations apart, and not to prove that they are the same.
 */
type Opening = {
  readonly system: unknown
  readonly tools: unknown
  readonly first: unknown
  readonly next: readonly unknown[]
}

/** Of each text, so many characters from its start and from its end, with its length. */
const END_CHARACTERS = 256
/** Of a message's parts, so many from its start and from its end. */
const END_PARTS = 4
/** Messages that are looked at for the first of the user. */
const LOOKED_AT = 16
/** Messages behind that: an answer, and what is said to it. */
const NEXT_MESSAGES = 2
const TOOLS_MOST = 32
/** Values that are looked at in each of system prompt, tools and messages, whatever a request is made of. */
const VISITS_MOST = 64

/** What the user has said first, with the instructions before it, as far as pieces of it tell conversations apart. */
export function openingOf(protocol: ProtocolName, body: unknown): string {
  const { system, tools, first } = OPENINGS[protocol](body)
  return `${piecesOf(system, gather)}\n${piecesOf(tools, gatherNames)}\n${piecesOf(first, gather)}`
}

/** What was said next, by whoever: what differs where conversations begin alike. Undefined where nothing was yet. */
export function continuationOf(protocol: ProtocolName, body: unknown): string | undefined {
  const { next } = OPENINGS[protocol](body)
  return next.length === 0 ? undefined : piecesOf(next, gather)
}

/** A text whole, or its ends. */
export function endsOf(text: string): string {
  if (text.length <= 2 * END_CHARACTERS) return text
  return `${text.slice(0, END_CHARACTERS)}\u0000${text.length}\u0000${text.slice(-END_CHARACTERS)}`
}

const OPENINGS: Readonly<Record<ProtocolName, (body: unknown) => Opening>> = {
  openai: (body) => ({ ...ofMessages(memberOf(body, 'messages')), tools: memberOf(body, 'tools') }),
  openai_responses(body) {
    const { system, ...said } = ofMessages(memberOf(body, 'input'))
    return { system: [memberOf(body, 'instructions'), ...system], tools: memberOf(body, 'tools'), ...said }
  },
  anthropic: (body) => ({
    ...ofMessages(memberOf(body, 'messages')),
    system: memberOf(body, 'system'),
    tools: memberOf(body, 'tools'),
  }),
  gemini(body) {
    const { first, next } = ofMessages(memberOf(body, 'contents'))
    const system = partsOf(memberOf(body, 'systemInstruction') ?? memberOf(body, 'system_instruction'))
    return { system, tools: memberOf(body, 'tools'), first: partsOf(first), next }
  },
  // What is no conversation is one of its own by what it is about.
  openai_embeddings: (body) => ofOne(memberOf(body, 'input')),
  openai_images: (body) => ofOne(memberOf(body, 'prompt')),
  gemini_embeddings: (body) => ofOne(memberOf(body, 'content') ?? memberOf(body, 'requests')),
  video: (body) => ofOne(memberOf(body, 'input')),
}

function ofOne(first: unknown): Opening {
  return { system: undefined, tools: undefined, first, next: [] }
}

/** The first message of the user, what the system says before it, and what comes next. A text alone is the user's; so is what has no role. */
function ofMessages(messages: unknown): {
  readonly system: readonly unknown[]
  readonly first: unknown
  readonly next: readonly unknown[]
} {
  if (!Array.isArray(messages)) return { system: [], first: messages, next: [] }
  const system: unknown[] = []
  const last = Math.min(messages.length, LOOKED_AT)
  for (let at = 0; at < last; at += 1) {
    const message: unknown = messages[at]
    const role = memberOf(message, 'role')
    const content = memberOf(message, 'content') ?? message
    if (role === 'user' || role === undefined)
      return { system, first: content, next: messages.slice(at + 1, at + 1 + NEXT_MESSAGES) }
    if (role === 'system' || role === 'developer') system.push(content)
  }
  return { system, first: memberOf(messages[0], 'content') ?? messages[0], next: messages.slice(1, 1 + NEXT_MESSAGES) }
}

function partsOf(content: unknown): unknown {
  return memberOf(content, 'parts') ?? content
}

/** What was found of one part of a request, and how many more of its values may be looked at. */
type Pieces = { found: string; visitsLeft: number }

function piecesOf(value: unknown, take: (value: unknown, pieces: Pieces) => void): string {
  const pieces: Pieces = { found: '', visitsLeft: VISITS_MOST }
  take(value, pieces)
  return pieces.found
}

/**
 * Texts, be they alone or in parts: clients send the same message in both forms, and move the marks of the cache from turn to turn. Of a
 * part that is no text, such as a picture, whatever texts it has.
 */
function gather(value: unknown, pieces: Pieces): void {
  if (pieces.visitsLeft === 0) return
  pieces.visitsLeft -= 1
  if (typeof value === 'string') pieces.found += `${endsOf(value)}\u0000`
  else if (Array.isArray(value)) for (const part of bothEnds(value)) gather(part, pieces)
  else if (typeof value === 'object' && value !== null) gatherMembers(value, pieces)
}

function gatherMembers(part: object, pieces: Pieces): void {
  const text = memberOf(part, 'text')
  if (typeof text === 'string') {
    pieces.found += `${endsOf(text)}\u0000`
    return
  }
  for (const name of bothEnds(Object.keys(part)))
    if (name !== 'cache_control') gather(memberOf(part, String(name)), pieces)
}

function bothEnds(list: readonly unknown[]): readonly unknown[] {
  return list.length <= 2 * END_PARTS ? list : [...list.slice(0, END_PARTS), ...list.slice(-END_PARTS)]
}

/** Names alone: descriptions and schemas are most of a large request, and seldom differ where names do not. */
function gatherNames(tools: unknown, pieces: Pieces): void {
  if (!Array.isArray(tools)) return
  pieces.found += `${tools.length}\u0000`
  for (const tool of tools.slice(0, TOOLS_MOST)) {
    if (pieces.visitsLeft === 0) return
    pieces.visitsLeft -= 1
    const name = memberOf(tool, 'name') ?? memberOf(memberOf(tool, 'function'), 'name') ?? memberOf(tool, 'type')
    if (typeof name === 'string') pieces.found += `${endsOf(name)}\u0000`
    else gatherNames(memberOf(tool, 'functionDeclarations') ?? memberOf(tool, 'function_declarations'), pieces)
  }
}

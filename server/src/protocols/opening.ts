import { memberOf } from '../catalogue/price.ts'
import type { ProtocolName } from './protocol.ts'

/**
 * How a conversation begins: system prompt, tools and first message of the user, which every turn repeats. Of long ones only pieces are
 * taken, so that the work has a bound: it has to tell conversations apart, and not to prove that they are the same.
 */
type Opening = { readonly system: unknown; readonly tools: unknown; readonly first: unknown }

/** Of each text, so many characters from its start and from its end, with its length. */
const END_CHARACTERS = 256
/** Of a message's parts, so many from its start and from its end. */
const END_PARTS = 4
/** Messages that are looked at for the first of the user. */
const LOOKED_AT = 16
const TOOLS_MOST = 32
/** How deep a part that is no text is looked into. */
const DEPTH_MOST = 4
/** Pieces in all, whatever a request is made of. */
const PIECES_MOST = 64

/** What the user has said first, with the instructions before it, as far as pieces of it tell conversations apart. */
export function openingOf(protocol: ProtocolName, body: unknown): string {
  const { system, tools, first } = OPENINGS[protocol](body)
  const pieces: string[] = []
  gather(system, pieces)
  pieces.push('\n')
  gatherNames(tools, pieces)
  pieces.push('\n')
  gather(first, pieces)
  return pieces.join('\u0000')
}

/** A text whole, or its ends. */
export function endsOf(text: string): string {
  if (text.length <= 2 * END_CHARACTERS) return text
  return `${text.slice(0, END_CHARACTERS)}\u0000${text.length}\u0000${text.slice(-END_CHARACTERS)}`
}

const OPENINGS: Readonly<Record<ProtocolName, (body: unknown) => Opening>> = {
  openai: (body) => ({ ...ofMessages(memberOf(body, 'messages')), tools: memberOf(body, 'tools') }),
  openai_responses(body) {
    const { system, first } = ofMessages(memberOf(body, 'input'))
    return { system: [memberOf(body, 'instructions'), ...system], tools: memberOf(body, 'tools'), first }
  },
  anthropic: (body) => ({
    system: memberOf(body, 'system'),
    tools: memberOf(body, 'tools'),
    first: ofMessages(memberOf(body, 'messages')).first,
  }),
  gemini: (body) => ({
    system: partsOf(memberOf(body, 'systemInstruction') ?? memberOf(body, 'system_instruction')),
    tools: memberOf(body, 'tools'),
    first: partsOf(ofMessages(memberOf(body, 'contents')).first),
  }),
  // What is no conversation is one of its own by what it is about.
  openai_embeddings: (body) => ofOne(memberOf(body, 'input')),
  openai_images: (body) => ofOne(memberOf(body, 'prompt')),
  gemini_embeddings: (body) => ofOne(memberOf(body, 'content') ?? memberOf(body, 'requests')),
  video: (body) => ofOne(memberOf(body, 'input')),
}

function ofOne(first: unknown): Opening {
  return { system: undefined, tools: undefined, first }
}

/** The first message of the user, and what the system says before it. A text alone is the user's; so is what has no role. */
function ofMessages(messages: unknown): { readonly system: readonly unknown[]; readonly first: unknown } {
  if (!Array.isArray(messages)) return { system: [], first: messages }
  const system: unknown[] = []
  for (const message of messages.slice(0, LOOKED_AT)) {
    const role = memberOf(message, 'role')
    const content = memberOf(message, 'content') ?? message
    if (role === 'user' || role === undefined) return { system, first: content }
    if (role === 'system' || role === 'developer') system.push(content)
  }
  return { system, first: memberOf(messages[0], 'content') ?? messages[0] }
}

function partsOf(content: unknown): unknown {
  return memberOf(content, 'parts') ?? content
}

/**
 * Texts, be they alone or in parts: clients send the same message in both forms, and move the marks of the cache from turn to turn. Of a
 * part that is no text, such as a picture, whatever texts it has.
 */
function gather(value: unknown, pieces: string[], depth = 0): void {
  if (pieces.length >= PIECES_MOST || depth > DEPTH_MOST) return
  if (typeof value === 'string') pieces.push(endsOf(value))
  else if (Array.isArray(value)) for (const part of bothEnds(value)) gather(part, pieces, depth + 1)
  else if (typeof value === 'object' && value !== null) gatherMembers(value, pieces, depth)
}

function gatherMembers(part: object, pieces: string[], depth: number): void {
  const text = memberOf(part, 'text')
  if (typeof text === 'string') {
    pieces.push(endsOf(text))
    return
  }
  for (const name of bothEnds(Object.keys(part)))
    if (name !== 'cache_control') gather(memberOf(part, String(name)), pieces, depth + 1)
}

function bothEnds(list: readonly unknown[]): readonly unknown[] {
  return list.length <= 2 * END_PARTS ? list : [...list.slice(0, END_PARTS), ...list.slice(-END_PARTS)]
}

/** Names alone: descriptions and schemas are most of a large request, and seldom differ where names do not. */
function gatherNames(tools: unknown, pieces: string[]): void {
  if (!Array.isArray(tools)) return
  pieces.push(String(tools.length))
  for (const tool of tools.slice(0, TOOLS_MOST)) {
    if (pieces.length >= TOOLS_MOST) return
    const name = memberOf(tool, 'name') ?? memberOf(memberOf(tool, 'function'), 'name') ?? memberOf(tool, 'type')
    if (typeof name === 'string') pieces.push(endsOf(name))
    else gatherNames(memberOf(tool, 'functionDeclarations') ?? memberOf(tool, 'function_declarations'), pieces)
  }
}

import { hash } from 'node:crypto'
import { memberOf } from '../../catalogue/price.ts'
import type { Id } from '../../kernel/ids.ts'
import { continuationOf, endsOf, openingOf } from '../../protocols/opening.ts'
import type { ProtocolName } from '../../protocols/protocol.ts'

/** A conversation, by numbers that every process works out alike. */
export type Conversation = {
  /** By what the caller calls it, or else by how it begins. */
  readonly key: number
  /** By how it begins, also where the caller gives several conversations one name. */
  readonly opening: () => number
  /** By how it goes on too, where it does: many begin alike. */
  readonly continuation: () => number | undefined
}

type Said = {
  readonly accountId: Id
  readonly model: string
  readonly protocol: ProtocolName
  readonly body: unknown
  /** Those of `SESSION_HEADERS` that the request has. */
  readonly headers: Readonly<Record<string, string>>
  /** For whom a header says that the request is made. */
  readonly endUser: string | undefined
}

/** By which coding agents say that requests belong together, the first that is there counts: Claude Code, Codex, Amp, opencode and others. */
export const SESSION_HEADERS = [
  'x-claude-code-session-id',
  'session-id',
  'session_id',
  'x-amp-thread-id',
  'x-opencode-session',
  'x-session-affinity',
  'x-session-id',
] as const

/** Accounts never share a key, so that nobody can put a stranger's conversations anywhere. */
export function conversationOf(said: Said): Conversation {
  const { accountId, model, protocol, body } = said
  let known: number | undefined
  const opening = () => {
    known ??= digest(`${accountId}\nopening\n${model}\n${openingOf(protocol, body)}`)
    return known
  }
  const continuation = () => {
    const next = continuationOf(protocol, body)
    return next === undefined ? undefined : digest(`${opening()}\ncontinuation\n${next}`)
  }
  const name = nameIn(said)
  const key = name === undefined ? opening() : digest(`${accountId}\nname\n${endsOf(name)}`)
  return { key, opening, continuation }
}

function nameIn({ body, headers, endUser }: Said): string | undefined {
  const key = named(memberOf(body, 'prompt_cache_key'))
  if (key !== undefined) return key
  for (const header of SESSION_HEADERS) {
    const session = named(headers[header])
    if (session !== undefined) return session
  }
  return named(memberOf(body, 'metadata', 'user_id')) ?? named(endUser)
}

function named(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}

/** Of 13 hexadecimal digits, a number holds all exactly. */
const KEY_DIGITS = 13
/** How many keys there are. */
export const KEYS = 16 ** KEY_DIGITS

function digest(text: string): number {
  return Number.parseInt(hash('sha256', text).slice(0, KEY_DIGITS), 16)
}

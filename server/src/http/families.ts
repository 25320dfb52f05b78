import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Caller } from '../identity/caller.ts'
import type { FaultDialect } from './answer.ts'

/** Routes under one path that speak one protocol. */
export type Family = {
  /** A short word for metrics. */
  readonly name: string
  readonly prefix: string
  readonly dialect: FaultDialect
  /** What its routes take as a body; JSON where left out. */
  readonly bodies?: 'json' | 'form'
  /** The most that such a body may have, where it is less than what the listener takes. */
  readonly bodyBytes?: number
  /** Declares the routes; their paths are relative to the prefix. */
  readonly register: (scope: FastifyInstance, listener: ListenerState) => void | Promise<void>
}

/** What a route that takes long asks of its listener on the way. */
export type ListenerState = {
  /** Who calls, as it is known now: a key may have been revoked or changed meanwhile. Throws the fault that refuses it. */
  readonly callerNow: (request: FastifyRequest) => Promise<Caller>
  /** Whether the process is stopping: what runs comes to its end, and nothing further begins. */
  readonly isDraining: () => boolean
}

export type FamilyName = Pick<Family, 'name' | 'prefix' | 'dialect'>

/** Below base_url, the longer of two paths that begin alike first. The protocol of each is fixed. */
export const BASE_PATHS = [
  { name: 'data', prefix: '/apis/v1', dialect: 'data' },
  { name: 'messages', prefix: '/v1/messages', dialect: 'anthropic' },
  { name: 'gemini', prefix: '/v1beta', dialect: 'gemini' },
  { name: 'models', prefix: '/v1', dialect: 'openai' },
] as const satisfies readonly FamilyName[]

/** Of every listener. */
const HEALTH: readonly FamilyName[] = [
  { name: 'health', prefix: '/livez', dialect: 'data' },
  { name: 'health', prefix: '/readyz', dialect: 'data' },
]

/** Tells by its path which family a request belongs to, also one that no route will take. */
export function createFamilyFinder(
  families: readonly FamilyName[],
  { dialect, paths }: { readonly dialect: FaultDialect; readonly paths: readonly FamilyName[] },
): (url: string) => FamilyName {
  const none: FamilyName = { name: 'none', prefix: '', dialect }
  const registered = new Set(families.map(({ prefix }) => prefix))
  const all = [...families, ...paths.filter(({ prefix }) => !registered.has(prefix)), ...HEALTH].sort(
    (a, b) => b.prefix.length - a.prefix.length,
  )
  return (url) => {
    for (const family of all) if (isUnder(url, family.prefix)) return family
    return none
  }
}

function isUnder(url: string, prefix: string): boolean {
  if (!url.startsWith(prefix)) return false
  const next = url.charCodeAt(prefix.length)
  if (prefix.endsWith('/')) return true
  return Number.isNaN(next) || next === SLASH || next === QUESTION_MARK
}

const SLASH = 47
const QUESTION_MARK = 63

/** Two protocols have their list of models there. */
const SHARED_PREFIX = '/v1/models'

type Asked = { readonly url?: string | undefined; readonly headers: IncomingHttpHeaders }

/**
 * Where two protocols share a path, one of them always names its version; a program that asks for JSON at a page's address gets that.
 * Elsewhere the path decides, whatever a caller adds.
 */
export function dialectFor({ dialect }: Pick<FamilyName, 'dialect'>, { url = '', headers }: Asked): FaultDialect {
  if (dialect === 'html') return wantsJson(headers.accept) ? 'problem' : 'html'
  const isShared = dialect === 'openai' && isUnder(url, SHARED_PREFIX)
  return isShared && headers['anthropic-version'] !== undefined ? 'anthropic' : dialect
}

function wantsJson(accept = ''): boolean {
  return /\bjson\b/i.test(accept) && !/\bhtml\b/i.test(accept)
}

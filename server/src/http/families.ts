import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Dialect } from '../catalogue/operation.ts'

/** Routes under one path that speak one protocol. */
export type Family = {
  /** A short word for metrics. */
  readonly name: string
  readonly prefix: string
  readonly dialect: Dialect
  /** Declares the routes; their paths are relative to the prefix. */
  readonly register: (scope: FastifyInstance) => void | Promise<void>
}

export type FamilyName = Pick<Family, 'name' | 'prefix' | 'dialect'>

/** Below base_url, the longer of two paths that begin alike first. The protocol of each is fixed. */
export const BASE_PATHS = [
  { name: 'data', prefix: '/apis/v1', dialect: 'data' },
  { name: 'messages', prefix: '/v1/messages', dialect: 'anthropic' },
  { name: 'gemini', prefix: '/v1beta', dialect: 'gemini' },
  { name: 'models', prefix: '/v1', dialect: 'openai' },
] as const satisfies readonly FamilyName[]

/** Their protocols are known also where this process serves no routes there. */
const UNSERVED: readonly FamilyName[] = [
  ...BASE_PATHS.map((base) => ({ ...base, name: 'none' })),
  { name: 'health', prefix: '/livez', dialect: 'data' },
  { name: 'health', prefix: '/readyz', dialect: 'data' },
]

export const NO_FAMILY: FamilyName = { name: 'none', prefix: '', dialect: 'data' }

/** Tells by its path which family a request belongs to, also one that no route will take. */
export function createFamilyFinder(families: readonly FamilyName[]): (url: string) => FamilyName {
  const registered = new Set(families.map(({ prefix }) => prefix))
  const all = [...families, ...UNSERVED.filter(({ prefix }) => !registered.has(prefix))].sort(
    (a, b) => b.prefix.length - a.prefix.length,
  )
  return (url) => {
    for (const family of all) if (isUnder(url, family.prefix)) return family
    return NO_FAMILY
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

/** Where two protocols share a path, one of them always names its version. Elsewhere the path decides, whatever a caller adds. */
export function dialectFor({ dialect }: FamilyName, { url = '', headers }: Asked): Dialect {
  const isShared = dialect === 'openai' && isUnder(url, SHARED_PREFIX)
  return isShared && headers['anthropic-version'] !== undefined ? 'anthropic' : dialect
}

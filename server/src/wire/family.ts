import type { IncomingHttpHeaders } from 'node:http'
import type { FaultDialect } from './answer.ts'

/** What of a family of routes is known before a route is found: by it a refusal has its shape, and a metric its label. */
export type FamilyName = {
  /** A short word for metrics. */
  readonly name: string
  readonly prefix: string
  readonly dialect: FaultDialect
}

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

export function isUnder(url: string, prefix: string): boolean {
  if (!url.startsWith(prefix)) return false
  const next = url.charCodeAt(prefix.length)
  if (prefix.endsWith('/')) return true
  return Number.isNaN(next) || next === SLASH || next === QUESTION_MARK
}

const SLASH = 47
const QUESTION_MARK = 63

/** Two protocols have their list of models there. */
export const SHARED_PREFIX = '/v1/models'

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

import type { Wire } from './attempt.ts'
import { FREE_ROUTES, OPERATIONS } from './contract.ts'
import type { Names } from './options.ts'

/** Where a request goes, as the contract says it. */
export type Route = { readonly method: string; readonly path: string; readonly isTask: boolean }

/** Reads a line of the contract's tables: method, path, marks. */
export function routeOf(line: string): Route {
  const [method = '', path = '', marks = ''] = line.split(' ')
  return { method, path, isTask: marks.includes('t') }
}

/** Where the gateway is, and which words it has in its paths. */
export type Place = { readonly baseUrl: string; readonly names: Names }

/** Puts an input where it belongs: into the path, then into the query or the body. */
export function wireOf(
  { method, path }: Route,
  input: object,
  { baseUrl, names }: Place,
  headers: Readonly<Record<string, string>>,
): Wire {
  const rest = new Map(Object.entries(input).filter(([, value]) => value !== undefined))
  const filled = spell(path, names).replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = rest.get(name)
    if (typeof value !== 'string' || value === '') throw new TypeError(`${name} is missing.`)
    // An address leads elsewhere by it, and it is not encoded.
    if (value === '.' || value === '..') throw new TypeError(`${name} must not be "${value}".`)
    rest.delete(name)
    return encodeURIComponent(value)
  })
  if (method === 'POST' || method === 'PATCH') {
    const body = rest.size === 0 ? undefined : JSON.stringify(Object.fromEntries(rest))
    const type = body === undefined ? undefined : { 'content-type': 'application/json' }
    return { url: baseUrl + filled, method, headers: { ...headers, ...type }, body }
  }
  const query = new URLSearchParams()
  for (const [name, value] of rest) for (const one of [value].flat()) query.append(name, String(one))
  return { url: `${baseUrl}${filled}${rest.size > 0 ? `?${query}` : ''}`, method, headers, body: undefined }
}

/** The only one that is not in the contract's table: it gives nothing but streams, which are the SDKs'. */
const STREAM = 'POST /v1beta/models/{model}:streamGenerateContent'

/** What a request goes to. Whatever is no free route that the contract names can be charged. */
export type Aim = { readonly isPaid: boolean; readonly operation: string | undefined }

export function aimOf(method: string, url: string, { baseUrl, names }: Place): Aim {
  const { origin, pathname } = new URL(url)
  const place = origin + pathname
  const isAt = ([, line]: readonly [string, string]) => {
    const route = routeOf(line)
    return route.method === method && patternOf(baseUrl, spell(route.path, names)).test(place)
  }
  const isFree = Object.entries(FREE_ROUTES).some(isAt)
  const operations = [...Object.entries(OPERATIONS), ['stream_generate_content', STREAM] as const]
  return { isPaid: !isFree, operation: isFree ? undefined : operations.find(isAt)?.[0] }
}

/** Names of models have slashes, and ids have none. */
function patternOf(baseUrl: string, path: string): RegExp {
  const literal = (baseUrl + path).replace(/[.*+?^$()|[\]\\]/g, '\\$&')
  return new RegExp(`^${literal.replaceAll('{model}', '.+').replace(/\{\w+\}/g, '[^/]+')}$`)
}

/** The operator's own words for parts of paths. */
function spell(path: string, { provider: _, deep_research, ...words }: Names): string {
  const spelled = Object.entries(words).reduce((text, [word, own]) => text.replaceAll(word, own), path)
  return deep_research === undefined ? spelled : spelled.replace('deep-research/search', deep_research)
}

import { RATE_HEADERS } from '../limits/headers.ts'
import type { Exchange } from './exchange.ts'
import { idHeaders } from './send-whole.ts'

/** Adds what a browser asks for, and answers its preflight; says whether it did the latter. */
export type AnswerCors = (exchange: Pick<Exchange, 'id' | 'request' | 'response'>) => boolean

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const HEADER_NAMES = /^[A-Za-z0-9-]+( *, *[A-Za-z0-9-]+)*$/
const MAX_AGE_SECONDS = '600'
const EXPOSED = ['X-Request-ID', 'Retry-After', 'X-Should-Retry', ...RATE_HEADERS]

type Parts = {
  /** `https://app.example` each, or `*` for all; none turns it off. */
  readonly origins: readonly string[]
  readonly exposedHeaders: readonly string[]
}

export function createCors({ origins, exposedHeaders }: Parts): AnswerCors {
  if (origins.length === 0) return () => false
  const allowed = new Set(origins)
  const exposed = [...EXPOSED, ...exposedHeaders].join(', ')

  return ({ id, request: { method, headers }, response }) => {
    response.setHeader('vary', 'Origin')
    const { origin } = headers
    if (origin === undefined || !(allowed.has(origin) || allowed.has('*'))) return false
    // Callers bring their credential in a header of their own, so the mode with cookies is never allowed.
    response.setHeader('access-control-allow-origin', allowed.has(origin) ? origin : '*')
    if (method !== 'OPTIONS' || headers['access-control-request-method'] === undefined) {
      response.setHeader('access-control-expose-headers', exposed)
      return false
    }
    const asked = headers['access-control-request-headers'] ?? ''
    response.setHeader('access-control-allow-methods', METHODS)
    if (HEADER_NAMES.test(asked)) response.setHeader('access-control-allow-headers', asked)
    response.setHeader('access-control-max-age', MAX_AGE_SECONDS)
    response.writeHead(204, idHeaders(id)).end()
    return true
  }
}

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Fault, invalidRequest } from '../kernel/fault.ts'
import type { EdgeLimits } from './limits.ts'

/** Where two of these disagree, we and whoever stands before or behind us may each believe another one. */
const SINGLE_HEADERS: ReadonlySet<string> = new Set([
  'authorization',
  'x-api-key',
  'x-goog-api-key',
  'host',
  'content-length',
  'content-type',
  'content-encoding',
  'transfer-encoding',
  'expect',
  'idempotency-key',
  'anthropic-version',
])

const NOT_IN_A_TARGET = /[^!-~]|#/
const HOST = /^[A-Za-z0-9._~:[\]%-]{0,255}$/
const CONTINUE = '100-continue'

type Parts = { readonly limits: Pick<EdgeLimits, 'urlBytes' | 'headerCount'> }

/**
 * Says what is wrong with a request before anything of it is believed. The parser has refused broken syntax already;
 * this refuses what is valid but could mean two things to two readers.
 */
export function createHygiene({ limits }: Parts): (request: IncomingMessage) => Fault | undefined {
  return (request) => {
    const { headers, rawHeaders, httpVersion } = request
    if (httpVersion !== '1.1' && httpVersion !== '1.0')
      return invalidRequest('The HTTP version is not supported. Use HTTP/1.1.')
    if (rawHeaders.length > limits.headerCount * 2) return tooManyHeaders(limits.headerCount)
    // The names of a request without repeated headers are as many as its header lines; only others are looked through.
    if (Object.keys(headers).length * 2 !== rawHeaders.length) {
      const repeated = repeatedHeader(rawHeaders)
      if (repeated !== undefined) return invalidRequest(repeated)
    }
    return wrongTarget(request.url ?? '', limits.urlBytes) ?? wrongFraming(request) ?? wrongExpectation(headers)
  }
}

function tooManyHeaders(most: number): Fault {
  return new Fault('headers_too_large', { detail: `There are too many headers: the limit is ${most}. Send fewer.` })
}

function repeatedHeader(rawHeaders: readonly string[]): string | undefined {
  const seen = new Set<string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? ''
    if (name === '__proto__') return 'A header name is not allowed. Remove the header.'
    if (seen.has(name) && SINGLE_HEADERS.has(name)) return `The header "${name}" is repeated. Send it once.`
    seen.add(name)
  }
  return undefined
}

/** Only the plain form is taken: a path, perhaps with a query. The forms for proxies have no use here. */
function wrongTarget(url: string, urlBytes: number): Fault | undefined {
  if (url.length > urlBytes)
    return new Fault('uri_too_long', { detail: `The URL is too long: the limit is ${urlBytes} bytes. Shorten it.` })
  if (!url.startsWith('/') || NOT_IN_A_TARGET.test(url))
    return invalidRequest('The request target is not a valid path. Percent-encode special characters.')
  return undefined
}

function wrongFraming({ method, headers, httpVersion }: IncomingMessage): Fault | undefined {
  if (headers.host === undefined ? httpVersion === '1.1' : !HOST.test(headers.host)) {
    return invalidRequest('The Host header is missing or not valid. Send one.')
  }
  const encoding = headers['transfer-encoding']
  if (encoding !== undefined && (httpVersion === '1.0' || encoding.toLowerCase() !== 'chunked')) {
    return invalidRequest('The transfer encoding is not supported. Use chunked, or send Content-Length.')
  }
  if ((method === 'GET' || method === 'HEAD') && hasBody(headers))
    return invalidRequest(`A ${method} request must not have a body. Remove it.`)
  return undefined
}

function hasBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

function wrongExpectation({ expect }: IncomingHttpHeaders): Fault | undefined {
  return expect === undefined || expect.toLowerCase() === CONTINUE ? undefined : new Fault('expectation_failed')
}

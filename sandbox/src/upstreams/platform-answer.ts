import type { JsonObject } from '../json.ts'
import type { Header, Reply } from '../upstream.ts'

/** The forms in which the platform answers: OAuth's errors, problems of its interface, and pages for people. */

export const PROBLEM_TYPE = 'application/problem+json'

export function fine(body: JsonObject, headers: readonly Header[] = []): Reply {
  return { status: 200, body, tokens: null, isBilled: false, headers }
}

export function oauthError(status: number, error: string, description: string): Reply {
  return { status, body: { error, error_description: description }, tokens: null, isBilled: false }
}

export function problemBody(status: number, title: string, detail: string): JsonObject {
  return { title, type: 'about:blank', status, detail }
}

export function problem(status: number, title: string, detail: string, headers: readonly Header[] = []): Reply {
  const body = problemBody(status, title, detail)
  const content = { type: PROBLEM_TYPE, bytes: JSON.stringify(body) }
  return { status, body, tokens: null, isBilled: false, headers, content }
}

/** Nobody but the reader may see it, and it may load nothing. */
const PAGE_HEADERS: readonly Header[] = [
  ['cache-control', 'no-store'],
  ['content-security-policy', "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"],
  ['referrer-policy', 'no-referrer'],
]

export function page(status: number, html: string): Reply {
  const content = { type: 'text/html; charset=utf-8', bytes: html }
  return { status, body: {}, tokens: null, isBilled: false, headers: PAGE_HEADERS, content }
}

export function redirection(location: string): Reply {
  return { ...page(302, ''), headers: [...PAGE_HEADERS, ['location', location]] }
}

import { readOutline } from '../../protocols/json-outline.ts'
import type { Adapter, Incoming } from './adapter.ts'

/** What an upstream may say about its body. Everything else in its headers is about itself, or about us. */
const PASSED_ON = ['content-type', 'content-encoding', 'content-language']

/** Everything goes through as it came, in both directions: nothing is invented, renamed or dropped. */
export const passThrough: Adapter = {
  ask: ({ query, rawBody }) => ({ query, body: rawBody }),
  readLarge: (body) => readOutline(body),
  answer: ({ status, headers, body }) => ({ status, headers: passedOn(headers), body }),
}

export function passedOn(headers: Incoming['headers']): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const name of PASSED_ON) {
    const value = headers[name]
    if (value !== undefined) kept[name] = value
  }
  return kept
}

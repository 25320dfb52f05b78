import { isObject } from './json.ts'

/** `name` or `name=value`, as it stands after `sandbox:`. */
export type Written = string

const DIRECTIVE = /sandbox:([a-z][a-z0-9-]*(?:=[^\s,&]*)?)/g
const MARK = 'sandbox:'
const MOST = 16

/** The directives in the values of a query. */
export function directivesInQuery(query: string, parameters: URLSearchParams): Written[] {
  // Most requests have none, and the word survives every percent-encoding that clients use.
  return query.includes('sandbox') ? directivesIn(parameters.values()) : []
}

/** The directives in any text of a JSON body. */
export function directivesInBody(bytes: Buffer, body: unknown): Written[] {
  return bytes.includes(MARK) ? directivesIn(textsIn(body)) : []
}

function directivesIn(texts: Iterable<string>): Written[] {
  const found: Written[] = []
  for (const text of texts) {
    if (!text.includes(MARK)) continue
    for (const [, written] of text.matchAll(DIRECTIVE)) if (written !== undefined) found.push(written)
    if (found.length >= MOST) return found.slice(0, MOST)
  }
  return found
}

/** In the order in which they stand, since of two directives the later one counts. */
function* textsIn(json: unknown): Iterable<string> {
  const left = [json]
  while (left.length > 0) {
    const value = left.pop()
    if (typeof value === 'string') yield value
    else if (Array.isArray(value)) pushReversed(left, value)
    else if (isObject(value)) pushReversed(left, Object.values(value))
  }
}

function pushReversed(left: unknown[], items: readonly unknown[]): void {
  for (let at = items.length - 1; at >= 0; at -= 1) left.push(items[at])
}

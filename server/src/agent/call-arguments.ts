import { MODEL_IN_PATH, type Operation } from '../catalogue/operation.ts'
import { keyInUrl } from '../http/key-in-url.ts'
import { Fault, invalidRequest } from '../kernel/fault.ts'
import { DEFAULT_LIMITS } from '../wire/limits.ts'

/** What an agent gives an operation. */
export type Arguments = Readonly<Record<string, unknown>>

/** The same request as its HTTP caller would send it. */
export type Spelt = {
  readonly query: string
  readonly rawBody: Buffer | null
  readonly model?: string
}

/** Arguments as the query, the body and the path of the operation. */
export function spellArguments(operation: Operation, given: Arguments): Spelt {
  requireWhole(operation, given)
  if (operation.method === 'GET') return { query: fitForUrl(queryOf(given)), rawBody: null }
  if (!operation.path.includes(MODEL_IN_PATH)) return { query: '', rawBody: bytesOf(given) }
  const { model, ...rest } = given
  if (typeof model !== 'string' || model === '') throw invalidRequest('`model` is required: the name of a model.')
  fitForUrl(encodeURIComponent(model))
  return { query: '', rawBody: bytesOf(rest), model }
}

/** What becomes part of a URL is judged as the URL of an HTTP caller is. */
function fitForUrl(part: string): string {
  const most = DEFAULT_LIMITS.urlBytes
  if (part.length > most)
    throw new Fault('uri_too_long', {
      detail: `The arguments make a query of ${part.length} characters; the limit is ${most}. Shorten them.`,
    })
  if (keyInUrl(`?${part}`, 'problem') !== undefined)
    throw invalidRequest(
      'Credentials in the arguments of an operation are not accepted. Remove it, and replace a key that was in one.',
    )
  return part
}

const bytesOf = (value: unknown) => Buffer.from(JSON.stringify(value))

/** An answer of a tool comes whole. */
function requireWhole({ protocol }: Operation, { stream }: Arguments): void {
  if (protocol === undefined || stream === undefined || stream === null || stream === false) return
  throw invalidRequest('Tools do not stream. Leave out `stream`, or use the HTTP API.')
}

/** A list is a parameter that is given several times; null is one that is left out. */
function queryOf(given: Arguments): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(given))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== null && one !== undefined) query.append(name, textOf(name, one))
  return query.toString()
}

function textOf(name: string, value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  throw invalidRequest(`\`${name.slice(0, 100)}\` must be a text, a number, true or false, or a list of these.`)
}

import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { CALLS } from '../acceptance/installation.ts'
import type { createDeclared } from './declared.ts'
import { damaged, type Random, valueFor } from './generate.ts'

/** A request as it goes over the wire. */
export type Fuzzed = {
  readonly operationId: string
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body?: string
}

type Declared = ReturnType<typeof createDeclared>
type Members = Readonly<Record<string, unknown>>

type Described = { readonly path: string; readonly method: string; readonly operation: Members }

/** Requests of every operation of a contract in turn, whole ones and damaged ones. */
export function createFuzz({ document, resolved }: Pick<Declared, 'document' | 'resolved'>, random: Random) {
  const described: readonly Described[] = Object.entries(Object(document.paths)).flatMap(([path, methods]) =>
    Object.entries(Object(methods)).map(([method, operation]) => ({ path, method, operation: Object(operation) })),
  )
  const parts = { random, resolved }
  let turn = 0

  function next(): Fuzzed {
    const one = described[turn % described.length]
    turn += 1
    if (one === undefined) throw new Error('the contract has no operations')
    const whole = known(one) ?? generated(one)
    return random.chance(0.5) ? whole : spoilt(whole, random)
  }

  /** Which models there are, no contract says: one of the calls that work, with members that the contract has beside it. */
  function known({ operation }: Described): Fuzzed | undefined {
    const id = String(operation.operationId)
    const sold = catalogue.find(id)
    const make = CALLS[id]
    if (sold === undefined || make === undefined || random.chance(0.2)) return undefined
    const { path, body, headers = {} } = make('')
    const request = Object(Object(Object(operation.requestBody).content)['application/json']).schema
    const more = request === undefined || random.chance(0.5) ? {} : Object(valueFor(request, parts))
    return {
      operationId: id,
      method: sold.method,
      path,
      headers: { ...headersFor(operation, 0.1), ...headers },
      ...(body !== undefined && { body: JSON.stringify({ ...more, ...Object(body) }) }),
    }
  }

  function generated({ path, method, operation }: Described): Fuzzed {
    const parameters = listOf(operation.parameters)
    const query = new URLSearchParams()
    let place = path
    for (const { in: where, name, required, schema } of parameters) {
      const value = valueFor(schema, parts)
      if (where === 'path') place = place.replace(`{${name}}`, encodeURIComponent(pathValue(value)))
      if (where !== 'query' || !(required || random.chance(0.4))) continue
      if (Object(schema).type === 'object') query.set(random.pick(['count', 'offset', 'x y']), random.pick(['1', 'ü']))
      else query.set(String(name), String(value))
    }
    const [type, content] = Object.entries(Object(Object(operation.requestBody).content))[0] ?? []
    const body = content === undefined ? undefined : valueFor(Object(content).schema, parts)
    return {
      operationId: String(operation.operationId),
      method: method.toUpperCase(),
      path: query.size === 0 ? place : `${place}?${query}`,
      headers: { ...headersFor(operation, 0.15), ...(body !== undefined && { 'content-type': String(type) }) },
      ...(body !== undefined && {
        body: type === 'application/json' ? JSON.stringify(body) : String(new URLSearchParams({ token: 'x' })),
      }),
    }
  }

  const pathValue = (value: unknown) =>
    random.chance(0.5) ? String(value) : random.pick(['sandbox/text', '0190f000-0000-7000-8000-000000000000', 'x'])

  function headersFor(operation: Members, probability: number): Record<string, string> {
    const headers: Record<string, string> = {}
    for (const { in: where, name, required, schema } of listOf(operation.parameters)) {
      if (where !== 'header' || !(required || random.chance(probability))) continue
      headers[String(name).toLowerCase()] = headerFor(String(name).toLowerCase(), schema)
    }
    return headers
  }

  function headerFor(name: string, schema: unknown): string {
    if (name.endsWith('max-cost-usd')) return random.pick(['0', '0.000001', '1', '100'])
    if (name === 'idempotency-key') return `key-${random.below(1_000_000)}`
    if (name === 'anthropic-version') return '2023-06-01'
    const value = String(valueFor(schema, parts))
    return /^[!-~]+$/.test(value) ? value : 'x'
  }

  return { next, operations: described.length }
}

/** Something about it is wrong. */
function spoilt(whole: Fuzzed, random: Random): Fuzzed {
  const { body, headers, path } = whole
  const without = (name: string) => Object.fromEntries(Object.entries(headers).filter(([one]) => one !== name))
  switch (random.below(body === undefined ? 5 : 10)) {
    case 0:
      return { ...whole, path: `${path}${path.includes('?') ? '&' : '?'}${random.pick(QUERIES)}` }
    case 1:
      return { ...whole, headers: { ...headers, ...random.pick(HEADERS) } }
    case 2:
      return { ...whole, path: path.replace(/\/[^/?]*(\?|$)/, `/${random.pick(SEGMENTS)}$1`) }
    case 3:
      return { ...whole, headers: without(random.pick(Object.keys(headers).concat('none'))) }
    case 4:
      return { ...whole, method: random.pick(['GET', 'POST', 'DELETE', 'PUT', 'PATCH']) }
    case 5:
      return { ...whole, body: (body ?? '').slice(0, random.below((body ?? '').length + 1)) }
    case 6:
      return { ...whole, body: random.pick(BODIES) }
    default:
      return { ...whole, body: JSON.stringify(damaged(parsed(body), random)) }
  }
}

const QUERIES = [
  '%',
  'a=%ZZ',
  'a[]=1&a[]=2',
  'limit=0',
  'limit=101',
  'start_time=-1',
  'x='.padEnd(5_000, 'y'),
  'key=abc',
]
const HEADERS = [
  { 'content-type': 'text/plain' },
  { 'content-encoding': 'gzip' },
  { 'x-farebox-cost-mode': 'free' },
  { 'x-farebox-cost-mode': 'quote' },
  { 'x-farebox-max-cost-usd': '-1' },
  { 'x-farebox-max-cost-usd': '1e3' },
  { 'x-farebox-quote-id': 'a.b' },
  { 'idempotency-key': 'x'.repeat(300) },
  { authorization: 'Bearer nobody' },
  { authorization: 'Basic eDp5' },
  { accept: 'text/html' },
] as const
const SEGMENTS = ['%00', '%2e%2e', '', 'ü', 'x'.repeat(2_000), '%2F', ':generateContent', 'sandbox%2Ftext']
const BODIES = ['', '{', 'null', '[]', '"a"', '1', '{"a":1,"a":2}', '['.repeat(100), '\ufeff{}', '{"model":"\\ud800"}']

function parsed(body: string | undefined): unknown {
  try {
    return JSON.parse(body ?? '{}')
  } catch {
    return {}
  }
}

function listOf(value: unknown): readonly Members[] {
  return Array.isArray(value) ? value : []
}

import { createHash } from 'node:crypto'
import { createShownText, Exact, type Shown } from '../wording/shown-text.ts'
import { digestOf } from './request-digest.ts'

type Asked = {
  readonly operation: { readonly id: string }
  readonly model?: string
  readonly query: string
  readonly rawBody: Buffer | null
  readonly digest?: string | undefined
  readonly headers: (names: readonly string[]) => Readonly<Record<string, string>>
}

export type Canonical = {
  /** SHA-256 of what is asked for, however it is written. */
  readonly digest: Buffer
  /** For a person to read. Nothing is made of it before somebody has to. */
  readonly show: () => Shown
}

/**
 * What is larger is the same byte for byte. Whoever asks pays nothing for it, and could ask for as much as a body can hold, so no
 * more is read again than what is read in a moment.
 */
export const CANONICAL_BYTES = 32 * 1_024

/** Headers of the caller that upstreams see, and by which they do something else. */
const TOLD_UPSTREAM = ['anthropic-beta', 'anthropic-version', 'openai-beta']

/** What makes two calls the same to a person who has read one of them: members may stand in another order and be spaced otherwise. */
export function canonicalOf(asked: Asked): Canonical {
  const { operation, model = '', query, rawBody } = asked
  const told = Object.entries(asked.headers(TOLD_UPSTREAM)).sort(byName)
  // As they were sent: two that are read alike may be two to an upstream.
  const parameters = query === '' ? [] : query.split('&').map(nameAndValue).sort(byName)
  const isSmall = rawBody !== null && rawBody.length <= CANONICAL_BYTES
  const body = isSmall && rawBody.length > 0 ? exactly(rawBody.toString('utf8')) : null
  const bytes = rawBody === null || isSmall ? '' : digestOf(asked)
  const hash = createHash('sha256')
  for (const part of [operation.id, model, JSON.stringify(parameters), JSON.stringify(told), sorted(body), bytes])
    hash.update(`${part.length}\n${part}\n`)
  return {
    digest: hash.digest(),
    show() {
      const shown = createShownText()
      if (model !== '') shown.value({ model })
      if (parameters.length > 0) shown.value(grouped(parameters.map(decoded)))
      if (told.length > 0) shown.value({ headers: Object.fromEntries(told) })
      if (body !== null) shown.value(body)
      else if (rawBody !== null && !isSmall) shown.beginning(rawBody)
      return shown.end()
    },
  }
}

type Parameter = readonly [name: string, value: string]

/** Those of one name keep their order, which may mean something. */
function byName([one]: Parameter, [other]: Parameter): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}

/** The equals sign stays with the value: without one, it is something else. */
function nameAndValue(text: string): Parameter {
  const at = text.indexOf('=')
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at)]
}

function decoded([name, value]: Parameter): Parameter {
  return [readable(name), readable(value.slice(1))]
}

function readable(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return text
  }
}

function grouped(parameters: readonly Parameter[]): Readonly<Record<string, string | string[]>> {
  const values = new Map<string, string[]>()
  for (const [name, value] of parameters) {
    const known = values.get(name)
    if (known === undefined) values.set(name, [value])
    else known.push(value)
  }
  return Object.fromEntries(
    [...values].map(([name, [one = '', ...more]]) => [name, more.length === 0 ? one : [one, ...more]]),
  )
}

type Read = (key: string, value: unknown, context?: { readonly source?: string }) => unknown

/** JSON whose numbers are as they are written. */
function exactly(text: string): unknown {
  const read: Read = (_, value, context) =>
    typeof value === 'number' ? new Exact(context?.source ?? String(value)) : value
  return JSON.parse(text, read)
}

/** JSON with the members of every object in the order of their names. */
function sorted(value: unknown): string {
  if (value instanceof Exact) return value.text
  if (Array.isArray(value)) return `[${value.map(sorted).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${sorted(member)}`).join()}}`
}

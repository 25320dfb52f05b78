import { type Html, html } from '../../kernel/html.ts'
import { words } from './words.ts'

/** A schema as a contract has it. */
export type Schema = Readonly<Record<string, unknown>>

export type Resolve = (schema: Schema) => Schema

const DEPTH_MOST = 4
const CHOICES_SHOWN = 8

/** How much of a tree is shown. */
export type Extent = {
  /** How far members are shown within members: what lies deeper is named by its type alone. */
  readonly depth: number
  /** Whether what is refused is shown too, each with its reason: it would be most of some trees. */
  readonly hasRefused: boolean
}

const WHOLE: Extent = { depth: DEPTH_MOST, hasRefused: true }

/** The members of a value, hanging on the line of what holds them, required ones first; nothing where its schema names none. */
export function schemaTree(
  schema: Schema,
  resolve: Resolve,
  extent: Extent = WHOLE,
  within: readonly string[] = [],
): Html | undefined {
  const found = objectIn(schema, resolve, within)
  if (found === undefined || extent.depth < 1) return undefined
  const required = new Set(Array.isArray(found.schema.required) ? found.schema.required : [])
  const members = Object.entries(asSchema(found.schema.properties)).map(([name, member]) => ({
    name,
    isRequired: required.has(name),
    ...shownMember(asSchema(member), resolve),
  }))
  const taken = members.filter(({ isRefused }) => !isRefused)
  const refused = extent.hasRefused ? members.filter(({ isRefused }) => isRefused) : []
  const ordered = [...taken.filter(({ isRequired }) => isRequired), ...taken.filter(({ isRequired }) => !isRequired)]
  const inner = { ...extent, depth: extent.depth - 1 }
  const item = ({ name, type, say, isRequired, schema: own }: (typeof members)[number]) =>
    html`<li><div><code>${name}</code>${type === '' ? undefined : html`<span class="t">${type}</span>`}${isRequired ? html`<span class="r">required</span>` : undefined}${say === '' ? undefined : html`<p>${words(say)}</p>`}</div>${schemaTree(own, resolve, inner, found.within)}</li>`
  return html`<ul class="fb-tree">${ordered.map(item)}${refused.map(({ name, say }) => html`<li><div><code>${name}</code><span class="t">refused</span>${say === '' ? undefined : html`<p>${words(say)}</p>`}</div></li>`)}</ul>`
}

type Found = { readonly schema: Schema; readonly within: readonly string[] }

/** The object that a schema is of: itself, the items of a list, or the first of several that has members. A circle ends it. */
function objectIn(schema: Schema, resolve: Resolve, within: readonly string[]): Found | undefined {
  const { $ref: reference } = schema
  if (typeof reference === 'string') {
    if (within.includes(reference)) return undefined
    return objectIn(resolve(schema), resolve, [...within, reference])
  }
  if (isSchema(schema.properties)) return { schema, within }
  if (isSchema(schema.items)) return objectIn(schema.items, resolve, within)
  for (const one of choicesIn(schema)) {
    const found = objectIn(one, resolve, within)
    if (found !== undefined) return found
  }
  return undefined
}

function choicesIn({ anyOf, oneOf, allOf }: Schema): readonly Schema[] {
  return [anyOf, oneOf, allOf].flatMap((some) => (Array.isArray(some) ? some.filter(isSchema) : []))
}

function shownMember(schema: Schema, resolve: Resolve) {
  const { description } = schema
  const text = typeof description === 'string' ? description : ''
  const isRefused = isSchema(schema.not) && Object.keys(schema.not).length === 0
  return { schema, isRefused, type: typeOf(schema, resolve), say: isRefused ? text.replace(/^Refused: /, '') : text }
}

/** In words: what it is, and within which bounds. */
export function typeOf(schema: Schema, resolve: Resolve, depth = 0): string {
  if (depth > DEPTH_MOST) return 'object'
  if (typeof schema.$ref === 'string') return typeOf(resolve(schema), resolve, depth + 1)
  if (Array.isArray(schema.enum)) return choices(schema.enum)
  const type = Array.isArray(schema.type) ? schema.type.find((one) => one !== 'null') : schema.type
  if (type === 'array') return listOf(schema, resolve, depth)
  if (typeof type === 'string') return [TYPES[type] ?? type, boundsOf(schema)].filter((part) => part !== '').join(', ')
  const several = [...new Set(choicesIn(schema).map((one) => typeOf(one, resolve, depth + 1)))].filter(
    (one) => one !== '',
  )
  return several.length > 3 ? 'one of several' : several.join(' or ')
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'text',
  integer: 'whole number',
  number: 'number',
  boolean: 'true or false',
  object: 'object',
}

function choices(values: readonly unknown[]): string {
  const given = values.filter((value) => value !== null).map(String)
  return given.length > CHOICES_SHOWN ? `one of ${given.length} words` : given.join(', ')
}

function listOf(schema: Schema, resolve: Resolve, depth: number): string {
  const items = isSchema(schema.items) ? typeOf(schema.items, resolve, depth + 1) : ''
  const of = items === '' ? 'list' : `list of ${items}`
  const bounds = [range(schema.minItems, schema.maxItems, 'items')].filter((part) => part !== '')
  return [of, ...bounds].join(', ')
}

function boundsOf(schema: Schema): string {
  const { minimum, exclusiveMinimum, maximum, maxLength } = schema
  // Of two dialects: one has the bound there, the other says that `minimum` is beyond it.
  const beyond =
    typeof exclusiveMinimum === 'number' ? exclusiveMinimum : exclusiveMinimum === true ? minimum : undefined
  const least = beyond === undefined ? minimum : `above ${beyond}`
  const most = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum
  return [range(least, most, ''), range(undefined, maxLength, 'characters')].filter((part) => part !== '').join(', ')
}

function range(least: unknown, most: unknown, unit: string): string {
  const end = unit === '' ? '' : ` ${unit}`
  if (least !== undefined && most !== undefined) return `${least} to ${most}${end}`
  if (most !== undefined) return `at most ${most}${end}`
  if (typeof least === 'string') return `${least}${end}`
  return least === undefined ? '' : `at least ${least}${end}`
}

export function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function asSchema(value: unknown): Schema {
  return isSchema(value) ? value : {}
}

import type { JsonSchema } from '../catalogue/member-table.ts'

/** Where a schema of its own is put, by the name that it has below $defs; answers the name in the document. */
export type Place = (name: string) => string

/**
 * A JSON Schema 2020-12 as OpenAPI 3.0.3 writes it: one type and `nullable` in place of lists of types, no `const`, no keywords beside a
 * $ref, bounds that are exclusive by a flag. What 3.0.3 has no words for is left out, so that what is written takes at least as much.
 */
export function toOpenapi(schema: unknown, place: Place): JsonSchema {
  if (schema === true || schema === undefined) return {}
  if (schema === false) return { not: {} }
  const { $ref, $schema, $defs, ...rest } = asObject(schema)
  if ($ref === undefined) return withoutUnknown(rest, place)
  const ref = { $ref: `#/components/schemas/${place(String($ref).replace('#/$defs/', ''))}` }
  const beside = withoutUnknown(rest, place)
  return Object.keys(beside).length === 0 ? ref : { ...beside, allOf: [ref, ...listOf(beside.allOf)] }
}

/** Those that mean the same in both. */
const KEPT: ReadonlySet<string> = new Set([
  ...['title', 'description', 'default', 'format', 'pattern', 'minLength', 'maxLength', 'minimum', 'maximum'],
  ...['minItems', 'maxItems', 'minProperties', 'maxProperties', 'uniqueItems', 'multipleOf', 'readOnly', 'deprecated'],
])
/** A schema too: of what the events of a stream have. */
const FRAME = 'x-frame'
/** They say more about the names of an object than 3.0.3 can. */
const LEFT_OUT: ReadonlySet<string> = new Set(['propertyNames', '$id', '$comment', 'id', 'contentEncoding'])

function withoutUnknown(schema: JsonSchema, place: Place): JsonSchema {
  const { type, const: only, enum: values, exclusiveMinimum, exclusiveMaximum, ...others } = schema
  const own: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(others)) {
    if (KEPT.has(name) || (name.startsWith('x-') && name !== FRAME)) own[name] = value
    else if (!LEFT_OUT.has(name)) own[name] = nested(name, value, place)
  }
  // One of them takes anything, and so do all together.
  if (listOf(own.anyOf).some((one) => Object.keys(asObject(one)).length === 0)) delete own.anyOf
  if (exclusiveMinimum !== undefined) Object.assign(own, { minimum: exclusiveMinimum, exclusiveMinimum: true })
  if (exclusiveMaximum !== undefined) Object.assign(own, { maximum: exclusiveMaximum, exclusiveMaximum: true })
  return typed(own, typesOf(type), only === undefined ? values : [only])
}

function nested(name: string, value: unknown, place: Place): unknown {
  switch (name) {
    case 'properties':
      return Object.fromEntries(Object.entries(asObject(value)).map(([key, one]) => [key, toOpenapi(one, place)]))
    case 'items':
    case 'not':
    case FRAME:
      return toOpenapi(value, place)
    case 'additionalProperties':
      return typeof value === 'boolean' ? value : toOpenapi(value, place)
    case 'required':
      return [...listOf(value)].map(String).sort()
    case 'anyOf':
    case 'oneOf':
    case 'allOf':
      return listOf(value).map((one) => toOpenapi(one, place))
    default:
      throw new Error(`OpenAPI 3.0.3 has no keyword ${name}`)
  }
}

function typed(own: JsonSchema, types: readonly string[], values: unknown): JsonSchema {
  const allowed = values === undefined ? undefined : listOf(values)
  const isNullable = types.includes('null') || (types.length === 0 && allowed?.includes(null) === true)
  const named = types.filter((type) => type !== 'null')
  const known = named.length > 0 || allowed === undefined ? named : [...new Set(allowed.flatMap(typeOfValue))]
  const [first, ...others] = known
  // Null by itself is a text that can only be null.
  if (first === undefined && isNullable) return { ...own, type: 'string', enum: [null], nullable: true }
  if (first === undefined) return own
  if (others.length > 0) return { ...own, anyOf: known.map((type) => ofType(type, isNullable, allowed)) }
  return { ...own, ...ofType(first, isNullable, allowed, own) }
}

function ofType(type: string, isNullable: boolean, allowed?: readonly unknown[], own: JsonSchema = {}): JsonSchema {
  const fitting = allowed?.filter((value) => value === null || typeOfValue(value).includes(type))
  return {
    type,
    ...(fitting !== undefined && { enum: isNullable ? [...new Set([...fitting, null])] : fitting }),
    ...(isNullable && { nullable: true }),
    // A list always says of what.
    ...(type === 'array' && own.items === undefined && { items: {} }),
  }
}

function typeOfValue(value: unknown): readonly string[] {
  if (value === null) return []
  if (Number.isInteger(value)) return ['integer']
  return Array.isArray(value) ? ['array'] : [typeof value]
}

function typesOf(type: unknown): readonly string[] {
  return type === undefined ? [] : listOf(type).map(String)
}

function listOf(value: unknown): readonly unknown[] {
  if (value === undefined) return []
  return Array.isArray(value) ? value : [value]
}

function asObject(value: unknown): JsonSchema {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  throw new Error('this is no JSON Schema')
}

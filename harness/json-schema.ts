/**
 * As much of JSON Schema 2020-12 as our own schemas use. A keyword that it does not know, or one in a form that the standard does not
 * have, is an error: so whatever passes here is a schema.
 */
export type Schema = boolean | { readonly [keyword: string]: unknown }

/** Where a value breaks a schema, and by which keyword; undefined where it does not. */
export function breachOf(value: unknown, root: Schema): string | undefined {
  return breach(value, root, { root, path: '' })
}

type At = { readonly root: Schema; readonly path: string }
type Check = (value: unknown, keyword: unknown, at: At, schema: { readonly [keyword: string]: unknown }) => boolean

function breach(value: unknown, schema: Schema, at: At): string | undefined {
  if (schema === true) return undefined
  if (schema === false) return `${at.path}: false`
  for (const [name, keyword] of Object.entries(schema)) {
    const check = CHECKS[name]
    if (check === undefined) throw new Error(`${at.path}: there is no keyword ${name}`)
    if (!check(value, keyword, at, schema)) return `${at.path}: ${name} ${JSON.stringify(keyword)?.slice(0, 200)}`
  }
  return undefined
}

const fits = (value: unknown, schema: unknown, at: At, step = '') =>
  breach(value, asSchema(schema), { ...at, path: at.path + step }) === undefined

const told: Check = (_, keyword) => must(typeof keyword === 'string')

const CHECKS: Readonly<Record<string, Check>> = {
  $schema: (_, keyword) => must(keyword === 'https://json-schema.org/draft/2020-12/schema'),
  $defs: (_, keyword) => Object.values(asObject(keyword)).every((one) => asSchema(one) !== undefined),
  title: told,
  description: told,
  default: () => true,
  format: told,
  $ref: (value, keyword, at) => fits(value, resolve(at.root, asText(keyword)), at),
  type: (value, keyword) => asTexts(keyword).some((type) => isOfType(value, type)),
  const: (value, keyword) => value === keyword,
  enum: (value, keyword) => asList(keyword).includes(value),
  pattern: (value, keyword) => typeof value !== 'string' || new RegExp(asText(keyword), 'u').test(value),
  minLength: (value, keyword) => typeof value !== 'string' || [...value].length >= asNumber(keyword),
  maxLength: (value, keyword) => typeof value !== 'string' || [...value].length <= asNumber(keyword),
  minimum: (value, keyword) => typeof value !== 'number' || value >= asNumber(keyword),
  maximum: (value, keyword) => typeof value !== 'number' || value <= asNumber(keyword),
  exclusiveMinimum: (value, keyword) => typeof value !== 'number' || value > asNumber(keyword),
  minItems: (value, keyword) => !Array.isArray(value) || value.length >= asNumber(keyword),
  maxItems: (value, keyword) => !Array.isArray(value) || value.length <= asNumber(keyword),
  items: (value, keyword, at) =>
    !Array.isArray(value) || value.every((item, place) => fits(item, keyword, at, `[${place}]`)),
  required: (value, keyword) =>
    !isObject(value) || asTexts(asList(keyword)).every((name) => Object.hasOwn(value, name)),
  properties: (value, keyword, at) => {
    const schemas = asObject(keyword)
    return (
      !isObject(value) ||
      Object.entries(value).every(
        ([name, member]) => !Object.hasOwn(schemas, name) || fits(member, schemas[name], at, `.${name}`),
      )
    )
  },
  additionalProperties: (value, keyword, at, { properties = {} }) =>
    !isObject(value) ||
    Object.entries(value).every(
      ([name, member]) => Object.hasOwn(asObject(properties), name) || fits(member, keyword, at, `.${name}`),
    ),
  anyOf: (value, keyword, at) => asList(keyword).some((one) => fits(value, one, at)),
  oneOf: (value, keyword, at) => asList(keyword).filter((one) => fits(value, one, at)).length === 1,
  allOf: (value, keyword, at) => asList(keyword).every((one) => fits(value, one, at)),
  not: (value, keyword, at) => !fits(value, keyword, at),
}

function resolve(root: Schema, ref: string): unknown {
  const [, name] = /^#\/\$defs\/([A-Za-z0-9_]+)$/.exec(ref) ?? []
  const definitions = asObject(asObject(root).$defs)
  must(name !== undefined && Object.hasOwn(definitions, name))
  return definitions[name ?? '']
}

function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isObject(value)
    case 'integer':
      return Number.isInteger(value)
    default:
      must(['string', 'number', 'boolean'].includes(type))
      return typeof value === type
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function must(isSo: boolean): true {
  if (!isSo) throw new Error('this is no JSON Schema')
  return true
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  if (isObject(value)) return value
  throw new Error('this is no JSON Schema: an object is missing')
}

function asSchema(value: unknown): Schema {
  return typeof value === 'boolean' ? value : asObject(value)
}

function asList(value: unknown): readonly unknown[] {
  must(Array.isArray(value) && value.length > 0)
  return Array.isArray(value) ? value : []
}

function asText(value: unknown): string {
  must(typeof value === 'string')
  return String(value)
}

const asTexts = (value: unknown): readonly string[] => (Array.isArray(value) ? value : [value]).map(asText)

function asNumber(value: unknown): number {
  must(typeof value === 'number')
  return Number(value)
}

/** Every schema within a schema, wherever it stands, whatever is validated. */
export function schemasIn(schema: unknown): readonly Readonly<Record<string, unknown>>[] {
  if (!isObject(schema)) return []
  const maps = ['properties', '$defs'].flatMap((name) => Object.values(asObject(schema[name] ?? {})))
  const lists = ['anyOf', 'oneOf', 'allOf'].flatMap((name) => (schema[name] === undefined ? [] : asList(schema[name])))
  const single = ['items', 'not', 'additionalProperties'].map((name) => schema[name])
  return [schema, ...[...maps, ...lists, ...single].flatMap(schemasIn)]
}

/** Throws where a schema has what is no JSON Schema, also where no value would meet it. */
export function requireSchema(root: Schema): void {
  for (const schema of schemasIn(root))
    for (const [name, keyword] of Object.entries(schema)) {
      const check = CHECKS[name]
      if (check === undefined) throw new Error(`there is no keyword ${name}`)
      if (name === '$ref') resolve(root, asText(keyword))
      // One of each type, so that whichever it is for is looked at.
      else for (const value of ['', 0, true, null, [], {}]) check(value, keyword, { root, path: '' }, schema)
    }
}

import type { JsonSchema } from '../catalogue/member-table.ts'
import { canonicalBytes } from './canonical.ts'
import type { HeaderWords } from './route.ts'
import { toOpenapi } from './to-openapi.ts'

/** Puts a schema among those of the document, under a name of its operation; answers a reference to it. */
export type SchemaPlace = {
  (name: string, schema: JsonSchema): JsonSchema
  /** The same for one that stands where it is used. */
  readonly inline: (schema: JsonSchema) => JsonSchema
}

/** A definition whose name begins so is the same wherever it is used; others belong to their operation. */
const SHARED = /^[A-Z]/

/** What a document says once, and refers to. */
export function createComponents() {
  const schemas: Record<string, JsonSchema> = {}
  const responses: Record<string, JsonSchema> = {}
  const headers: Record<string, JsonSchema> = {}
  /** What each schema was made from. Most are put again and again, by routes that share one. */
  const sources = new Map<string, unknown>()

  /** A name belongs to one schema: another under the same name would be read as the first. */
  function put(name: string, source: unknown, make: () => JsonSchema): JsonSchema {
    const reference = { $ref: `#/components/schemas/${name}` }
    if (sources.has(name) && sources.get(name) === source) return reference
    const schema = make()
    const there = schemas[name]
    if (there !== undefined && !canonicalBytes(there).equals(canonicalBytes(schema)))
      throw new Error(`two schemas are called ${name}`)
    schemas[name] = schema
    sources.set(name, source)
    return reference
  }

  function placeFor(operationId: string): SchemaPlace {
    const nameOf = (definition: string) => (SHARED.test(definition) ? definition : `${operationId}.${definition}`)
    const converted = (schema: JsonSchema): JsonSchema => {
      for (const [name, definition] of Object.entries(Object(schema.$defs)))
        put(nameOf(name), definition, () => toOpenapi(withoutId(definition), nameOf))
      return toOpenapi(schema, nameOf)
    }
    const place = (name: string, schema: JsonSchema) => {
      const whole = converted(schema)
      // What is nothing but a reference, or says nothing, needs no name.
      if (whole.$ref !== undefined || Object.keys(whole).length === 0) return whole
      return put(`${operationId}.${name}`, schema, () => whole)
    }
    return Object.assign(place, { inline: converted })
  }

  return {
    placeFor,
    shared: (name: string, schema: JsonSchema) => put(name, schema, () => toOpenapi(schema, (one) => one)),

    response(name: string, make: () => JsonSchema): JsonSchema {
      responses[name] ??= make()
      return { $ref: `#/components/responses/${name}` }
    },

    headers(names: readonly string[], words: Readonly<Record<string, HeaderWords>>): JsonSchema {
      for (const name of names) {
        if (headers[name] !== undefined) continue
        const { description, schema } = words[name] ?? unknown(name)
        headers[name] = { description, schema: toOpenapi(schema, (one) => one) }
      }
      return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
    },

    all: () => ({ schemas, responses, headers }),
  }
}

function withoutId(schema: unknown): JsonSchema {
  const { id, ...rest } = Object(schema)
  return rest
}

function unknown(header: string): never {
  throw new Error(`the header ${header} is described nowhere`)
}

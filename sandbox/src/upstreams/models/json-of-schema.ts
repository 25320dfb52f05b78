import { isObject, type JsonObject } from '../../json.ts'
import type { Random } from '../../random.ts'

const DEPTH_LIMIT = 4
const PROPERTIES_LIMIT = 64

/** An object that has the properties of a JSON schema, each of a kind that the schema allows. */
export function objectOfSchema(schema: unknown, random: Random, depth = 0): JsonObject {
  const properties = isObject(schema) && isObject(schema.properties) ? schema.properties : {}
  const made: JsonObject = {}
  // As a property of its own even where its name is __proto__.
  for (const [name, property] of Object.entries(properties).slice(0, PROPERTIES_LIMIT))
    Object.defineProperty(made, name, {
      value: valueOfSchema(property, random, depth + 1),
      enumerable: true,
      configurable: true,
      writable: true,
    })
  return made
}

function valueOfSchema(schema: unknown, random: Random, depth: number): unknown {
  if (!isObject(schema) || depth > DEPTH_LIMIT) return random.hex(6)
  if ('const' in schema) return schema.const
  const choices = [schema.enum, schema.anyOf, schema.oneOf]
  if (Array.isArray(choices[0])) return choices[0][0]
  for (const among of choices.slice(1)) if (Array.isArray(among)) return valueOfSchema(among[0], random, depth + 1)
  return valueOfType(Array.isArray(schema.type) ? schema.type[0] : schema.type, schema, random, depth)
}

function valueOfType(type: unknown, schema: JsonObject, random: Random, depth: number): unknown {
  if (type === 'integer') return random.between(1, 100)
  if (type === 'number') return random.decimal(1, 100, 2)
  if (type === 'boolean') return random.chance(0.5)
  if (type === 'null') return null
  if (type === 'array') return [valueOfSchema(schema.items, random, depth + 1)]
  if (type === 'object' || isObject(schema.properties)) return objectOfSchema(schema, random, depth)
  return random.hex(6)
}

/** The JSON of a value from outside; nothing where it is nested so deep that it can't be written. */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? ''
  } catch {
    return ''
  }
}

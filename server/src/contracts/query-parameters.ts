import { z } from 'zod'
import type { JsonSchema } from '../catalogue/member-table.ts'
import type { ContractParameter } from './route.ts'
import { schemaOf } from './schema-of.ts'

const objectForm = z.looseObject({
  properties: z.record(z.string(), z.looseObject({})).default({}),
  required: z.array(z.string()).default([]),
})

/** The parameters of a query, by the schema that it is parsed with. */
export function queryParameters(type: z.ZodType): readonly ContractParameter[] {
  return parametersOf(schemaOf(type, 'input'), '')
}

/** Each member of an object as a parameter; what it says of itself, else some other words. */
export function parametersOf(schema: JsonSchema, otherwise: string): readonly ContractParameter[] {
  const { properties, required } = objectForm.parse(schema)
  return Object.entries(properties).map(([name, { description = otherwise, default: given, ...own }]) => ({
    in: 'query',
    name,
    description: String(description),
    required: required.includes(name),
    // A query is parsed from texts, and described by what they mean.
    schema: { ...own, ...(given !== undefined && { default: own.type === 'integer' ? Number(given) : given }) },
  }))
}

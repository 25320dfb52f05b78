import { z } from 'zod'
import type { JsonSchema } from '../catalogue/member-table.ts'

/** What a schema of ours gives, as a JSON Schema. Transformations have none, and belong on the side of what is taken. */
export function schemaOf(type: z.ZodType, io: 'input' | 'output' = 'output'): JsonSchema {
  const { $schema, ...schema } = z.toJSONSchema(type, { io, unrepresentable: 'any' })
  return withoutBounds(schema)
}

/** Every integer is bounded by what JavaScript holds exactly, which says nothing. */
function withoutBounds(value: unknown): JsonSchema {
  return JSON.parse(JSON.stringify(value), (name, member: unknown) => {
    if ((name === 'maximum' || name === 'minimum') && Math.abs(Number(member)) === Number.MAX_SAFE_INTEGER)
      return undefined
    return member
  })
}

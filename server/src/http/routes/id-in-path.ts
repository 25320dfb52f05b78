import type { ContractParameter } from '../../contracts/route.ts'

/** A parameter that a path ends with, for its contract. */
export function idInPath(description: string, name = 'id'): ContractParameter {
  return { in: 'path', name, description, schema: { type: 'string', minLength: 1 } }
}

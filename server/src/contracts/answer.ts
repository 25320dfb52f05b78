import type { z } from 'zod'
import { RATE_HEADERS } from '../limits/headers.ts'
import type { ContractAnswer } from './route.ts'
import { schemaOf } from './schema-of.ts'

/** An answer in JSON to a request that counts against the limits of its key. */
export function answer(description: string, body: z.ZodType, headers: readonly string[] = []): ContractAnswer {
  return {
    description,
    headers: [...headers, ...RATE_HEADERS],
    content: { 'application/json': schemaOf(body) },
  }
}

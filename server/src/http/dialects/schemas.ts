import { z } from 'zod'
import type { ContractInput } from '../../contracts/document.ts'
import { schemaOf } from '../../contracts/schema-of.ts'

/** How refusals of ours look, by dialect, for contracts. Each is what its renderer beside this file gives. */

const requestId = z.string().meta({ description: 'As in X-Request-ID.' })
const code = z.string().meta({ description: 'One of ours; codes are never renamed.' })
const message = z.string().meta({ description: 'What happened, and what to do.' })
const fix_url = z.url().optional().meta({
  description: 'Of 402, 403 and 429: a page of the website where it is mended.',
})

const openai = z.looseObject({
  error: z.looseObject({ message, type: z.string(), code, param: z.string().nullable(), fix_url }),
  request_id: requestId,
})

const anthropic = z.looseObject({
  type: z.literal('error'),
  error: z.looseObject({ type: z.string(), message, code, details: z.looseObject({ error_code: code, fix_url }) }),
  request_id: requestId,
})

const gemini = z.looseObject({
  error: z.looseObject({
    code: z.int().meta({ description: 'The status.' }),
    message,
    type: z.string(),
    status: z.string(),
    details: z.array(
      z.looseObject({ '@type': z.string(), reason: code.optional(), metadata: z.looseObject({ fix_url }).optional() }),
    ),
  }),
  request_id: requestId,
})

const data = z.looseObject({
  error: z.looseObject({ code, message, type: z.string(), fix_url }),
  request_id: requestId,
})

const plain = z.strictObject({ error: message })

const problem = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: message,
  code,
  fix_url,
  request_id: requestId,
})

const JSON_TYPE = 'application/json'

export const refusalSchemas = (): ContractInput['refusals'] => ({
  openai: { type: JSON_TYPE, schema: schemaOf(openai) },
  anthropic: { type: JSON_TYPE, schema: schemaOf(anthropic) },
  gemini: { type: JSON_TYPE, schema: schemaOf(gemini) },
  data: { type: JSON_TYPE, schema: schemaOf(data) },
  plain: { type: JSON_TYPE, schema: schemaOf(plain) },
  problem: { type: 'application/problem+json', schema: schemaOf(problem) },
  // People get a page, and programs that ask for JSON get that.
  page: { type: 'application/problem+json', schema: schemaOf(problem), page: 'text/html' },
  // Two protocols share a path.
  openai_or_anthropic: { type: JSON_TYPE, schema: schemaOf(z.union([openai, anthropic])) },
})

import { readFileSync, statSync } from 'node:fs'
import { z } from 'zod'
import { kind } from './described.ts'

/** What clients say of themselves, which an operator brings along for hosts that can't be reached: docs/oauth.md. */

const MOST_BYTES = 262_144
const MOST = 100
const BOUNDS = `a JSON list of at most ${MOST} documents, each with client_id (its https URL), client_name and redirect_uris, of at most ${MOST_BYTES} bytes`

const document = z.object({
  client_id: z.url({ protocol: /^https$/ }).max(2_048),
  client_name: z.string().min(1).max(200),
  redirect_uris: z.array(z.url().max(2_048)).min(1).max(20),
})

const file = z
  .string()
  .min(1)
  .max(4_096)
  .transform((name, context) => {
    const problem = (message: string) => {
      context.addIssue({ code: 'custom', message: `${message}: give ${BOUNDS}` })
      return z.NEVER
    }
    try {
      if (statSync(name).size > MOST_BYTES) return problem('is too large')
      const read = z
        .array(document)
        .max(MOST)
        .safeParse(JSON.parse(readFileSync(name, 'utf8')))
      return read.success ? read.data : problem('is not such a list')
    } catch {
      return problem('is a file that cannot be read')
    }
  })

/** A file, read when the program starts. */
export const clientDocuments = kind(file, { type: 'path of a file', bounds: BOUNDS })

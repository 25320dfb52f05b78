import type { IncomingHttpHeaders } from 'node:http'
import { Secret } from '../kernel/secret.ts'
import { createScrubber, type Scrub } from '../telemetry/scrubber.ts'

/** What is shorter is nobody's secret, and would turn up in any text. */
const SHORTEST = 8
const DEPTH = 5

/**
 * An error as it may be logged: the credential that came with the request, of whatever form, is taken out of its texts
 * and of those of its causes. The log knows how credentials of ours look, but not what others may send in their place.
 */
export function withoutCredential(error: unknown, headers: IncomingHttpHeaders): unknown {
  const words = [headers.authorization, headers['x-api-key'], headers['x-goog-api-key']]
    .flatMap((value) => value ?? [])
    .flatMap((value) => value.split(/[\s,]+/))
    .filter((word) => word.length >= SHORTEST)
  return words.length === 0 ? error : scrubbed(error, createScrubber(words.map((word) => new Secret(word))), DEPTH)
}

function scrubbed(error: unknown, clean: Scrub, depth: number): unknown {
  if (!(error instanceof Error)) return error
  const copy = new Error(clean(error.message))
  copy.name = error.name
  copy.stack = clean(error.stack ?? '')
  if ('code' in error && typeof error.code === 'string') Object.assign(copy, { code: clean(error.code) })
  if (error.cause !== undefined && depth > 0) copy.cause = scrubbed(error.cause, clean, depth - 1)
  return copy
}

import type { FastifyInstance } from 'fastify'
import { Fault, invalidRequest } from '../kernel/fault.ts'
import { LARGE_BYTES } from '../kernel/memory-budget.ts'
import { parseForm } from '../pages/form-data.ts'
import { type JsonLimits, parseJson } from '../wire/json.ts'

/**
 * JSON is the only body that is taken; a scope may add others for its own routes. The bytes are kept beside the value,
 * for routes that pass them on unchanged. A route decides by its schema whether there has to be a body at all.
 */
export function acceptJson(server: FastifyInstance, limits: JsonLimits): void {
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, bytes: Buffer, done) => {
    try {
      request.rawBody = bytes
      // Only operations take more, and have it parsed beside the event loop.
      if (bytes.length > LARGE_BYTES) throw largerThan(LARGE_BYTES)
      done(null, bytes.length === 0 ? undefined : parseJson(bytes, limits))
    } catch (error) {
      done(error instanceof Error ? error : new Error('the body could not be parsed', { cause: error }), undefined)
    }
  })
}

/** What is parsed on the event loop has to be small. */
export function largerThan(bytes: number): Fault {
  const detail = `The body is too large: the limit here is ${bytes} bytes. Send a smaller one.`
  return new Fault('body_too_large', { detail })
}

export const FORM_TYPE = 'application/x-www-form-urlencoded'
const NO_FORM = 'The body is not a valid form in UTF-8, or has a field twice. Correct it and send it again.'

/** For routes that a person's browser posts to; nothing else is taken there. */
export function acceptForms(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser(FORM_TYPE, { parseAs: 'buffer' }, (_, bytes: Buffer, done) => {
    const form = parseForm(bytes)
    if (form === undefined) done(invalidRequest(NO_FORM))
    else done(null, form)
  })
}

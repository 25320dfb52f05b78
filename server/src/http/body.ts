import type { FastifyInstance } from 'fastify'
import { Fault } from '../kernel/fault.ts'
import { LARGE_BYTES } from '../kernel/memory-budget.ts'
import { type JsonLimits, parseJson } from './json.ts'

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
      if (bytes.length > LARGE_BYTES) throw new Fault('body_too_large')
      done(null, bytes.length === 0 ? undefined : parseJson(bytes, limits))
    } catch (error) {
      done(error instanceof Error ? error : new Error('the body could not be parsed', { cause: error }), undefined)
    }
  })
}

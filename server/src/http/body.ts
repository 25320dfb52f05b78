import type { FastifyInstance } from 'fastify'
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
      done(null, bytes.length === 0 ? undefined : parseJson(bytes, limits))
    } catch (error) {
      done(error instanceof Error ? error : new Error('the body could not be parsed', { cause: error }), undefined)
    }
  })
}

import type { FastifyInstance } from 'fastify'

/** A body stays as it came: what is no JSON is refused by whoever reads it, in its own words, and counts as a request. */
export function keepBytes(scope: FastifyInstance, type: string): void {
  scope.removeContentTypeParser('application/json')
  scope.addContentTypeParser(type, { parseAs: 'buffer' }, (request, bytes: Buffer, done) => {
    request.rawBody = bytes
    done(null)
  })
}

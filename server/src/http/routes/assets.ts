import { acceptsGzip } from '../../pages/accepts-gzip.ts'
import { ASSETS_PATH, type Assets } from '../../pages/assets.ts'
import type { Family } from '../families.ts'

const HEADERS = {
  'cache-control': 'public, max-age=31536000, immutable',
  'x-content-type-options': 'nosniff',
  // What a style sheet asks for, it asks for by itself.
  'referrer-policy': 'no-referrer',
  // A drawing that somebody opens by itself is a document too: it asks for nothing and runs nothing.
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
}

/** Anybody may have them: they are the same for all. */
export function assetsFamily({ files }: Assets): Family {
  return {
    name: 'assets',
    prefix: ASSETS_PATH,
    dialect: 'problem',
    register(scope) {
      for (const [file, { type, bytes, gzipped }] of files)
        scope.get(`/${file}`, { config: { access: 'public' }, exposeHeadRoute: true }, (request, reply) => {
          reply.headers(HEADERS).type(type)
          if (gzipped === null) return reply.send(bytes)
          reply.header('vary', 'accept-encoding')
          if (!acceptsGzip(request.headers['accept-encoding'])) return reply.send(bytes)
          return reply.header('content-encoding', 'gzip').send(gzipped)
        })
    },
  }
}

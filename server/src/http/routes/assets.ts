import type { Family } from '../families.ts'
import { ASSETS_PATH, type Assets } from '../pages/assets.ts'

const HEADERS = {
  'cache-control': 'public, max-age=31536000, immutable',
  'x-content-type-options': 'nosniff',
  // What a style sheet asks for, it asks for by itself.
  'referrer-policy': 'no-referrer',
}

/** Anybody may have them: they are the same for all. */
export function assetsFamily({ files }: Assets): Family {
  return {
    name: 'assets',
    prefix: ASSETS_PATH,
    dialect: 'problem',
    register(scope) {
      for (const [file, { type, bytes }] of files)
        scope.get(`/${file}`, { config: { access: 'public' }, exposeHeadRoute: true }, (_request, reply) =>
          reply.headers(HEADERS).type(type).send(bytes),
        )
    },
  }
}

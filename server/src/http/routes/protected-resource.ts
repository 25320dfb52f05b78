import type { Family } from '../families.ts'

type Parts = {
  /** Below the origin. */
  readonly path: string
  readonly metadata: object
}

/** RFC 9728: who issues tokens for a resource. Anybody may read it, from any page: a client has nothing else to begin with. */
export function protectedResourceFamily({ path, metadata }: Parts): Family {
  const headers = { 'cache-control': 'public, max-age=300', 'access-control-allow-origin': '*' }
  return {
    name: 'protected-resource',
    prefix: path,
    dialect: 'problem',
    register(scope) {
      scope.get('', { config: { access: 'public' }, exposeHeadRoute: true }, (_request, reply) =>
        reply.headers(headers).send(metadata),
      )
    },
  }
}

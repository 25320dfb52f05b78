import type { FastifyInstance } from 'fastify'
import { nearest } from '../kernel/nearest.ts'

/** The route that is most like a method and a path that nobody serves; undefined where none is near. */
export type NearPath = (method: string, url: string) => string | undefined

/** Of longer ones nobody means any of ours. */
const PATH_LENGTH = 200

/** Knows the routes that are added to a server from now on. */
export function createNearPath(server: FastifyInstance): NearPath {
  const methods = new Map<string, Set<string>>()
  server.addHook('onRoute', ({ method, url }) => {
    const path = url.replaceAll(/:(\w+)/g, '{$1}').replace('*', '{model}')
    const known = methods.get(path) ?? new Set<string>()
    // A HEAD is answered as the GET that stands beside it.
    for (const one of [method].flat()) if (one !== 'HEAD') known.add(one)
    methods.set(path, known)
  })
  return (method, url) => {
    const [path = ''] = url.slice(0, PATH_LENGTH).split('?')
    // Of two that are alike the one that takes the method is meant.
    const taking = [...methods]
      .filter(([, known]) => known.has(method === 'HEAD' ? 'GET' : method))
      .map(([known]) => known)
    const found = nearest(path, taking) ?? nearest(path, [...methods.keys()])
    return found && `${[...(methods.get(found) ?? [])].join(' or ')} ${found}`
  }
}

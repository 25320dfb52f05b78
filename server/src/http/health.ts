import type { FastifyInstance } from 'fastify'

type Parts = {
  /** Short words for what is missing; none when requests can be served. Asked often, and by anybody: read memory only. */
  readonly readiness: () => readonly string[]
}

/** `/livez`: the process answers. `/readyz`: it wants traffic. Neither asks for a credential. */
export function addHealth(server: FastifyInstance, { readiness }: Parts): void {
  const method = ['GET', 'HEAD']
  const config = { access: 'public' } as const

  server.route({
    method,
    url: '/livez',
    config,
    handler: (_request, reply) => reply.header('cache-control', 'no-store').send({ status: 'alive' }),
  })

  server.route({
    method,
    url: '/readyz',
    config,
    handler: (_request, reply) => {
      const missing = readiness()
      reply.header('cache-control', 'no-store')
      return missing.length === 0
        ? reply.send({ status: 'ready' })
        : reply.code(503).send({ status: 'unready', missing })
    },
  })
}

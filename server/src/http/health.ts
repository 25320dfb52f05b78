import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { ON_ARRIVAL } from '../contracts/refusals.ts'
import type { ContractRoute, Refusals } from '../contracts/route.ts'
import { schemaOf } from '../contracts/schema-of.ts'

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

const json = (type: z.ZodType) => ({ 'application/json': schemaOf(type) })

const REFUSALS: Refusals = { name: 'health', dialect: 'data', codes: ON_ARRIVAL }

/** For contracts. */
export const healthRoutes = (): readonly ContractRoute[] => [
  {
    operationId: 'get_liveness',
    method: 'GET',
    path: '/livez',
    summary: 'Whether the process answers',
    tag: 'health',
    access: 'public',
    answers: { 200: { description: 'It does.', content: json(z.strictObject({ status: z.literal('alive') })) } },
    refusals: REFUSALS,
  },
  {
    operationId: 'get_readiness',
    method: 'GET',
    path: '/readyz',
    summary: 'Whether the process wants traffic',
    tag: 'health',
    access: 'public',
    answers: {
      200: { description: 'It does.', content: json(z.strictObject({ status: z.literal('ready') })) },
      503: {
        description: 'It does not.',
        content: json(z.strictObject({ status: z.literal('unready'), missing: z.array(z.string()) })),
      },
    },
    refusals: REFUSALS,
  },
]

import { subscribe } from 'node:diagnostics_channel'
import type { FastifyInstance } from 'fastify'
import { serve } from '../../harness/serve.ts'

/** The real server as a program. It tells of every route that any of its listeners registers, by what the framework itself announces. */
let listeners = 0
subscribe('fastify.initialization', (message) => {
  const fastify: FastifyInstance = Object(message).fastify
  listeners += 1
  const listener = listeners
  fastify.addHook('onRoute', ({ method, url }) => {
    process.stdout.write(`${JSON.stringify({ route: { listener, methods: [method].flat(), url } })}\n`)
  })
})

await serve({})

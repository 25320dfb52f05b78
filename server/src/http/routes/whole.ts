import type { FastifyReply } from 'fastify'

type Whole = { readonly bytes: Buffer; readonly tag: string; readonly cacheControl: string }

/** Whoever has the bytes already is told that, and nothing else. */
export function whole(
  reply: FastifyReply,
  known: string | undefined,
  { bytes, tag, cacheControl }: Whole,
): FastifyReply {
  reply.headers({ etag: tag, 'cache-control': cacheControl, 'x-content-type-options': 'nosniff' })
  const tags = known?.split(',').map((one) => one.trim().replace(/^W\//, '')) ?? []
  if (tags.includes(tag) || tags.includes('*')) return reply.code(304).send()
  return reply.type('application/json').send(bytes)
}

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Begin } from '../../gateway/begin.ts'
import type { Caller } from '../../identity/caller.ts'
import { rateHeaders } from '../../limits/headers.ts'
import { callerOf } from '../caller.ts'

/** Counts a request by which a key looks at what is its own, and costs nothing. Who calls, where it is within its limits. */
export async function admit(
  begin: Begin,
  operation: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Caller> {
  const caller = callerOf(request)
  const { rates } = await begin({
    id: request.id,
    caller,
    operation: { id: operation, limits: [], isForAll: true },
    hold: null,
    tokens: 0,
    claims: [],
  })
  reply.headers(rateHeaders(rates))
  return caller
}

import type { FastifyRequest } from 'fastify'
import type { Caller } from '../identity/caller.ts'
import { Fault } from '../kernel/fault.ts'
/** The caller of a request on a route that asks for a credential. */
export function callerOf(request: FastifyRequest): Caller {
  if (request.caller === null) throw new Fault('missing_credential')
  return request.caller
}

import type { FastifyRequest } from 'fastify'
import { Fault } from '../kernel/fault.ts'
import type { Secret } from '../kernel/secret.ts'

/** Who is calling: an API key or an access token of an account. */
export type Caller = {
  readonly accountId: string
  /** The key's id or the grant's id: limits, links and idempotency hang on it alike. */
  readonly credentialId: string
}

/** Finds out who sent a credential, or throws a fault. Answers at once where it knows already: this is the hot path. */
export type Identify = (credential: Secret, address: string) => Caller | Promise<Caller>

/** The caller of a request on a route that asks for a credential. */
export function callerOf(request: FastifyRequest): Caller {
  if (request.caller === null) throw new Fault('missing_credential')
  return request.caller
}

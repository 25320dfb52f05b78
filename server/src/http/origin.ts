import type { FastifyRequest } from 'fastify'
import type { Origin } from '../storage/audit.ts'

const USER_AGENT_LIMIT = 200

/** From where a request came, for the audit log. */
export function originOf({ address, headers }: FastifyRequest): Origin {
  const userAgent = headers['user-agent']?.slice(0, USER_AGENT_LIMIT)
  return { via: 'http', address, ...(userAgent !== undefined && { userAgent }) }
}

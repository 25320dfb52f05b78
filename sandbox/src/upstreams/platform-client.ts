import type { IncomingHttpHeaders } from 'node:http'
import type { Credential } from '../upstream.ts'

/** The one app that the platform knows. */
export const CLIENT_ID = 'sandbox-client'
export const CLIENT_SECRET = 'sandbox-client-secret'

const RIGHT = `Basic ${Buffer.from(`${CLIENT_ID}:${CLIENT_SECRET}`).toString('base64')}`

export function clientCredential({ authorization }: IncomingHttpHeaders): Credential {
  if (authorization === undefined) return 'missing'
  return authorization === RIGHT ? 'right' : 'wrong'
}

import type { IncomingHttpHeaders } from 'node:http'
import { Fault } from '../kernel/fault.ts'
import { Secret } from '../kernel/secret.ts'

const BEARER = /^Bearer +([!-~]+) *$/i
const VISIBLE = /^[!-~]+$/
const HOW = 'The credential cannot be read. Send it as "Authorization: Bearer <key>".'

/**
 * Takes the credential from the headers, never from the URL: Authorization first, then the two headers in which older
 * SDKs of two protocols send a key and nothing else.
 */
export function readCredential(headers: IncomingHttpHeaders): Secret | undefined {
  const { authorization } = headers
  if (authorization !== undefined) {
    const bearer = BEARER.exec(authorization)?.[1]
    if (bearer !== undefined) return new Secret(bearer)
  }
  const key = headers['x-api-key'] ?? headers['x-goog-api-key']
  if (typeof key === 'string' && VISIBLE.test(key)) return new Secret(key)
  if (authorization !== undefined || key !== undefined) throw new Fault('invalid_credential', { detail: HOW })
  return undefined
}

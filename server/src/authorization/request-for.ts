import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import type { RawAsked } from '../http/raw-routes.ts'
import { rememberVisitor } from './request-notes.ts'

/** Of what the library is told: who it is, what it wants and which cookies it has. Nothing that says where we are. */
const PASSED_ON = [
  ...['accept', 'authorization', 'content-type', 'cookie', 'origin', 'user-agent'],
  ...['access-control-request-method', 'access-control-request-headers'],
]

type Changed = { readonly url: string; readonly body: Buffer }

/**
 * The request as the library gets it: at our own address, whatever proxies and Host say, with a body that is here already. It is made
 * anew, so that nothing which the library does to it reaches the connection.
 */
export function requestFor(asked: RawAsked, issuer: string, { url, body }: Changed): IncomingMessage {
  const { host, protocol } = new URL(issuer)
  const request = new IncomingMessage(new Socket())
  request.method = asked.method
  request.url = url
  const passed = Object.entries(asked.headers).filter(([name]) => PASSED_ON.includes(name))
  request.headers = {
    ...Object.fromEntries(passed),
    host,
    // The library believes these, and only we write them.
    'x-forwarded-proto': protocol.slice(0, -1),
    'x-forwarded-host': host,
    ...(body.length > 0 && { 'content-length': String(body.length) }),
  }
  request.push(body.length > 0 ? body : null)
  if (body.length > 0) request.push(null)
  request.complete = true
  rememberVisitor(request, asked.visitor)
  return request
}

import type { IncomingMessage } from 'node:http'

export const BODY_LIMIT = 33 * 1024 * 1024
const NO_BODY = Buffer.alloc(0)

export type Body = Buffer | 'too-large' | 'left'

/** Calls back once: with the body, or with why there is none. A request without a body is answered at once. */
export function readBody(request: IncomingMessage, done: (body: Body) => void): void {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
  if (encoding === undefined && (length === undefined || length === '0')) done(NO_BODY)
  else if (Number(length) > BODY_LIMIT) done('too-large')
  else collect(request, done)
}

function collect(request: IncomingMessage, done: (body: Body) => void): void {
  const chunks: Buffer[] = []
  let size = 0
  let isDone = false
  const finish = (body: Body) => {
    if (!isDone) done(body)
    isDone = true
  }
  request.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > BODY_LIMIT) finish('too-large')
    else chunks.push(chunk)
  })
  request.on('end', () => finish(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)))
  request.on('close', () => finish('left'))
  request.on('error', () => finish('left'))
}

export function jsonIn(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}

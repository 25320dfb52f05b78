import { Agent, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { Request } from './requests.ts'

/** What came of a request, as far as its caller stayed to see it. */
export type Heard = {
  readonly status: number
  /** Of the call; empty where the caller left before it was told. */
  readonly id: string
  /** The code of a refusal. */
  readonly code: string
  /** `clean`: the answer ended as HTTP says; `broken`: the connection did before; `cut`: the caller left. */
  readonly end: 'clean' | 'broken' | 'cut'
}

const KEPT_BYTES = 2_000
const DEADLINE_MS = 120_000

/** Sends requests byte for byte, and leaves when they say so. */
export function createSender() {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })

  async function send(url: string, secret: string, asked: Request): Promise<Heard> {
    const { method, path, body, headers, leaving } = asked
    const { hostname, port } = new URL(url)
    const { promise, resolve } = Promise.withResolvers<Heard>()
    const heard = { status: 0, id: '', code: '' }
    let hasLeft = false
    let bytes = 0
    let text = ''
    const outgoing = request({
      ...{ agent, hostname, port, method, path },
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
        ...{ authorization: `Bearer ${secret}`, ...headers },
      },
    })
    const leave = () => {
      hasLeft = true
      outgoing.destroy()
    }
    const over = (end: Heard['end']) =>
      resolve({ ...heard, code: codeIn(heard.status, text), end: hasLeft ? 'cut' : end })
    outgoing.on('error', () => over('broken'))
    outgoing.setTimeout(DEADLINE_MS, () => outgoing.destroy(new Error('nothing came')))
    outgoing.on('response', (incoming) => {
      heard.status = incoming.statusCode ?? 0
      heard.id = String(incoming.headers['x-request-id'] ?? '')
      incoming.on('error', () => over('broken'))
      incoming.on('close', () => over(incoming.complete ? 'clean' : 'broken'))
      incoming.on('data', (piece: Buffer) => {
        if (text.length < KEPT_BYTES) text += piece.toString()
        bytes += piece.length
        if (bytes >= (leaving.atByte ?? Number.POSITIVE_INFINITY)) leave()
      })
    })
    outgoing.end(body)
    if (leaving.afterMs !== undefined) void delay(leaving.afterMs).then(leave)
    return promise
  }

  return { send, close: () => agent.destroy() }
}

/** Our code for a refusal, wherever the protocol has a place for it. */
function codeIn(status: number, text: string): string {
  if (status < 400) return ''
  return /"(?:code|error_code|reason)": ?"([a-z_]+)"/.exec(text)?.[1] ?? 'of the vendor'
}

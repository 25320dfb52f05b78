import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { visitorOf } from '../../server/src/identity/people/visitor.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { doorRoutes } from '../../server/src/oauth/provider/door.ts'
import { connect } from '../ledger/world.ts'
import { serverHere } from './server-here.ts'

/**
 * For tests, a process of its own that answers for the authorization server, and ends with SIGKILL as soon as the n-th statement of
 * its first request has left: before it hears of it, and before the next one.
 */
export type MortalDoor = {
  readonly url: string
  readonly masterKey: string
  /** Null to live. */
  readonly dieAfter: number | null
}
export type Opened = { readonly port: number }

process.on('disconnect', () => process.exit())

process.once('message', async ({ url, masterKey, dieAfter }: MortalDoor) => {
  const { pools } = connect(url)
  const server = serverHere({ pool: pools.rest, seal: createSeal({ current: new Secret(masterKey) }) })
  await server.provider()
  const routes = doorRoutes(server)
  let statements: number | undefined
  const send: (...asked: unknown[]) => unknown = pg.Client.prototype.query
  Object.assign(pg.Client.prototype, {
    query(this: pg.Client, ...asked: unknown[]): unknown {
      const sent = send.apply(this, asked)
      if (statements !== undefined) statements += 1
      if (statements === dieAfter) process.kill(process.pid, 'SIGKILL')
      return sent
    },
  })
  const listener = createServer(async (request, response) => {
    statements ??= 0
    const { method = '', url: at = '', headers } = request
    const route = routes.find((one) => one.method === method && one.path === at.split('?')[0])
    const body = await bodyOf(request)
    const respond = await route?.answer({ visitor: visitorOf('203.0.113.9'), method, url: at, headers, body })
    response.setHeader('x-statements', String(statements))
    await respond?.(response)
  }).listen(0, '127.0.0.1', () => {
    const { port } = listener.address() as AddressInfo
    process.send?.({ port } satisfies Opened)
  })
})

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece)
  return Buffer.concat(pieces)
}

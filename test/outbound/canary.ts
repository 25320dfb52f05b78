import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after } from 'node:test'

export type Canary = { readonly port: number; readonly connects: () => number }

/** Listens at every address of this machine, of both families, and counts whoever comes. It ends with the test file. */
export async function startCanary(): Promise<Canary> {
  let connects = 0
  const onConnection = (socket: Socket) => {
    connects += 1
    socket.on('error', () => {}).end('HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\ncaught')
  }
  const four = createServer(onConnection).listen(0, '0.0.0.0')
  await once(four, 'listening')
  const { port } = four.address() as AddressInfo
  const six = createServer(onConnection).listen({ port, host: '::', ipv6Only: true })
  // A machine may have no IPv6.
  await Promise.race([once(six, 'listening'), once(six, 'error')])
  after(() => {
    four.close()
    six.close()
  })
  return { port, connects: () => connects }
}

import { createTcpProxy, type TcpProxy } from '../../harness/tcp-proxy.ts'

/** A way between two of the cluster's processes through a fault proxy, with what passes on it counted. */
export type Way = TcpProxy & {
  readonly name: string
  /** How many connections wait for an answer: the last that passed on them went to the server. */
  readonly busy: () => number
  /** How many chunks have passed in either direction, health checks left aside. */
  readonly passes: () => number
}

const HEALTH_CHECK = 'GET /readyz '

export async function createWay(name: string, port: number): Promise<Way> {
  const asking = new Map<number, boolean>()
  const checks = new Set<number>()
  let passes = 0
  const proxy = await createTcpProxy({
    target: { port },
    observe({ connection, direction, bytes }) {
      if (direction === 'toServer' && bytes.toString('latin1', 0, HEALTH_CHECK.length) === HEALTH_CHECK)
        checks.add(connection)
      if (checks.has(connection)) return
      asking.set(connection, direction === 'toServer')
      passes += 1
    },
  })
  return {
    ...proxy,
    name,
    busy: () => proxy.connections().filter(({ number }) => asking.get(number) === true).length,
    passes: () => passes,
  }
}

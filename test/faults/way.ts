import { createTcpProxy, type TcpProxy } from '../../harness/tcp-proxy.ts'

/** A way between two of the cluster's processes through a fault proxy, with what passes on it counted. */
export type Way = TcpProxy & {
  readonly name: string
  /** How many connections wait for an answer, or are in the middle of one that streams. */
  readonly busy: () => number
  readonly streaming: () => number
  /** How many chunks have passed in either direction, health checks left aside. */
  readonly passes: () => number
}

const HEALTH_CHECK = 'GET /readyz '
const STREAM = 'text/event-stream'
/** With which a body ends that comes in chunks. */
const LAST_CHUNK = '0\r\n\r\n'

type State = 'asking' | 'streaming' | 'answered'

export async function createWay(name: string, port: number): Promise<Way> {
  const states = new Map<number, State>()
  const tails = new Map<number, string>()
  const checks = new Set<number>()
  let passes = 0

  /** A head or an end may come in two pieces. */
  function stateAfter(connection: number, answer: string): State {
    const seen = (tails.get(connection) ?? '') + answer
    tails.set(connection, seen.slice(-STREAM.length))
    const isStream = states.get(connection) === 'streaming' || seen.includes(STREAM)
    return isStream && !seen.endsWith(LAST_CHUNK) ? 'streaming' : 'answered'
  }

  const proxy = await createTcpProxy({
    target: { port },
    observe({ connection, direction, bytes }) {
      if (direction === 'toServer' && bytes.toString('latin1', 0, HEALTH_CHECK.length) === HEALTH_CHECK)
        checks.add(connection)
      if (checks.has(connection)) return
      if (direction === 'toServer') tails.delete(connection)
      states.set(connection, direction === 'toServer' ? 'asking' : stateAfter(connection, bytes.toString('latin1')))
      passes += 1
    },
  })
  const count = (...wanted: readonly State[]) =>
    proxy.connections().filter(({ number }) => wanted.includes(states.get(number) ?? 'answered')).length
  return {
    ...proxy,
    name,
    busy: () => count('asking', 'streaming'),
    streaming: () => count('streaming'),
    passes: () => passes,
  }
}

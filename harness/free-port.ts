import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ports that systems choose by themselves (from 32,768): whoever asks for any port, or connects, is never given one of these. */
const PORTS = { from: 15_000, to: 32_000 }
const TRIES = 200
const given = new Set<number>()

/** A TCP port on loopback that nobody listens on, and that nobody is given by chance until it is used. */
export async function freePort(): Promise<number> {
  for (let left = TRIES; left > 0; left -= 1) {
    const port = randomInt(PORTS.from, PORTS.to)
    if (given.has(port)) continue
    given.add(port)
    if (await isFree(port)) return port
  }
  throw new Error(`no port from ${PORTS.from} to ${PORTS.to} is free`)
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening')
    return true
  } catch {
    return false
  } finally {
    await new Promise((resolve) => server.close(resolve))
  }
}

import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import path from 'node:path'
import { startChild } from '../../harness/child.ts'
import { freePort } from '../../harness/free-port.ts'
import { ROOT } from '../../harness/root.ts'
import { pinned } from './cores.ts'
import { type Listening, listening } from './programs.ts'

const FOLDER = path.join(ROOT, 'bench/peer')
const PROGRAM = path.join(FOLDER, 'node_modules/@portkey-ai/gateway/build/start-server.js')

/** The gateway that ours is measured beside. It is no dependency of the project, so it is installed when it is wanted. */
export async function startPeer(): Promise<Listening> {
  if (!existsSync(PROGRAM)) execFileSync('npm', ['ci', '--no-workspaces'], { cwd: FOLDER, stdio: 'pipe' })
  const port = await freePort()
  const child = startChild(...pinned('server', process.execPath, [PROGRAM, `--port=${port}`, '--headless']), {
    env: { ...process.env, NODE_ENV: 'production' },
    cwd: FOLDER,
  })
  return listening(
    child,
    untilOpen(port, () => child.hasExited()),
  )
}

/** By what it is told where to pass calls on to. */
export function peerHeaders(upstreamPort: number): string {
  return `x-portkey-provider: openai\r\nx-portkey-custom-host: http://127.0.0.1:${upstreamPort}/v1\r\n`
}

async function untilOpen(port: number, isOver: () => boolean): Promise<number> {
  while (!isOver()) {
    if (await isOpen(port)) return port
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('it ended before it listened')
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

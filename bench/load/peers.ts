import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import path from 'node:path'
import { startChild } from '../../harness/child.ts'
import { freePort } from '../../harness/free-port.ts'
import { ROOT } from '../../harness/root.ts'
import { pinned } from './cores.ts'
import { type Listening, listening } from './programs.ts'

const FOLDER = path.join(ROOT, 'bench/peer')

export type PeerName = 'portkey' | 'llms'

type Peer = {
  readonly title: string
  readonly package: string
  /** What of the package is run. */
  readonly file: string
  readonly args: (file: string, port: number, upstreamPort: number) => readonly string[]
  /** By what a call says where it is passed on to. */
  readonly headers: (upstreamPort: number) => string
  readonly body: (body: string) => string
}

/** The gateways that ours is measured beside. They are no dependencies of the project, so they are installed when they are wanted. */
const PEERS: Readonly<Record<PeerName, Peer>> = {
  portkey: {
    title: 'Portkey',
    package: '@portkey-ai/gateway',
    file: 'build/start-server.js',
    args: (file, port) => [file, `--port=${port}`, '--headless'],
    headers: (upstreamPort) =>
      `x-portkey-provider: openai\r\nx-portkey-custom-host: http://127.0.0.1:${upstreamPort}/v1\r\n`,
    body: (body) => body,
  },
  llms: {
    title: 'LLMs',
    package: '@musistudio/llms',
    file: 'dist/cjs/server.cjs',
    args: (file, port, upstreamPort) => [
      path.join(ROOT, 'bench/load/llms.ts'),
      file,
      String(port),
      `http://127.0.0.1:${upstreamPort}`,
    ],
    headers: () => '',
    // Its models are named after their provider and a comma.
    body: (body) => body.replace('"model":"', '"model":"upstream,'),
  },
}

export const PEER_NAMES = Object.keys(PEERS) as PeerName[]

/** A peer that runs, and what a call to it has to look like. */
export type StartedPeer = Listening & { readonly headers: string; readonly bodyOf: (body: string) => string }

export async function startPeer(name: PeerName, upstreamPort: number): Promise<StartedPeer> {
  const { file, args, headers, body } = PEERS[name]
  if (installedVersion(name) !== wantedVersion(name))
    execFileSync('npm', ['ci', '--no-workspaces'], { cwd: FOLDER, stdio: 'pipe' })
  const port = await freePort()
  const program = path.join(installedFolder(name), file)
  const child = startChild(...pinned('server', process.execPath, args(program, port, upstreamPort)), {
    env: { ...process.env, NODE_ENV: 'production' },
    cwd: FOLDER,
  })
  const ready = untilOpen(port, () => child.hasExited())
  return { ...(await listening(child, ready)), headers: headers(upstreamPort), bodyOf: body }
}

export function peerTitle(name: PeerName): string {
  return `${PEERS[name].title} ${wantedVersion(name)}`
}

function wantedVersion(name: PeerName): string {
  return readJson(path.join(FOLDER, 'package.json')).dependencies[PEERS[name].package]
}

/** Undefined where it is not installed. */
function installedVersion(name: PeerName): string | undefined {
  const file = path.join(installedFolder(name), 'package.json')
  return existsSync(file) ? readJson(file).version : undefined
}

function installedFolder(name: PeerName): string {
  return path.join(FOLDER, 'node_modules', PEERS[name].package)
}

function readJson(file: string) {
  return JSON.parse(readFileSync(file, 'utf8'))
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

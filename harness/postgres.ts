import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Child, startChild } from './child.ts'
import { makeLockedCluster, makeOpenCluster, own } from './cluster.ts'
import { freePort } from './free-port.ts'
import { findPostgres, type Place, type PostgresBinaries } from './postgres-binaries.ts'
import { isAlive } from './processes.ts'

/** A PostgreSQL of our own: own data folder, own port, gone when we are. */
export type Postgres = {
  readonly port: number
  readonly folder: string
  readonly version: string
  readonly url: (database?: string) => string
  readonly pid: () => number
  readonly log: () => string
  /** Resolves when the server that runs now has ended, for whatever reason. */
  readonly exited: () => Promise<unknown>
  /** A fast shutdown: connections are closed, everything is written. */
  readonly stop: () => Promise<void>
  /** kill -9 of the server and of everything that it started. */
  readonly kill: () => Promise<void>
  readonly start: () => Promise<void>
  readonly pause: () => void
  readonly resume: () => void
  /** Stops it and deletes its data. */
  readonly remove: () => Promise<void>
}

type Options = {
  readonly settings?: Readonly<Record<string, string | number>>
  /** Where the data lives; a folder of its own on a tmpfs unless told otherwise. An existing cluster is kept. */
  readonly folder?: string
  /** Without one, whoever reaches the loopback port gets in: fine for a test, not for a laptop that others use. */
  readonly password?: string
  readonly port?: number
  /** Where its programs may come from; without Debian's packages, nothing is installed on the machine. */
  readonly from?: readonly Place[]
}

const START_DEADLINE_MS = 180_000
const STOP_DEADLINE_MS = 180_000
const ROOM_BYTES = 2 * 1024 ** 3

/** What a money ledger may rely on is on in every test; a tmpfs makes it fast, not a switch. */
const SETTINGS = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  listen_addresses: '127.0.0.1',
  max_connections: 500,
  shared_buffers: '128MB',
  // In the data folder, so that a server that was killed leaves nothing behind when its folder goes.
  dynamic_shared_memory_type: 'mmap',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_line_prefix: '%m [%p] ',
}

export async function startPostgres(options: Options = {}): Promise<Postgres> {
  const binaries = findPostgres(options.from)
  if (options.folder === undefined) removeAbandoned()
  const folder = options.folder ?? temporaryFolder(`${FOLDER_PREFIX}${process.pid}-`)
  const data = path.join(folder, 'data')
  mkdirSync(folder, { recursive: true })
  own(folder, binaries)
  if (!existsSync(path.join(data, 'PG_VERSION'))) {
    if (options.password === undefined) makeOpenCluster(binaries, data)
    else makeLockedCluster(binaries, data, options.password)
  }

  let port = options.port ?? (await freePort())
  let child: Child | undefined

  async function start(): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      child = launch(binaries, folder, data, port, options.settings)
      if (await becameReady(child, data)) return
      const output = child.output()
      await child.kill()
      // Somebody may have taken the port between our look and PostgreSQL's.
      if (tries === 5 || options.port !== undefined) throw new Error(`PostgreSQL did not start:\n${output}`)
      port = await freePort()
    }
  }

  async function stop(): Promise<void> {
    await child?.stop('SIGINT', STOP_DEADLINE_MS)
  }

  await start()
  const credentials = options.password === undefined ? 'farebox' : `farebox:${options.password}`
  return {
    get port() {
      return port
    },
    folder,
    version: binaries.version,
    url: (database = 'postgres') => `postgres://${credentials}@127.0.0.1:${port}/${database}`,
    pid: () => child?.pid ?? -1,
    log: () => child?.output() ?? '',
    exited: () => child?.exited ?? Promise.resolve(),
    stop,
    kill: async () => {
      await child?.kill()
    },
    start,
    pause: () => child?.pause(),
    resume: () => child?.resume(),
    remove: async () => {
      child?.resume()
      await stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** A tmpfs where the machine has one with room, so that fsync costs little and stays on. */
const MEMORY = hasRoom('/dev/shm') ? '/dev/shm' : tmpdir()
const FOLDER_PREFIX = 'farebox-postgres-'

function hasRoom(folder: string): boolean {
  if (!existsSync(folder)) return false
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize > ROOM_BYTES
}

export function temporaryFolder(prefix: string): string {
  return mkdtempSync(path.join(MEMORY, prefix))
}

/** Whoever was killed could not delete its data; its number in the folder's name tells that it is gone. */
function removeAbandoned(): void {
  for (const name of readdirSync(MEMORY)) {
    const pid = /^farebox-postgres-(\d+)-/.exec(name)?.[1]
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(path.join(MEMORY, name), { recursive: true, force: true })
  }
}

function launch(
  binaries: PostgresBinaries,
  folder: string,
  data: string,
  port: number,
  settings: Options['settings'] = {},
): Child {
  const all = { ...SETTINGS, unix_socket_directories: folder, port, ...settings }
  const args = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return startChild(path.join(binaries.folder, 'postgres'), ['-D', data, ...args], {
    user: binaries.user,
    cwd: folder,
    signalOnOurDeath: 'INT',
  })
}

/** PostgreSQL writes its state into the last line of postmaster.pid; asking by connection would need a client. */
async function becameReady(child: Child, data: string): Promise<boolean> {
  const deadline = Date.now() + START_DEADLINE_MS
  while (Date.now() < deadline && !child.hasExited()) {
    const [pid, , , , , , , state] = readIfThere(path.join(data, 'postmaster.pid')).split('\n')
    if (Number(pid) === child.pid && state?.trim() === 'ready') return true
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  return false
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

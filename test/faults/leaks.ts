import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { descendants, isAlive } from '../../harness/processes.ts'
import type { Cluster } from './cluster.ts'
import { CLIENTS } from './people.ts'

/** What is still there when nobody asks for anything any more. */
export type Leaks = {
  /** Open sockets of each of our processes to PostgreSQL. */
  readonly database: Readonly<Record<string, number>>
  /** Open sockets to the upstream, of all gateways, and those that wait for an answer that nobody wants any more. */
  readonly upstream: number
  readonly upstreamBusy: number
  /** What the upstream is still answering, by the ids of the calls. */
  readonly unanswered: readonly string[]
  /** Open sockets to the load balancer on behalf of callers, who have all gone. */
  readonly callers: number
  readonly strangers: readonly number[]
  readonly missing: readonly string[]
}

/** Four for money, eight for the rest, one for the lease, one for the change log. */
export const DATABASE_CONNECTIONS_MOST = 14
/** Idle ones are kept for a minute, and there are never more than calls at once: four of each client. */
export const UPSTREAM_CONNECTIONS_MOST = 4 * Object.values(CLIENTS).reduce((sum, clients) => sum + clients, 0)
const IDLE_MS = 60_000
const LOOK_EVERY_MS = 100

/** Waits for idle connections to be let go, for so long at the most. */
export async function findLeaks(cluster: Cluster): Promise<Leaks> {
  const { ways } = cluster
  // Streams that never end are known by the upstream itself.
  const upstreamBusy = () => ways.upstream.busy() - ways.upstream.streaming()
  const callers = () => socketsTo(process.pid, cluster.haproxy.port)
  const isIdle = () =>
    upstreamBusy() === 0 && ways.upstream.connections().length <= UPSTREAM_CONNECTIONS_MOST && callers() === 0
  for (let waitedMs = 0; waitedMs < IDLE_MS && !isIdle(); waitedMs += LOOK_EVERY_MS) await delay(LOOK_EVERY_MS)
  const journal = await cluster.upstream.process().journal()
  const unanswered = journal.filter(({ outcome }) => outcome === 'open').map(({ request_id }) => request_id ?? 'nobody')
  // PostgreSQL makes processes of its own all the time, so that those are looked for last.
  const all = descendants(process.pid)
  const ours = processesOf(cluster)
  const members = [...cluster.gateways, cluster.worker]
  const ofPostgres = new Set(descendants(cluster.postgres.pid()))
  return {
    database: Object.fromEntries(members.map((one) => [one.name, socketsTo(one.process().pid, one.database.port)])),
    upstream: members.reduce((sum, one) => sum + socketsTo(one.process().pid, ways.upstream.port), 0),
    upstreamBusy: upstreamBusy(),
    unanswered,
    callers: callers(),
    strangers: all.filter((pid) => isAlive(pid) && !ours.has(pid) && !ofPostgres.has(pid)),
    missing: [...ours].filter(([pid]) => !isAlive(pid)).map(([, name]) => name),
  }
}

function processesOf({ gateways, worker, postgres, upstream, haproxy }: Cluster): ReadonlyMap<number, string> {
  return new Map([
    ...[...gateways, worker].map((member): [number, string] => [member.process().pid, member.name]),
    [postgres.pid(), 'PostgreSQL'],
    [upstream.process().pid, 'the sandbox'],
    [haproxy.pid, 'HAProxy'],
  ])
}

/** Open sockets of a process to a port on this machine, as the kernel has them. */
function socketsTo(pid: number, port: number): number {
  const inodes = new Set<string>()
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const inode = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`))?.[1]
    if (inode !== undefined) inodes.add(inode)
  }
  const remote = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const lines = readFileSync(`/proc/${pid}/net/tcp`, 'utf8').trim().split('\n').slice(1)
  return lines.filter((line) => {
    const [, , to = '', , , , , , , inode = ''] = line.trim().split(/\s+/)
    return to.endsWith(remote) && inodes.has(inode)
  }).length
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    // It was closed meanwhile.
    return ''
  }
}

import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { freePort } from '../../harness/free-port.ts'
import { type Postgres, startPostgres } from '../../harness/postgres.ts'
import { bindSandbox, makeMasterKey } from '../../harness/seed.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { createPools, type Pools } from '../../server/src/storage/pools.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { saveVendor } from '../acceptance/deviants/vendors.ts'
import { ON_SALE } from './deviants.ts'
import { type Haproxy, startHaproxy } from './haproxy.ts'
import { createMember, type Member } from './member.ts'
import { GATEWAYS } from './plan.ts'
import { mountSmallDisk, type SmallDisk } from './small-disk.ts'
import { createTurn, type Turn } from './turn.ts'
import { createUpstream, type Upstream } from './upstream.ts'
import { createWay, type Way } from './way.ts'

/**
 * The real thing: gateways behind HAProxy, a worker, PostgreSQL and the sandbox, each a process of its own, and a fault
 * proxy on every way between them.
 */
export type Cluster = {
  /** Where callers come in: a fault proxy before HAProxy. */
  readonly url: string
  readonly gateways: readonly Member[]
  readonly worker: Member
  readonly postgres: Postgres & { readonly turn: Turn; readonly disk: SmallDisk | undefined }
  readonly upstream: Upstream
  readonly haproxy: Haproxy
  readonly ways: Ways
  /** An operator's connections, through a fault proxy of their own. */
  readonly operator: Pools
  /** Ours, to look behind the scenes; nothing is between it and PostgreSQL. */
  readonly pool: pg.Pool
  readonly stop: () => Promise<void>
}

export type Ways = {
  readonly client: Way
  readonly upstream: Way
  readonly operator: Way
  readonly edges: readonly Way[]
  readonly databases: readonly Way[]
  readonly all: readonly Way[]
}

type Options = {
  readonly folder: string
  readonly seed: number
  readonly env?: Readonly<Record<string, string>>
  readonly program?: string
  readonly hasDisk?: boolean
  /** Where no gateway hangs, none is taken for one that does, however busy the machine is. */
  readonly balancerSeconds?: number
}

const PROGRAM = 'test/faults/gateway-server.ts'
/** Little enough that a disk that is full is noticed within a second. */
const SMALL_LOG = { max_wal_size: '64MB', min_wal_size: '32MB' }
const HEALTH_CHECK_ROUNDS_MS = 600

export async function startCluster(options: Options): Promise<Cluster> {
  const ends: (() => Promise<unknown> | undefined)[] = []
  const stop = async () => {
    for (const end of ends.splice(0).reverse()) await end()
  }
  try {
    return { ...(await start(options, ends)), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function start(
  { folder, seed, env = {}, program = PROGRAM, hasDisk = true, balancerSeconds = 1 }: Options,
  ends: (() => Promise<unknown> | undefined)[],
): Promise<Omit<Cluster, 'stop'>> {
  const disk = hasDisk ? mountSmallDisk() : undefined
  ends.push(async () => disk?.remove())
  const postgres = await startPostgres({
    port: await freePort(),
    ...(disk && { folder: path.join(disk.folder, 'postgres'), settings: SMALL_LOG }),
  })
  ends.push(() => postgres.remove())
  await migrate({ url: new Secret(postgres.url()), log: silentLog })
  const direct = createPools({ url: new Secret(postgres.url()), log: silentLog })
  ends.push(() => direct.close(200))
  const pool = direct.rest

  const gatewayPorts = await Promise.all(Array.from({ length: GATEWAYS }, freePort))
  const way = async (name: string, port: number) => {
    const made = await createWay(name, port)
    ends.push(() => made.close())
    return made
  }
  const edges = await Promise.all(gatewayPorts.map((port, at) => way(`edge-${at}`, port)))
  const databases = await Promise.all(gatewayPorts.map((_, at) => way(`database-${at}`, postgres.port)))
  const workersDatabase = await way('database-worker', postgres.port)
  const operatorsDatabase = await way('operator', postgres.port)
  const upstream = await createUpstream({ seed, folder, makeWay: way })
  ends.push(upstream.stop)

  const masterKey = makeMasterKey()
  const sandboxUrl = upstream.way.url(upstream.url).replace(/\/$/, '')
  await bindSandbox({ pool, masterKey, sandboxUrl })
  const sandbox = {
    url: sandboxUrl,
    deviant: (name: string, ...words: readonly string[]) => `${sandboxUrl}/deviant/${words.join('+')}/${name}`,
  }
  for (const vendor of ON_SALE) await saveVendor({ pool, masterKey, sandbox }, vendor)
  const starts = createTurn()
  const member = (name: string, database: Way, more: Readonly<Record<string, string>>, edge?: Way) => {
    const made = createMember({
      name,
      database,
      databaseUrl: database.url(postgres.url()),
      ...(edge && { edge }),
      program,
      folder,
      pool,
      starts,
      turn: createTurn(),
      env: {
        FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(),
        FAREBOX_LOG_LEVEL: 'warn',
        // HAProxy's, as far as a gateway can see.
        FAREBOX_HTTP_TRUSTED_PROXIES: '127.0.0.1',
        FAREBOX_HTTP_DRAIN_PAUSE_MS: '500',
        // Shorter than the longest streams, so that some are heard out and some are not.
        FAREBOX_HTTP_ABANDONED_STREAM_MS: '3000',
        // So that tokens of linked accounts can be refreshed.
        FAREBOX_LINKS_OFFLINE_ACCESS: 'true',
        ...env,
        ...more,
      },
    })
    ends.push(() => made.kill())
    return made
  }
  // The first does a worker's work as well, so that two ask for the same tasks and sweep the same calls.
  const gateways = gatewayPorts.map((port, at) => {
    const [database, edge] = [databases[at], edges[at]]
    if (database === undefined || edge === undefined) throw new Error('a way is missing')
    return member(
      `gateway-${at}`,
      database,
      {
        FAREBOX_ROLES: at === 0 ? 'gateway,agent,worker' : 'gateway,agent',
        FAREBOX_LISTEN_GATEWAY: `127.0.0.1:${port}`,
      },
      edge,
    )
  })
  const worker = member('worker', workersDatabase, { FAREBOX_ROLES: 'worker' })
  for (const one of [...gateways, worker]) await one.start()

  const haproxy = await startHaproxy(
    folder,
    edges.map(({ port }) => port),
    balancerSeconds,
  )
  ends.push(() => haproxy.stop('SIGTERM', 2_000))
  const client = await way('client', haproxy.port)
  const operator = createPools({ url: new Secret(operatorsDatabase.url(postgres.url())), log: silentLog })
  ends.push(() => operator.close(200))
  // Every gateway has been found ready by then.
  await delay(HEALTH_CHECK_ROUNDS_MS)
  return {
    url: `http://127.0.0.1:${client.port}`,
    gateways,
    worker,
    postgres: Object.assign(postgres, { turn: createTurn(), disk }),
    upstream,
    haproxy,
    operator,
    pool,
    ways: {
      client,
      upstream: upstream.way,
      operator: operatorsDatabase,
      edges,
      databases: [...databases, workersDatabase],
      all: [client, upstream.way, operatorsDatabase, ...edges, ...databases, workersDatabase],
    },
  }
}

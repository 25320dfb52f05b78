import { existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { type Gateway, startGateway } from '../../harness/gateways.ts'
import { type Postgres, startPostgres } from '../../harness/postgres.ts'
import { findPostgres } from '../../harness/postgres-binaries.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds } from '../../server/src/kernel/ids.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { saveModel, saveRoute, setModelPrice } from '../../server/src/pricing/configure-models.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { createPools } from '../../server/src/storage/pools.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { saveUpstream } from '../../server/src/upstreams/configure.ts'
import { makeCallers } from './callers.ts'
import { pin } from './cores.ts'
import { type Load, type LoadReport, send } from './load.ts'
import { peerHeaders, startPeer } from './peer.ts'
import { type Listening, startProgram } from './programs.ts'

/** Whom the load is sent to: our gateway, its tools for agents, the bare proxy, or the peer. All pass it on to the same upstream. */
export type Target = 'ours' | 'agent' | 'bare' | 'peer'

/** Everything that a measurement needs, each a process of its own: PostgreSQL, upstream, our gateways, and the others. */
export type Stage = {
  readonly postgres: Postgres
  readonly pool: pg.Pool
  /** For statements that may take minutes, of what need not be durable at once. */
  readonly bulk: pg.Pool
  readonly upstream: Listening
  readonly gateways: readonly Gateway[]
  readonly secretsFile: string
  /** For one more process of ours on the same database. */
  readonly masterKey: Secret
  readonly addCallers: (count: number) => Promise<void>
  /** Sends a load to one of the targets, and tells what it cost whom. */
  readonly send: (target: Target, load: Wanted) => Promise<LoadReport>
  readonly stop: () => Promise<void>
}

export type Wanted = Pick<Load, 'connections' | 'rate' | 'warmUpMs' | 'measureMs'> & {
  readonly body?: string
  readonly path?: string
  /** Beside those of the target, as they go over the wire, each with its line end. */
  readonly headers?: string
  /** Which of our processes, where there are several. */
  readonly gateway?: number
  /** Other callers than those that the stage has. */
  readonly secretsFile?: string
}

type Options = {
  readonly callers: number
  readonly processes?: number
  readonly withPeer?: boolean
  readonly env?: Readonly<Record<string, string>>
  /** How long after each other the events of a stream come. */
  readonly everyMs?: number
}

const MODEL = 'vendor/model'
const ids = createIds({ clock: systemClock })

/** A chat completion of a kilobyte, as a client would write it. */
export const CHAT = JSON.stringify({
  model: MODEL,
  messages: [
    { role: 'system', content: 'You are a helpful assistant who answers in one sentence. '.repeat(4).trim() },
    {
      role: 'user',
      content: 'Tell me about the quick brown fox and the lazy dog that it jumps over. '.repeat(9).trim(),
    },
  ],
  max_tokens: 500,
  temperature: 0.7,
})

/** The same, streamed: it is answered by so many events. */
export function streamedChat(events: number): string {
  return CHAT.replace(
    /"max_tokens":\d+/,
    `"stream":true,"stream_options":{"include_usage":true},"max_tokens":${events}`,
  )
}

/** The same in Responses. */
export function streamedResponse(events: number): string {
  const { model, messages, temperature } = JSON.parse(CHAT)
  return JSON.stringify({ model, input: messages, temperature, stream: true, store: false, max_output_tokens: events })
}

export async function startStage(options: Options): Promise<Stage> {
  const { callers, processes = 1, withPeer = false, env = {}, everyMs = 5 } = options
  const folder = mkdtempSync(join(tmpdir(), 'farebox-bench-'))
  const secretsFile = join(folder, 'secrets')
  const postgres = await startPostgres({ folder, settings: settings() })
  const stops: (() => Promise<unknown>)[] = [postgres.remove]
  const stop = async () => {
    for (const one of stops.reverse()) await one()
  }
  const kept = <T extends { readonly stop: () => Promise<unknown> }>(part: T): T => {
    stops.push(part.stop)
    return part
  }
  try {
    pin('others', postgres.pid())
    await migrate({ url: new Secret(postgres.url()), log: silentLog })
    const pools = createPools({ url: new Secret(postgres.url()), log: silentLog })
    stops.push(() => pools.close())
    const pool = pools.rest
    if (hasStatements()) await pool.query('create extension if not exists pg_stat_statements')
    writeFileSync(secretsFile, '')
    const bulk = new pg.Pool({ connectionString: postgres.url(), max: 1, options: '-c synchronous_commit=off' })
    stops.push(() => bulk.end())
    const addCallers = (count: number) => makeCallers(bulk, count, secretsFile)
    await addCallers(callers)

    const upstream = kept(await startProgram('others', 'upstream.ts', [String(everyMs)]))
    const masterKey = makeMasterKey()
    await sell(pool, masterKey, upstream.port)
    const gateways: Gateway[] = []
    for (let count = 0; count < processes; count += 1) {
      const gateway = kept(
        await startGateway({
          databaseUrl: postgres.url(),
          env: { FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(), FAREBOX_LOG_LEVEL: 'warn', ...env },
        }),
      )
      pin('server', gateway.pid)
      gateways.push(gateway)
    }
    const bare = kept(await startProgram('server', 'bare-proxy.ts', [`http://127.0.0.1:${upstream.port}`]))
    const peer = withPeer ? kept(await startPeer()) : undefined

    const targets = (gateway: number) => ({
      ours: {
        port: portOf(gateways[gateway]?.url),
        pids: gateways.map(({ pid }) => pid),
        headers: '',
      },
      agent: {
        port: portOf(gateways[gateway]?.agentUrl),
        pids: gateways.map(({ pid }) => pid),
        headers: '',
      },
      bare: { port: bare.port, pids: [bare.pid], headers: '' },
      peer: { port: peer?.port ?? 0, pids: [peer?.pid ?? 0], headers: peerHeaders(upstream.port) },
    })
    return {
      postgres,
      pool,
      bulk,
      upstream,
      gateways,
      secretsFile,
      masterKey,
      addCallers,
      send(target, { body = CHAT, path = '/v1/chat/completions', headers: more = '', gateway = 0, ...load }) {
        const { port, pids, headers } = targets(gateway)[target]
        return send({
          path,
          headers: headers + more,
          body,
          port,
          secretsFile,
          ...load,
          pids: { server: pids, postgres: [postgres.pid()], upstream: [upstream.pid] },
        })
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Of a listener that the process may not have. */
function portOf(url: string | undefined): number {
  return url ? Number(new URL(url).port) : 0
}

/** What is durable is as in production; only the log of changes has room, so that no run is hit by a checkpoint and another not. */
function settings(): Record<string, string | number> {
  return {
    max_wal_size: '4GB',
    checkpoint_timeout: '30min',
    shared_buffers: '512MB',
    ...(hasStatements() && { shared_preload_libraries: 'pg_stat_statements' }),
  }
}

/** Whether PostgreSQL can tell what each kind of statement took. */
export function hasStatements(): boolean {
  return existsSync(join(findPostgres().folder, '../lib/pg_stat_statements.so'))
}

/** A model with a price, and the upstream as the one who answers for it. */
async function sell(pool: pg.Pool, masterKey: Secret, upstreamPort: number): Promise<void> {
  await saveModel(
    { pool },
    { id: MODEL, contextWindow: 200_000, outputCap: 4_096, outputMost: 64_000, tokenizer: 'bytes_3' },
  )
  await setModelPrice({ pool }, { model: MODEL, input: '0.50', output: '2.00' })
  for (const protocol of ['openai', 'openai_responses'] as const)
    await saveRoute({ pool, ids }, { model: MODEL, slot: 'openai', protocol, upstreamModel: 'upstream-model' })
  await saveUpstream(
    { pool, ids, seal: createSeal({ current: masterKey }) },
    {
      slot: 'openai',
      mode: 'live',
      baseUrl: `http://127.0.0.1:${upstreamPort}`,
      kind: 'native',
      credential: new Secret('upstream-key'),
    },
  )
}

import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { type Gateway, gatewayEnvironment, startGateway } from '../../harness/gateways.ts'
import { type Postgres, startPostgres } from '../../harness/postgres.ts'
import { findPostgres } from '../../harness/postgres-binaries.ts'
import { ROOT } from '../../harness/root.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { THIS_VERSION, type Version } from '../../harness/versions.ts'
import type { Secret } from '../../server/src/kernel/secret.ts'
import type { makeCallers } from './callers.ts'
import { pin } from './cores.ts'
import { createStarted } from './started.ts'

/** One version with a PostgreSQL of its own, its customers, a model for sale, and its processes. */
export type Installation = {
  readonly postgres: Postgres
  /** For statements that may take minutes, of what need not be durable at once. */
  readonly bulk: pg.Pool
  readonly gateways: readonly Gateway[]
  readonly secretsFile: string
  /** For one more process of ours on the same database. */
  readonly masterKey: Secret
  readonly addCallers: (count: number) => Promise<void>
  readonly stop: () => Promise<void>
}

type Options = {
  readonly version?: Version
  readonly callers: number
  /** Who answers for the model. */
  readonly upstreamPort: number
  /** The model is reached by all of them. */
  readonly protocols: readonly string[]
  readonly processes?: number
  readonly env?: Environment
}

type Environment = Readonly<Record<string, string | undefined>>
type Command = (...words: string[]) => Promise<unknown>

/** 724c812e and those before it knew no `none`. */
export const FOR_EVERY_VERSION = { FAREBOX_LOG_LEVEL: 'warn', FAREBOX_HTTP_TRUSTED_PROXIES: '127.0.0.1' }

export const MODEL = 'vendor/model'
const SLOT = 'openai'

/**
 * Set up as an operator would, by the version's own commands, so that an older one is set up in the same way. Only customers are
 * made as rows, because there are many; how, the version's own checkout knows.
 */
export async function startInstallation(options: Options): Promise<Installation> {
  const { version = THIS_VERSION, callers, processes = 1, env = {} } = options
  const folder = mkdtempSync(path.join(tmpdir(), 'farebox-bench-'))
  const started = createStarted()
  return started.orStop(async () => {
    const postgres = await startPostgres({ folder, settings: settings() })
    started.onStop(postgres.remove)
    pin('postgres', postgres.pid())
    const masterKey = makeMasterKey()
    const own = { FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(), ...FOR_EVERY_VERSION, ...env }
    const known = await migrate(version, { ...gatewayEnvironment(postgres.url()), ...own })
    const bulk = new pg.Pool({ connectionString: postgres.url(), max: 1, options: '-c synchronous_commit=off' })
    started.onStop(() => bulk.end())
    if (hasStatements()) await bulk.query('create extension if not exists pg_stat_statements')
    const secretsFile = path.join(folder, 'secrets')
    writeFileSync(secretsFile, '')
    const make = await callersOf(version)
    const addCallers = (count: number) => make(bulk, count, secretsFile)
    await addCallers(callers)
    await sell(commandsOf(version, known), options, folder)

    const gateways: Gateway[] = []
    for (let count = 0; count < processes; count += 1) {
      const program = path.relative(ROOT, version.program)
      const gateway = started.keep(await startGateway({ databaseUrl: postgres.url(), env: known, program }))
      pin('server', gateway.pid)
      gateways.push(gateway)
    }
    return { postgres, bulk, gateways, secretsFile, masterKey, addCallers, stop: started.stop }
  })
}

/** `farebox …` of a version. What is not ours in an environment is for gateways alone: a profiler, for one. */
function commandsOf({ program }: Version, env: Environment): Command {
  const ours = Object.fromEntries(Object.entries(env).filter(([name]) => name.startsWith('FAREBOX_')))
  return (...words) => promisify(execFile)(process.execPath, [program, ...words], { env: { ...process.env, ...ours } })
}

/**
 * Makes the tables, and gives the environment that the version understands. One that it does not know it refuses by name, and
 * is then taken away: a version without the setting does without. Nowhere else do the settings of versions differ.
 */
async function migrate(version: Version, env: Environment): Promise<Environment> {
  try {
    await commandsOf(version, env)('migrate')
    return env
  } catch (error) {
    const unknown = [...String(error).matchAll(/(FAREBOX_\w+) is not a setting/g)].map(([, name = '']) => name)
    if (unknown.length === 0) throw error
    const known = { ...env, ...Object.fromEntries(unknown.map((name) => [name, undefined])) }
    await commandsOf(version, known)('migrate')
    return known
  }
}

/** Rows differ between versions, as their tables do. */
async function callersOf({ folder }: Version): Promise<typeof makeCallers> {
  const module = (await import(path.join(folder, 'bench/load/callers.ts'))) as { makeCallers: typeof makeCallers }
  return module.makeCallers
}

/** A model with a price, and the upstream as the one who answers for it. */
async function sell(farebox: Command, { protocols, upstreamPort }: Options, folder: string): Promise<void> {
  const limits = ['--context-window', '200000', '--output-cap', '4096', '--output-most', '64000']
  await farebox('models', 'set', MODEL, ...limits, '--tokenizer', 'bytes_3')
  await farebox('models', 'price', MODEL, '--input', '0.50', '--output', '2.00')
  for (const protocol of protocols)
    await farebox(
      'models',
      'route',
      MODEL,
      '--slot',
      SLOT,
      '--protocol',
      protocol,
      '--upstream-model',
      'upstream-model',
    )
  const credentialFile = path.join(folder, 'credential')
  writeFileSync(credentialFile, 'upstream-key')
  await farebox('upstreams', 'add', SLOT, `http://127.0.0.1:${upstreamPort}`, '--credential-file', credentialFile)
}

/** What is durable is as in production; only the log of changes has room, so that no run is hit by a checkpoint and another not. */
function settings(): Record<string, string | number> {
  return {
    max_wal_size: '16GB',
    checkpoint_timeout: '2h',
    shared_buffers: '512MB',
    ...(hasStatements() && { shared_preload_libraries: 'pg_stat_statements' }),
  }
}

/** Whether PostgreSQL can tell what each kind of statement took. */
export function hasStatements(): boolean {
  return existsSync(path.join(findPostgres().folder, '../lib/pg_stat_statements.so'))
}

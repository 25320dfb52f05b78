import pg from 'pg'
import { z } from 'zod'
import { type Clock, systemClock } from '../kernel/clock.ts'
import type { Secret } from '../kernel/secret.ts'
import type { Log } from '../telemetry/log.ts'
import { connectionSettings, createSockets } from './connection.ts'
import {
  type Applied,
  MIGRATIONS_FOLDER,
  type Migration,
  missingFrom,
  readFunctions,
  readMigrations,
} from './migrations.ts'

type Parts = {
  /** A direct connection: a pooler between us and PostgreSQL would lose the session's lock. */
  readonly url: Secret
  readonly log: Log
  readonly clock?: Clock
  readonly folder?: string
  /** How long to wait while another process migrates. */
  readonly turnTimeoutMs?: number
  /** How long one statement may wait for a lock. Everybody who comes after it waits too, so it is short. */
  readonly lockTimeoutMs?: number
  readonly statementTimeoutMs?: number
}

/** Of all advisory locks in the database, the one of migrations: "fare" in ASCII. */
const LOCK = 0x66617265
const TURN_RETRY_MS = 100
const CONNECT_TIMEOUT_MS = 10_000
const ANSWER_MARGIN_MS = 10_000

/**
 * Brings the database to this program's version and says which files were applied. Each file and the note that it was
 * applied commit together, so one that fails leaves nothing: it is missing as before, and can be run again. With the last of them all
 * functions become those of this version: whoever changes one adds a migration, be it one that only says why.
 */
export async function migrate(parts: Parts): Promise<readonly string[]> {
  const { url, log, folder = MIGRATIONS_FOLDER, statementTimeoutMs = 10 * 60_000 } = parts
  const migrations = await readMigrations(folder)
  const sockets = createSockets()
  const client = new pg.Client(
    connectionSettings({
      url,
      sockets,
      applicationName: 'farebox migrate',
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      statementTimeoutMs,
      queryTimeoutMs: statementTimeoutMs + ANSWER_MARGIN_MS,
    }),
  )
  // The statement that was running rejects as well, and says more.
  client.on('error', () => {})
  try {
    await client.connect()
    await awaitTurn(client, parts)
    await client.query(`create table if not exists schema_migrations (
      version integer primary key,
      file text not null,
      checksum text not null,
      applied_at timestamptz not null default clock_timestamp()
    )`)
    const missing = missingFrom(await readApplied(client), migrations)
    const functions = await readFunctions(folder)
    for (const migration of missing) {
      await apply(client, migration, migration === missing.at(-1) ? functions : '', parts.lockTimeoutMs ?? 5_000)
      log.info('migration applied', { version: migration.file })
    }
    await client.end()
    return missing.map(({ file }) => file)
  } finally {
    sockets.destroy()
  }
}

/** For a server's start: throws unless every migration of ours was applied as it is, and not too many more. */
export async function requireMigrated(pool: pg.Pool, folder: string = MIGRATIONS_FOLDER): Promise<void> {
  const migrations = await readMigrations(folder)
  const [first, ...more] = missingFrom(await readApplied(pool), migrations)
  if (first === undefined) return
  const others = more.length === 0 ? '' : ` and ${more.length} more`
  throw new Error(`Migration ${first.file}${others} has not been applied to the database: run farebox migrate.`)
}

/** Trying again instead of waiting in PostgreSQL, where a waiter would itself be an open transaction. */
async function awaitTurn(client: pg.Client, { clock = systemClock, turnTimeoutMs = 120_000 }: Parts): Promise<void> {
  const deadlineMs = clock.monotonicMs() + turnTimeoutMs
  for (;;) {
    const { rows } = await client.query('select pg_try_advisory_lock($1) as mine', [LOCK])
    if (z.tuple([z.object({ mine: z.boolean() })]).parse(rows)[0].mine) return
    if (clock.monotonicMs() >= deadlineMs)
      throw new Error(`Another process has been migrating the database for ${turnTimeoutMs} ms: look at it, or wait.`)
    await clock.sleep(TURN_RETRY_MS)
  }
}

async function apply(client: pg.Client, migration: Migration, functions: string, lockTimeoutMs: number): Promise<void> {
  const { version, file, text, checksum } = migration
  try {
    await client.query('begin')
    await client.query(`set local lock_timeout = ${lockTimeoutMs}`)
    await client.query(text)
    if (functions !== '') await replaceFunctions(client, functions)
    const record = 'insert into schema_migrations (version, file, checksum) values ($1, $2, $3)'
    await client.query(record, [version, file, checksum])
    await client.query('commit')
  } catch (error) {
    if (error instanceof pg.DatabaseError && (await couldRollBack(client)))
      throw new Error(`Migration ${file} failed and was rolled back: ${describe(error, text)}`, { cause: error })
    // The connection was lost, perhaps with the commit: the next run applies the file, or finds it applied.
    throw new Error(`Migration ${file} was interrupted: run farebox migrate again.`, { cause: error })
  }
}

async function replaceFunctions(client: pg.Client, functions: string): Promise<void> {
  // They name each other, in whichever order they come.
  await client.query('set local check_function_bodies = off')
  await client.query(functions)
  await client.query('select make_charge_partitions()')
}

async function couldRollBack(client: pg.Client): Promise<boolean> {
  return client.query('rollback').then(
    () => true,
    () => false,
  )
}

function describe({ message, code, position }: pg.DatabaseError, text: string): string {
  const line = position === undefined ? '' : `, line ${text.slice(0, Number(position)).split('\n').length}`
  return `${message} (${code ?? 'no code'}${line})`
}

const appliedRows = z.array(z.object({ version: z.int(), file: z.string(), checksum: z.string() }))

async function readApplied(from: pg.Pool | pg.Client): Promise<readonly Applied[]> {
  const exists = await from.query(`select to_regclass('schema_migrations') is not null as there`)
  if (!z.tuple([z.object({ there: z.boolean() })]).parse(exists.rows)[0].there) return []
  const { rows } = await from.query('select version, file, checksum from schema_migrations order by version')
  return appliedRows.parse(rows)
}

import { after } from 'node:test'
import pg from 'pg'
import { Secret } from '../server/src/kernel/secret.ts'
import { migrate } from '../server/src/storage/migrate.ts'
import { silentLog } from '../server/src/telemetry/log.ts'
import { type Postgres, startPostgres } from './postgres.ts'

const RUN_URL = 'HARNESS_POSTGRES_URL'
const RUN_TEMPLATE = 'HARNESS_POSTGRES_TEMPLATE'
const TEMPLATE = 'farebox_template'

/** The one PostgreSQL of a test run. Its address reaches the test processes by their environment. */
export async function startTestPostgres(): Promise<Postgres> {
  const postgres = await startPostgres()
  await makeTemplate(postgres.url(), TEMPLATE)
  process.env[RUN_URL] = postgres.url()
  process.env[RUN_TEMPLATE] = TEMPLATE
  return postgres
}

/** Does some work with a migrated database, on a PostgreSQL that is there for it alone. */
export async function withMigratedDatabase<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const postgres = await startTestPostgres()
  const client = new pg.Client(withDatabase(postgres.url(), TEMPLATE))
  try {
    await client.connect()
    return await work(client)
  } finally {
    await client.end()
    await postgres.remove()
  }
}

/**
 * For a run inside a run, whose migrations may differ: it copies databases of a template of its own, on the PostgreSQL
 * of the run around it where there is one.
 */
export async function joinTestPostgres(): Promise<Pick<Postgres, 'remove'>> {
  const server = process.env[RUN_URL]
  if (server === undefined) return startTestPostgres()
  const template = `template_${process.pid}`
  const remove = () => execute(server, `drop database ${template} with (force)`)
  try {
    await makeTemplate(server, template)
  } catch (error) {
    await remove()
    throw error
  }
  process.env[RUN_TEMPLATE] = template
  return { remove }
}

/**
 * A database of its own for a test file, copied from the migrated template, dropped when the file is done. To be called
 * at the top of the file or in a test: what is called in a `before` hook is over when the hook is.
 */
export async function freshDatabase(): Promise<{ readonly url: string }> {
  const own = process.env[RUN_URL] === undefined ? await startTestPostgres() : undefined
  const server = process.env[RUN_URL] ?? ''
  const name = `test_${process.pid}_${databases++}`
  await execute(server, `create database ${name} template ${process.env[RUN_TEMPLATE] ?? TEMPLATE}`)
  after(async () => {
    await execute(server, `drop database ${name} with (force)`)
    // A single file can be run by `node --test` alone; it then brings its own server.
    await own?.remove()
  })
  return { url: withDatabase(server, name) }
}

let databases = 0

async function makeTemplate(server: string, template: string): Promise<void> {
  await execute(server, `create database ${template}`)
  await migrate({ url: new Secret(withDatabase(server, template)), log: silentLog })
}

async function execute(url: string, sql: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}

function withDatabase(url: string, name: string): string {
  const changed = new URL(url)
  changed.pathname = `/${name}`
  return changed.href
}

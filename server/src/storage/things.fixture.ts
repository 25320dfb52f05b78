import pg from 'pg'
import { z } from 'zod'
import { systemClock } from '../kernel/clock.ts'
import { Secret } from '../kernel/secret.ts'
import { type Log, silentLog } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createCache } from './cache.ts'
import { createChangeFeed } from './change-feed.ts'
import { createPools } from './pools.ts'

/** For tests: things with a value in PostgreSQL, as one process sees them through a feed and a cache of its own. */
export function createThings(url: string, log: Log = silentLog) {
  const secret = new Secret(url)
  const metrics = createMetrics()
  const pools = createPools({ url: secret, log, connectTimeoutMs: 1_000, restStatementTimeoutMs: 1_000 })
  const feed = createChangeFeed({ url: secret, log, clock: systemClock, metrics })
  const told: { readonly key: string; readonly atMs: number }[] = []
  let resets = 0
  feed.subscribe('thing', {
    changed: (key) => told.push({ key, atMs: Date.now() }),
    reset: () => {
      resets += 1
    },
  })
  const cache = createCache<string>({
    name: 'things',
    topic: 'thing',
    load: async (key) => {
      const { rows } = await pools.rest.query('select value from read_thing($1) as value', [key])
      return z.tuple([z.object({ value: z.string().nullable() })]).parse(rows)[0].value ?? undefined
    },
    feed,
    clock: systemClock,
    metrics,
    maxEntries: 10_000,
  })
  feed.start()
  return {
    feed,
    cache,
    metrics,
    told,
    resets: () => resets,
    async close() {
      await Promise.all([feed.close(), pools.close()])
    },
  }
}

/** Every read of a thing leaves a row, so that a test can count what really reached PostgreSQL. */
export async function createThingsTable(url: string, keys: readonly string[]): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(`
      create table things (key text primary key, value text not null);
      create table thing_reads (key text not null);
      create function read_thing(wanted text) returns text language sql volatile as $$
        insert into thing_reads values (wanted);
        select value from things where key = wanted;
      $$;`)
    await client.query(`insert into things select unnest($1::text[]), 'first'`, [keys])
  })
}

/** Changes a thing as a process would; answers with the time right after the commit. */
export async function changeThing(client: pg.ClientBase | pg.Pool, key: string, value: string): Promise<number> {
  await client.query(
    `with changed as (
       insert into things values ($1, $2) on conflict (key) do update set value = excluded.value returning key
     ) select record_change('thing', key) from changed`,
    [key, value],
  )
  return Date.now()
}

export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

export async function until(
  condition: () => boolean | Promise<boolean>,
  deadlineMs: number,
  what = 'it',
): Promise<number> {
  const startedAtMs = systemClock.monotonicMs()
  while (!(await condition())) {
    if (systemClock.monotonicMs() - startedAtMs > deadlineMs)
      throw new Error(`${what} did not happen in ${deadlineMs} ms`)
    await systemClock.sleep(5)
  }
  return systemClock.monotonicMs() - startedAtMs
}

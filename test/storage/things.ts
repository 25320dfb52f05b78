import type pg from 'pg'
import { z } from 'zod'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { createCache } from '../../server/src/storage/cache.ts'
import { createChangeFeed } from '../../server/src/storage/change-feed.ts'
import { createPools } from '../../server/src/storage/pools.ts'
import { type Log, silentLog } from '../../server/src/telemetry/log.ts'
import { createMetrics } from '../../server/src/telemetry/metrics.ts'
import { withClient } from './with-client.ts'

/** Things with a value in PostgreSQL, as one process sees them through a feed and a cache of its own. */
export function createThings(url: string, log: Log = silentLog, patienceMs = 1_000) {
  const secret = new Secret(url)
  const metrics = createMetrics()
  const pools = createPools({ url: secret, log, connectTimeoutMs: patienceMs, restStatementTimeoutMs: patienceMs })
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

import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { judge } from '../../harness/figures.ts'
import { type Postgres, startPostgres } from '../../harness/postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { pruneChanges } from '../../server/src/storage/change-log.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { createPools } from '../../server/src/storage/pools.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { changeThing, createThings, createThingsTable } from './things.ts'
import { withClient } from './with-client.ts'

const PROOF = 'change-log-outage'
/** What a cache allows. */
const LIMIT_MS = 1_000
/** Judged in proofs only. */
const BACK_WITHIN = { unit: 'ms', atMost: 3_000 } as const
const SERVED_WITHIN = { unit: 'ms', atMost: LIMIT_MS } as const

describe('the change feed', () => {
  let postgres: Postgres
  let things: ReturnType<typeof createThings>
  const lines: string[] = []

  before(async () => {
    // The WAL writer sleeps, so that a crash loses what no commit has flushed.
    const sleepy = { wal_writer_delay: '10s', wal_writer_flush_after: '1GB', autovacuum: 'off' }
    postgres = await startPostgres({ settings: sleepy })
    await migrate({ url: new Secret(postgres.url()), log: silentLog })
    await createThingsTable(postgres.url(), ['a'])
  })
  after(() => postgres.remove())

  beforeEach(async () => {
    lines.length = 0
    const note = (message: string) => lines.push(message)
    things = createThings(postgres.url(), { ...silentLog, info: note, warn: note, error: note })
    await until(() => things.feed.lagMs() < LIMIT_MS, PATIENCE_MS, 'the start of the feed')
  })
  afterEach(() => things.close())

  const change = (value: string) => withClient(postgres.url(), (client) => changeThing(client, 'a', value))
  const isBack = () => things.feed.lagMs() < LIMIT_MS
  const hasTold = () => things.told.some(({ key }) => key === 'a')

  /** Waits until the cache gives the value; how long that took. What it gave before is never served longer than that. */
  function arrival(value: string): Promise<number> {
    const hasArrived = async () => (await things.cache.get('a').catch(() => '')) === value
    return until(hasArrived, PATIENCE_MS, `the value ${value}`)
  }

  it('misses nothing when PostgreSQL is killed and comes back, and no value is served meanwhile', async () => {
    await change('before the kill')
    await arrival('before the kill')
    things.told.length = 0
    await postgres.kill()
    await systemClock.sleep(LIMIT_MS + 300)
    await assert.rejects(things.cache.get('a'))
    assert.ok(things.feed.lagMs() > LIMIT_MS)
    const reportsLag = async () => /farebox_change_log_lag_seconds [1-9]/.test(await things.metrics.expose())
    await until(reportsLag, PATIENCE_MS, 'the report of the lag')
    await postgres.start()
    await change('after the kill')
    judge(PROOF, 'killed: a change that is made after it', SERVED_WITHIN, [await arrival('after the kill')])
    judge(PROOF, 'killed: the return of the feed', BACK_WITHIN, [
      await until(isBack, PATIENCE_MS, 'the return of the feed'),
    ])
    await until(hasTold, PATIENCE_MS, 'the change')
    assert.equal(things.resets(), 1, 'only the reset of the start')
    const feedLines = lines.filter((line) => line.includes('change log'))
    assert.deepEqual(feedLines, ['the change log could not be read', 'the change log is read again'])
  })

  it('misses no change whose transaction id had been given out before a crash', async () => {
    await change('flushed')
    const lost = await withClient(postgres.url(), async (client) => {
      // What it would flush by itself must be lost.
      const writers = await client.query("select pid from pg_stat_activity where backend_type = 'walwriter'")
      process.kill(Number(writers.rows[0].pid), 'SIGSTOP')
      await client.query('begin; select pg_current_xact_id(); rollback;'.repeat(500))
      const { rows } = await client.query('select pg_snapshot_xmin(pg_current_snapshot())::text as horizon')
      await until(() => things.feed.lagMs() < 50, PATIENCE_MS)
      await until(() => things.feed.lagMs() > 100, PATIENCE_MS)
      await until(() => things.feed.lagMs() < 50, PATIENCE_MS, 'a read past those transactions')
      await postgres.kill()
      return BigInt(rows[0].horizon)
    })
    things.told.length = 0
    await postgres.start()
    await withClient(postgres.url(), async (client) => {
      await changeThing(client, 'a', 'again')
      const { rows } = await client.query('select max(transaction_id::text::bigint)::text as id from change_log')
      assert.ok(BigInt(rows[0].id) < lost, `${rows[0].id} was not given out before ${lost}`)
      // What a reader that only compares numbers would take as the end of it.
      await client.query('begin; select pg_current_xact_id(); rollback;'.repeat(1_000))
    })
    await until(isBack, PATIENCE_MS, 'the return of the feed')
    await until(hasTold, PATIENCE_MS, 'the change')
    assert.equal(things.resets(), 1, 'only the reset of the start')
  })

  it('misses nothing when PostgreSQL hangs and goes on, and no value is served meanwhile', async () => {
    await change('before the pause')
    await arrival('before the pause')
    things.told.length = 0
    postgres.pause()
    await systemClock.sleep(LIMIT_MS + 1_500)
    await assert.rejects(things.cache.get('a'))
    postgres.resume()
    await change('after the pause')
    judge(PROOF, 'paused: a change that is made after it', SERVED_WITHIN, [await arrival('after the pause')])
    judge(PROOF, 'paused: the return of the feed', BACK_WITHIN, [
      await until(isBack, PATIENCE_MS, 'the return of the feed'),
    ])
    await until(hasTold, PATIENCE_MS, 'the change')
    assert.equal(things.resets(), 1, 'only the reset of the start')
  })

  it('misses nothing when its connection is cut', async () => {
    await arrival(await currentValue())
    await withClient(postgres.url(), async (client) => {
      await client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'farebox changes'`,
      )
      await changeThing(client, 'a', 'after the cut')
    })
    judge(PROOF, 'cut: a change that is made after it', SERVED_WITHIN, [await arrival('after the cut')])
    await until(hasTold, PATIENCE_MS, 'the change')
    assert.equal(things.resets(), 1, 'only the reset of the start')
  })

  it('has everything dropped when it was away for longer than changes are kept', async (t) => {
    await withClient(postgres.url(), (client) => client.query('create database away'))
    const url = postgres.url('away')
    await migrate({ url: new Secret(url), log: silentLog })
    await createThingsTable(url, ['a'])
    const away = createThings(url, silentLog, PATIENCE_MS)
    t.after(away.close)
    await until(() => away.feed.lagMs() < LIMIT_MS, PATIENCE_MS, 'the start of the feed')
    assert.equal(await away.cache.get('a'), 'first')
    const pools = createPools({ url: new Secret(url), log: silentLog })
    t.after(() => pools.close())
    await pools.rest.query('select 1')
    await withClient(postgres.url(), (client) => client.query('alter database away allow_connections false'))
    await pools.rest.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where application_name = 'farebox changes' and datname = 'away'`,
    )
    await changeThing(pools.rest, 'a', 'second')
    await changeThing(pools.rest, 'b', 'other')
    assert.ok((await pruneChanges(pools.rest, { olderThanMs: 0 })) > 0)
    await withClient(postgres.url(), (client) => client.query('alter database away allow_connections true'))
    judge(PROOF, 'away: the reset', BACK_WITHIN, [await until(() => away.resets() === 2, PATIENCE_MS, 'the reset')])
    assert.equal(await away.cache.get('a'), 'second')
    assert.deepEqual(away.told, [])
  })

  it('closes at once while PostgreSQL hangs', async () => {
    postgres.pause()
    try {
      await systemClock.sleep(500)
      const startedAtMs = systemClock.monotonicMs()
      await things.feed.close()
      const tookMs = systemClock.monotonicMs() - startedAtMs
      judge(PROOF, 'closing while PostgreSQL hangs', { unit: 'ms', atMost: 500 }, [tookMs])
    } finally {
      postgres.resume()
    }
  })

  async function currentValue(): Promise<string> {
    return withClient(postgres.url(), async (client) => {
      const { rows } = await client.query(`select value from things where key = 'a'`)
      return rows[0].value
    })
  }
})

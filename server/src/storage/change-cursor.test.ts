import assert from 'node:assert/strict'
import { after, beforeEach, describe, it } from 'node:test'
import pg from 'pg'
import { startPostgres } from '../../../harness/postgres.ts'
import { Secret } from '../kernel/secret.ts'
import { silentLog } from '../telemetry/log.ts'
import { createChangeCursor } from './change-cursor.ts'
import { pruneChanges } from './change-log.ts'
import { connectionSettings, createSockets } from './connection.ts'
import { migrate } from './migrate.ts'
import { createPools } from './pools.ts'

// A server of its own: any open transaction of the server, in whatever database, holds the horizon back.
const postgres = await startPostgres({ settings: { autovacuum: 'off' } })
const url = new Secret(postgres.url())
await migrate({ url, log: silentLog })
const pools = createPools({ url, log: silentLog })
const open: pg.Client[] = []
after(async () => {
  await Promise.all([pools.close(), ...open.map((client) => client.end())])
  await postgres.remove()
})

async function connect(): Promise<pg.Client> {
  const common = { url, sockets: createSockets(), applicationName: 'test' }
  const client = new pg.Client(connectionSettings({ ...common, connectTimeoutMs: 5_000, queryTimeoutMs: 5_000 }))
  await client.connect()
  open.push(client)
  return client
}

/** A reader with all that it was told since it was last asked. */
async function createReader(options: { pageRows?: number; readRowsMax?: number } = {}) {
  const client = await connect()
  let told: string[] = []
  const readToEnd = createChangeCursor({
    changed: ({ topic, key }) => told.push(topic === 'thing' ? key : `${topic} ${key}`),
    reset: () => told.push('RESET'),
    ...options,
  })
  return async () => {
    await readToEnd(client)
    const answer = told
    told = []
    return answer
  }
}

async function record(client: pg.ClientBase | pg.Pool, ...keys: string[]): Promise<void> {
  for (const key of keys) await client.query(`select record_change('thing', $1)`, [key])
}

/** In one transaction, whose hint nobody here waits for. */
async function recordMany(count: number): Promise<void> {
  await writer.query(`insert into change_log (topic, key) select 'thing', 'many ' || n from generate_series(1, $1) n`, [
    count,
  ])
}

const writer = await connect()
const slow = await connect()
const reader = await createReader()

describe('a reader of the change log', () => {
  beforeEach(async () => {
    await reader()
  })

  it('starts at the end of the log, and says that what was before is not known', async () => {
    await record(writer, 'before')
    const fresh = await createReader()
    assert.deepEqual(await fresh(), ['RESET'])
    await record(writer, 'after')
    assert.deepEqual(await fresh(), ['after'])
    assert.deepEqual(await fresh(), [])
  })

  it('is told of each change once, in order', async () => {
    await record(writer, 'a', 'b')
    assert.deepEqual(await reader(), ['a', 'b'])
    assert.deepEqual(await reader(), [])
    await record(writer, 'a')
    assert.deepEqual(await reader(), ['a'])
  })

  it('is told nothing of a transaction that was rolled back', async () => {
    await writer.query('begin')
    await record(writer, 'never')
    await writer.query('savepoint s')
    await record(writer, 'never')
    assert.deepEqual(await reader(), [])
    await writer.query('rollback')
    await record(writer, 'a')
    assert.deepEqual(await reader(), ['a'])
  })

  it('is told of a change that was recorded first and committed last', async () => {
    await slow.query('begin')
    await record(slow, 'slow')
    await record(writer, 'fast')
    assert.deepEqual(await reader(), ['fast'])
    await slow.query('commit')
    assert.deepEqual(await reader(), ['slow'])
    assert.deepEqual(await reader(), [])
  })

  it('is told at once of changes beside a transaction that stays open, each once', async () => {
    await slow.query('begin')
    await slow.query('select pg_current_xact_id()')
    for (const key of ['a', 'b', 'c']) {
      await record(writer, key)
      assert.deepEqual(await reader(), [key])
    }
    assert.deepEqual(await reader(), [])
    // Its transaction is older than the others', its row is younger.
    await record(slow, 'late')
    assert.deepEqual(await reader(), [])
    await slow.query('commit')
    assert.deepEqual(await reader(), ['late'])
    assert.deepEqual(await reader(), [])
  })

  it('is told of what a subtransaction recorded when the whole commits', async () => {
    await slow.query('begin; savepoint s')
    await record(slow, 'inner')
    await slow.query('release s')
    await record(writer, 'other')
    assert.deepEqual(await reader(), ['other'])
    await slow.query('commit')
    assert.deepEqual(await reader(), ['inner'])
  })

  it('reads page by page, beyond open transactions too', async () => {
    const small = await createReader({ pageRows: 3 })
    await small()
    await slow.query('begin')
    await record(slow, 'slow')
    const keys = Array.from({ length: 10 }, (_, n) => `k${n}`)
    await record(writer, ...keys)
    assert.deepEqual(await small(), keys)
    assert.deepEqual(await small(), [])
    await slow.query('commit')
    assert.deepEqual(await small(), ['slow'])
    await record(writer, ...keys)
    assert.deepEqual(await small(), keys)
    assert.deepEqual(await small(), [])
  })

  it('starts over when it is so far behind that it would have to read too much', async () => {
    const bounded = await createReader({ pageRows: 3, readRowsMax: 6 })
    await bounded()
    await record(writer, ...Array.from({ length: 8 }, (_, n) => `k${n}`))
    assert.equal((await bounded()).at(-1), 'RESET')
    await record(writer, 'a')
    assert.deepEqual(await bounded(), ['a'])
  })

  it('starts over once when more than it reads at once is beyond an open transaction, and misses nothing after', async () => {
    const far = await createReader()
    await far()
    await slow.query('begin')
    await record(slow, 'slow')
    const middle = await connect()
    await middle.query('begin')
    await middle.query('select pg_current_xact_id()')
    await recordMany(25_000)
    assert.equal((await far()).at(-1), 'RESET')
    for (const key of ['a', 'b', 'c']) {
      assert.deepEqual(await far(), [])
      await record(writer, key)
      assert.deepEqual(await far(), [key])
    }
    await record(middle, 'middle')
    await middle.query('commit')
    assert.deepEqual(await far(), ['middle'])
    await slow.query('commit')
    assert.deepEqual(await far(), ['slow'])
    assert.deepEqual(await far(), [])
  })

  it('never starts over beside an open transaction, however many changes it has been told of meanwhile', async () => {
    const steady = await createReader({ pageRows: 3, readRowsMax: 6 })
    await steady()
    await slow.query('begin')
    await record(slow, 'slow')
    for (let n = 0; n < 10; n += 1) {
      await record(writer, `a${n}`, `b${n}`)
      assert.deepEqual(await steady(), [`a${n}`, `b${n}`])
    }
    await slow.query('commit')
    assert.deepEqual(await steady(), ['slow'])
  })

  it('starts over when a transaction that was open for long recorded too much', async () => {
    const bounded = await createReader({ pageRows: 3, readRowsMax: 6 })
    await bounded()
    await slow.query('begin')
    await record(slow, ...Array.from({ length: 7 }, (_, n) => `k${n}`))
    await record(writer, 'a')
    assert.deepEqual(await bounded(), ['a'])
    await slow.query('commit')
    assert.deepEqual(await bounded(), ['RESET'])
    assert.deepEqual(await bounded(), [])
  })

  it('starts over when what a transaction recorded was pruned as soon as it had committed', async () => {
    await slow.query('begin')
    await record(slow, 'slow')
    await record(writer, 'a')
    assert.deepEqual(await reader(), ['a'])
    await slow.query('commit')
    assert.ok((await pruneChanges(pools.rest, { olderThanMs: 0 })) > 0)
    assert.deepEqual(await reader(), ['RESET'])
    assert.deepEqual(await reader(), [])
  })

  it('starts over when changes that it had not read were pruned; one that had read all goes on', async () => {
    const behind = await createReader()
    await behind()
    await record(writer, 'a', 'b')
    await reader()
    assert.ok((await pruneChanges(pools.rest, { olderThanMs: 0 })) > 0)
    assert.deepEqual(await reader(), [])
    assert.deepEqual(await behind(), ['RESET'])
    await record(writer, 'c')
    assert.deepEqual(await reader(), ['c'])
    assert.deepEqual(await behind(), ['c'])
  })

  it('starts over when the row at its place is another, as after a failover that lost it', async () => {
    await record(writer, 'a')
    await reader()
    await writer.query(`update change_log set changed_at = changed_at + interval '1 microsecond'`)
    assert.deepEqual(await reader(), ['RESET'])
  })

  it('finds a place again after the log was emptied', async () => {
    await writer.query('delete from change_log')
    assert.deepEqual(await reader(), ['RESET'])
    assert.deepEqual(await reader(), ['RESET'])
    await record(writer, 'a')
    assert.deepEqual(await reader(), ['a'])
  })

  it('is not held up by rows of another cluster, whose transactions are still to come here', async () => {
    await writer.query(
      `insert into change_log (transaction_id, topic, key) values ('9000000000000', 'thing', 'restored')`,
    )
    await record(writer, 'a')
    assert.deepEqual(await reader(), ['a'])
    assert.deepEqual(await reader(), [])
    await writer.query(`delete from change_log where key = 'restored'`)
  })
})

describe('pruning the change log', () => {
  async function keys(): Promise<unknown[]> {
    const { rows } = await pools.rest.query('select key from change_log order by transaction_id, id')
    return rows.map(({ key }) => key)
  }

  beforeEach(async () => {
    await writer.query('delete from change_log')
    await record(writer, 'oldest', 'older', 'old', 'newest')
  })

  it('deletes what is older than told, but the newest however old it is', async () => {
    assert.equal(await pruneChanges(pools.rest, { olderThanMs: 60_000 }), 0)
    assert.equal(await pruneChanges(pools.rest, { olderThanMs: 0 }), 3)
    assert.deepEqual(await keys(), ['newest'])
    assert.equal(await pruneChanges(pools.rest, { olderThanMs: 0 }), 0)
  })

  it('deletes nothing from the middle of the log', async () => {
    await writer.query(
      `update change_log set changed_at = changed_at - interval '1 hour' where key in ('oldest', 'old')`,
    )
    assert.equal(await pruneChanges(pools.rest, { olderThanMs: 60_000 }), 1)
    assert.deepEqual(await keys(), ['older', 'old', 'newest'])
  })

  it('leaves what a transaction that is still open may come before', async () => {
    await slow.query('begin')
    await slow.query('select pg_current_xact_id()')
    await record(writer, 'beside')
    assert.equal(await pruneChanges(pools.rest, { olderThanMs: 0 }), 3)
    assert.deepEqual(await keys(), ['newest', 'beside'])
    await slow.query('commit')
  })
})

import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import pg from 'pg'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { createColumnTypes } from './column-types.ts'
import { runPrepared } from './prepared.ts'

const database = await freshDatabase()
const pools: pg.Pool[] = []
after(() => Promise.all(pools.map((pool) => pool.end())))

/** One connection at a time, and what was asked of all that there were. */
function open(config: pg.PoolConfig = {}) {
  const pool = new pg.Pool({ connectionString: database.url, types: createColumnTypes(), max: 1, ...config })
  pools.push(pool)
  const asked: string[] = []
  pool.on('error', () => {})
  pool.on('connect', (client) => {
    client.on('error', () => {})
    const connection: unknown = Reflect.get(client, 'connection')
    assert.ok(connection instanceof pg.Connection)
    for (const what of ['parse', 'describe', 'bind', 'execute'] as const) {
      const ask = connection[what].bind(connection)
      connection[what] = (...words: [never, boolean]) => {
        asked.push(what)
        ask(...words)
      }
    }
  })
  const run = (text: string, values: Parameters<typeof runPrepared>[1]['values'] = [], name = text.slice(0, 60)) =>
    runPrepared(pool, { name, text, values })
  const connections = async () => (await run('select pg_backend_pid()'))[0]?.[0]
  return { pool, asked, run, connections }
}

describe('a prepared statement', () => {
  it('is prepared and described once for a connection, and answers with values of the right types each time', async () => {
    const { asked, run } = open()
    const text = "select n, n::bigint * 10, n::text, n > 1, null, array['a', 'b'] from generate_series(1, $1) n"
    for (const most of [2, 1, 0, 2]) {
      const rows = [1, 2].slice(0, most).map((n) => [n, BigInt(n) * 10n, String(n), n > 1, null, ['a', 'b']])
      assert.deepEqual(await run(text, [most]), rows)
    }
    assert.deepEqual(asked, [
      'parse',
      'bind',
      'describe',
      'execute',
      ...Array.from({ length: 3 }, () => ['bind', 'execute']).flat(),
    ])
  })

  it('has no columns where it answers nothing, and is known all the same', async () => {
    const { asked, run } = open()
    for (let times = 0; times < 3; times += 1)
      assert.deepEqual(await run('delete from accounts where id = $1', [null]), [])
    assert.equal(asked.filter((what) => what === 'parse').length, 1)
  })

  it('is prepared by each connection', async () => {
    const { asked, pool, run } = open({ max: 2 })
    const both = await Promise.all([run('select pg_sleep(0.2)', [], 'slow'), run('select 1', [], 'quick')])
    assert.equal(both.length, 2)
    assert.equal(pool.totalCount, 2)
    await Promise.all([run('select pg_sleep(0.2)', [], 'slow'), run('select pg_sleep(0.2)', [], 'slow')])
    assert.equal(asked.filter((what) => what === 'parse').length, 3)
  })

  it('takes values that are encoded already, and texts', async () => {
    const { run } = open()
    const bytes = Buffer.from([0, 0, 0, 7])
    assert.deepEqual(await run('select $1::integer, $2::text, $3::integer', [bytes, 'ä', '8']), [[7, 'ä', 8]])
  })

  it('fails alone, and its connection is dropped: what another one has prepared is not taken for its own', async () => {
    const { run, connections, asked } = open()
    const text = 'select 6 / $1::integer'
    const before = await connections()
    assert.deepEqual(await run(text, [2]), [[3]])
    await assert.rejects(run(text, [0]), { code: '22012' })
    assert.notEqual(await connections(), before)
    assert.deepEqual(await run(text, [3]), [[2]])
    await assert.rejects(run('no sql'), { code: '42601' })
    assert.deepEqual(await run(text, [6]), [[1]])
    assert.equal(asked.filter((what) => what === 'parse').length, 6)
  })

  it('fails where its connection is lost, and where its time is over', async () => {
    const { run, connections } = open()
    const before = await connections()
    const lost = assert.rejects(run('select pg_sleep(600)', [], 'endless'))
    const other = new pg.Client(database.url)
    await other.connect()
    await other.query('select pg_terminate_backend($1)', [before])
    await other.end()
    await lost
    assert.notEqual(await connections(), before)
    const hasty = open({ query_timeout: 500 })
    await assert.rejects(hasty.run('select pg_sleep(600)', [], 'endless'), /timeout/)
    assert.equal(hasty.pool.totalCount, 0)
  })

  it('fails where a column can not be read, at the end of its answer', async () => {
    const types = createColumnTypes()
    types.setTypeParser(23, 'text', () => {
      throw new Error('no number of ours')
    })
    const { run } = open({ types })
    await assert.rejects(run('select 1, 2'), /no number of ours/)
    assert.deepEqual(await run("select 'a'"), [['a']])
  })

  it('fails where a constraint that is checked at its end refuses what it has answered already', async () => {
    const { pool, run } = open()
    await pool.query('create table deferred (id integer unique deferrable initially deferred)')
    const text = 'insert into deferred (id) values ($1) returning id'
    assert.deepEqual(await run(text, [1]), [[1]])
    await assert.rejects(run(text, [1]), { code: '23505' })
    assert.deepEqual(await run(text, [2]), [[2]])
    assert.deepEqual(await run('select id from deferred order by id'), [[1], [2]])
  })

  it('fails once where its columns have changed, and has the new ones by another connection', async () => {
    const { run, pool } = open()
    await pool.query('create table changed (id integer)')
    await pool.query('insert into changed (id) values (7)')
    const text = 'select * from changed'
    assert.deepEqual(await run(text), [[7]])
    await pool.query("alter table changed alter id type bigint, add name text default 'a'")
    await assert.rejects(run(text), /must not change result type/)
    assert.deepEqual(await run(text), [[7n, 'a']])
  })

  it('fails where it has no text', async () => {
    await assert.rejects(open().run('', [], 'empty'), /empty has no text/)
  })

  it('is refused where another one of its name is known', async () => {
    const { run } = open()
    await run('select 1', [], 'one')
    await assert.rejects(run('select 2', [], 'one'), /two statements are called one/)
  })

  it('is refused by a pool that has ended', async () => {
    const { pool, run } = open()
    await run('select 1')
    pools.splice(pools.indexOf(pool), 1)
    await pool.end()
    await assert.rejects(run('select 1'))
  })
})

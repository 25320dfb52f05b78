import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { inspect } from 'node:util'
import { judge } from '../../../harness/figures.ts'
import { startPostgres } from '../../../harness/postgres.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { withClient } from '../../../test/storage/with-client.ts'
import { systemClock } from '../kernel/clock.ts'
import { Secret } from '../kernel/secret.ts'
import { type LogFields, silentLog } from '../telemetry/log.ts'
import { createPools, type Pools } from './pools.ts'

const PROOF = 'pools'

async function elapsedMs(work: Promise<unknown>): Promise<number> {
  const startedAtMs = systemClock.monotonicMs()
  await work
  return systemClock.monotonicMs() - startedAtMs
}

const url = new Secret((await freshDatabase()).url)

describe('the pools', () => {
  let pools: Pools
  const warnings: [string, LogFields | undefined][] = []

  before(() => {
    pools = createPools({
      url,
      log: { ...silentLog, warn: (message, fields) => warnings.push([message, fields]) },
      connectTimeoutMs: PATIENCE_MS,
      moneyQueryTimeoutMs: PATIENCE_MS,
      restStatementTimeoutMs: PATIENCE_MS,
    })
  })
  after(() => pools.close())

  it('give a bigint as BigInt, exactly, alone and in arrays', async () => {
    const { rows } = await pools.money.query(
      `select 9223372036854775807::bigint as most, '{{1,null},{-9223372036854775808,2}}'::bigint[] as many,
              sum(amount) as total, count(*) as counted from unnest($1::bigint[]) as amount`,
      [[9_007_199_254_740_993n, 1n]],
    )
    assert.deepEqual(rows, [
      {
        most: 9_223_372_036_854_775_807n,
        many: [
          [1n, null],
          [-9_223_372_036_854_775_808n, 2n],
        ],
        total: '9007199254740994',
        counted: 2n,
      },
    ])
  })

  it('give numerics as text, alone and in arrays, and a day as it is written', async () => {
    const { rows } = await pools.rest.query(
      `select 0.1234567890123456789 as one, array[0.1234567890123456789, null] as some, date '2026-03-01' as day`,
    )
    assert.deepEqual(rows, [{ one: '0.1234567890123456789', some: ['0.1234567890123456789', null], day: '2026-03-01' }])
  })

  it('leave the types of other users of pg in this process alone', async () => {
    const { rows } = await withClient(url.reveal(), (client) => client.query('select 1::bigint as one'))
    assert.deepEqual(rows, [{ one: '1' }])
  })

  it('can be told apart in PostgreSQL', async () => {
    const names = await Promise.all(
      [pools.money, pools.rest].map((pool) => pool.query(`select current_setting('application_name') as name`)),
    )
    assert.deepEqual(
      names.map(({ rows }) => rows[0]),
      [{ name: 'farebox money' }, { name: 'farebox' }],
    )
  })

  it('pin the plans of statements about money, and of no others', async () => {
    assert.deepEqual(await plannedBy(pools), PLANNED)
  })

  it('pin them whatever options the database URL has, and keep those', async () => {
    const theirs = '-c search_path=public,pg_temp -c enable_seqscan=on -c plan_cache_mode=auto'
    for (const query of [
      `options=${encodeURIComponent(theirs)}`,
      `options=${theirs.replaceAll(' ', '+')}&connect_timeout=5`,
      `connect_timeout=5&options=-c%20work_mem=64kB&options=${theirs}`,
    ]) {
      const optioned = createPools({ url: new Secret(`${url.reveal()}?${query}`), log: silentLog })
      try {
        assert.deepEqual(await plannedBy(optioned), PLANNED, query)
        for (const pool of [optioned.money, optioned.rest])
          assert.deepEqual((await pool.query('show search_path')).rows, [{ search_path: 'public,pg_temp' }], query)
      } finally {
        await optioned.close()
      }
    }
  })

  it('show no password to whoever prints them', async () => {
    const secret = new Secret(url.reveal().replace('farebox@', 'farebox:canary@'))
    const printed = createPools({ url: secret, log: silentLog })
    await Promise.all([printed.money.query('select 1'), printed.rest.query('select 1')])
    assert.doesNotMatch(inspect(printed, { depth: 20 }), /canary/)
    await printed.close()
  })

  it('end a statement of the rest that takes too long, and none of money', async () => {
    const hasty = createPools({ url, log: silentLog, moneyQueryTimeoutMs: PATIENCE_MS, restStatementTimeoutMs: 500 })
    // A process that is not run for a second gives the answer up before it has read it.
    const isEnded = () => hasty.rest.query('select pg_sleep(600)').catch(({ code }) => code === '57014')
    await until(async () => (await isEnded()) === true, PATIENCE_MS, 'the end of a statement that takes too long')
    await hasty.money.query('select pg_sleep(0.7)')
    await hasty.close()
  })

  it('survive the loss of idle connections', async () => {
    const victims = await Promise.all(
      [pools.money, pools.rest].map((pool) => pool.query('select pg_backend_pid() as pid')),
    )
    const seen = warnings.length
    for (const { rows } of victims) await terminate(url, rows[0].pid)
    await until(() => warnings.length >= seen + 2, PATIENCE_MS, 'the warnings')
    assert.equal(warnings.at(-1)?.[0], 'an idle database connection was lost')
    assert.deepEqual((await pools.money.query('select 1 as one')).rows, [{ one: 1 }])
    assert.deepEqual((await pools.rest.query('select 1 as one')).rows, [{ one: 1 }])
  })

  it('survive the loss of a connection between two statements of a transaction', async () => {
    const client = await pools.money.connect()
    await client.query('begin')
    const { rows } = await client.query('select pg_backend_pid() as pid')
    await terminate(url, rows[0].pid)
    await systemClock.sleep(50)
    await assert.rejects(client.query('commit'))
    client.release(true)
    assert.deepEqual((await pools.money.query('select 1 as one')).rows, [{ one: 1 }])
  })

  it('bound the wait for a connection, and the number of those who wait', async () => {
    const pools = createPools({ url, log: silentLog, moneyConnections: 2, connectTimeoutMs: 1_000, waitingMax: 3 })
    const taken = await Promise.all([pools.money.connect(), pools.money.connect()])
    const waiting = Array.from({ length: 3 }, () => elapsedMs(assert.rejects(pools.money.query('select 1'), /timeout/)))
    await assert.rejects(pools.money.query('select 1'), { message: '3 are waiting for a database connection already' })
    await assert.rejects(pools.money.connect(), { message: '3 are waiting for a database connection already' })
    const waitedMs = await Promise.all(waiting)
    for (const tookMs of waitedMs) assert.ok(tookMs >= 900, `waited ${tookMs} ms`)
    judge(PROOF, 'the wait for a connection, of at most 1,000 ms', { unit: 'ms', atMost: 2_000 }, waitedMs)
    for (const client of taken) client.release()
    assert.deepEqual((await pools.money.query('select 1 as one')).rows, [{ one: 1 }])
    await pools.close()
  })

  it('close when what runs has finished', async () => {
    const closing = createPools({ url, log: silentLog })
    const order: string[] = []
    const answer = closing.money.query('select pg_sleep(0.3), 1 as one').finally(() => order.push('answered'))
    await until(() => closing.money.totalCount === 1, PATIENCE_MS)
    await systemClock.sleep(50)
    const tookMs = await elapsedMs(closing.close().finally(() => order.push('closed')))
    assert.equal((await answer).rows[0].one, 1)
    assert.deepEqual(order, ['answered', 'closed'])
    judge(PROOF, 'closing, while a statement takes 300 ms', { unit: 'ms', atMost: 2_000 }, [tookMs])
    await assert.rejects(closing.rest.query('select 1'))
  })

  it('close at the deadline when something does not finish, more than once if asked', async () => {
    const closing = createPools({ url, log: silentLog })
    const endless = assert.rejects(closing.money.query('select pg_sleep(60)'))
    await systemClock.sleep(100)
    const tookMs = await elapsedMs(Promise.all([closing.close(300), closing.close(300)]))
    assert.ok(tookMs > 250, `closed in ${tookMs} ms`)
    judge(PROOF, 'closing at a deadline of 300 ms', { unit: 'ms', atMost: 1_500 }, [tookMs])
    await endless
  })
})

describe('the pools of a PostgreSQL that hangs', () => {
  it('give up on the answer, take no new connection, and close at the deadline', async () => {
    const postgres = await startPostgres()
    after(() => postgres.remove())
    const pools = createPools({
      url: new Secret(postgres.url()),
      log: silentLog,
      connectTimeoutMs: 2_000,
      moneyQueryTimeoutMs: 300,
    })
    const idle = await Promise.all([pools.money.connect(), pools.money.connect()])
    for (const client of idle) client.release()
    postgres.pause()
    await assert.rejects(pools.money.query('select 1'), { message: 'Query read timeout' })
    assert.equal(pools.money.totalCount, 1, 'the connection without an answer is not used again')
    await assert.rejects(pools.rest.query('select 1'), /timeout/)
    const tookMs = await elapsedMs(pools.close(300))
    judge(PROOF, 'closing at a deadline of 300 ms while PostgreSQL hangs', { unit: 'ms', atMost: 1_500 }, [tookMs])
  })
})

const PLANNED = {
  money: [
    ...['enable_bitmapscan', 'enable_hashagg', 'enable_hashjoin', 'enable_mergejoin', 'enable_seqscan', 'jit'].map(
      (name) => `${name} off`,
    ),
    'plan_cache_mode force_generic_plan',
  ],
  rest: ['jit off', 'random_page_cost 1.1'],
}

async function plannedBy({ money, rest }: Pools): Promise<Record<string, readonly string[]>> {
  const pinned = `select name || ' ' || setting as one from pg_settings
    where (name ~ '^enable_' and name !~ 'partitionwise' or name = 'jit') and setting = 'off' or name = 'plan_cache_mode' and setting <> 'auto'
      or name = 'random_page_cost' and setting <> '4' order by name`
  const [ofMoney, ofRest] = await Promise.all([money, rest].map((pool) => pool.query<{ one: string }>(pinned)))
  return { money: ofMoney?.rows.map(({ one }) => one) ?? [], rest: ofRest?.rows.map(({ one }) => one) ?? [] }
}

async function terminate(url: Secret, pid: number): Promise<void> {
  await withClient(url.reveal(), (client) => client.query('select pg_terminate_backend($1, 1000)', [pid]))
}

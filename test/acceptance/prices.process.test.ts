import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { judge } from '../../harness/figures.ts'
import { startPostgres } from '../../harness/postgres.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { rational } from '../../server/src/kernel/rational.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { setAccountPrice, setPrice } from '../../server/src/pricing/prices.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { saveUpstream } from '../../server/src/upstreams/configure.ts'
import { saveCustomerPlan, setCustomerPlan } from '../../server/src/workspaces/workspaces.ts'
import { ACTOR, ask, call, errorOf, ids, makeCustomer, startInstallation, type Told } from './installation.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 3 })
const { url, gateways, pool, sandbox } = installation
after(installation.stop)

const versionOf = ({ headers }: Told) => headers.get('x-farebox-price-version')
const costAndVersion = (told: Told) => [told.costUsd, versionOf(told)]
const HANGS_MS = 60_000

async function totalsOf(secret: string): Promise<Record<string, number>> {
  return Object((await ask(url, secret, '/v1/usage?start_time=1')).json.totals)
}

describe('a price that the operator sets', () => {
  it('is charged as its version by every process, and is the value in the report from then on', async () => {
    const { secret } = await makeCustomer(pool)
    for (const { url: one } of gateways)
      assert.deepEqual(costAndVersion(await call(one, secret, 'tweet_quotes')), ['0.003000000', '0'])
    const timesMs: number[] = []
    for (const [price, cost] of [
      ['0.004', '0.004000000'],
      ['0.0000000015', '0.000000002'],
      ['0.0000000025', '0.000000002'],
      ['0', '0.000000000'],
      ['0.005', '0.005000000'],
    ] as const) {
      const version = await setPrice(pool, { operation: 'tweet_quotes', unitPrice: price })
      const isKnownTo = (one: string) => async () =>
        versionOf(await call(one, secret, 'tweet_quotes')) === String(version)
      timesMs.push(...(await Promise.all(gateways.map((one) => until(isKnownTo(one.url), HANGS_MS, price)))))
      for (const { url: one } of gateways)
        assert.deepEqual(costAndVersion(await call(one, secret, 'tweet_quotes')), [cost, String(version)])
    }
    judge('prices', 'from a price to its first charge by each process', { unit: 'ms', atMost: 1_000 }, timesMs)
    const { usage_value_micros_usd, charged_micros_usd } = await totalsOf(secret)
    assert.equal(usage_value_micros_usd, charged_micros_usd)
  })

  it('leaves other operations as they are', async () => {
    await setPrice(pool, { operation: 'post_comments', unitPrice: '0.5' })
    const { secret } = await makeCustomer(pool)
    assert.deepEqual(costAndVersion(await call(url, secret, 'tag_detail')), ['0.001450000', '0'])
    await setPrice(pool, { operation: 'post_comments', unitPrice: '0.00188' })
  })
})

describe('BASE-6 an account with its own pricing', () => {
  it('BASE-6 pays that price, whatever its plan; the published one stays the value in the report', async () => {
    const { secret, accountId, workspaceId } = await makeCustomer(pool)
    const other = await makeCustomer(pool)
    await saveCustomerPlan({ pool }, 'double', rational(2n))
    await setCustomerPlan({ pool, ids }, ACTOR, workspaceId, 'double')
    assert.deepEqual(costAndVersion(await call(url, secret, 'tag_detail')), ['0.002900000', '0'])
    await setAccountPrice(pool, accountId, 'tag_detail', '0.0007')
    await until(async () => versionOf(await call(url, secret, 'tag_detail')) === 'account', HANGS_MS)
    const before = await totalsOf(secret)
    assert.deepEqual(costAndVersion(await call(url, secret, 'tag_detail')), ['0.000700000', 'account'])
    const totals = await totalsOf(secret)
    assert.equal((totals.usage_value_micros_usd ?? 0) - (before.usage_value_micros_usd ?? 0), 1_450)
    assert.equal((totals.charged_micros_usd ?? 0) - (before.charged_micros_usd ?? 0), 700)
    // Another operation of it, and the same of another account, cost what they did.
    assert.deepEqual(costAndVersion(await call(url, secret, 'user_stories')), ['0.005800000', '0'])
    assert.deepEqual(costAndVersion(await call(url, other.secret, 'tag_detail')), ['0.001450000', '0'])

    await setAccountPrice(pool, accountId, 'tag_detail', null)
    await until(async () => versionOf(await call(url, secret, 'tag_detail')) === '0', HANGS_MS)
    assert.equal((await call(url, secret, 'tag_detail')).costUsd, '0.002900000')
  })

  it('BASE-6 is quoted that price too', async () => {
    const { secret, accountId } = await makeCustomer(pool)
    await setAccountPrice(pool, accountId, 'tag_detail', '0.0001')
    const { json } = await call(url, secret, 'tag_detail', '', { headers: { 'x-farebox-cost-mode': 'quote' } })
    assert.deepEqual([Object(json.max).usd, json.price_version], ['0.000100000', 'account'])
  })
})

describe('a price, a plan or an own price that changes between beginning and end', () => {
  it('changes nothing for the call: it settles at what it began with', async () => {
    const { secret, accountId, workspaceId } = await makeCustomer(pool)
    await saveCustomerPlan({ pool }, 'changing', rational(3n))
    await setCustomerPlan({ pool, ids }, ACTOR, workspaceId, 'changing')
    const operation = 'search_word_suggestion'
    for (const [change, cost, version] of [
      [() => setPrice(pool, { operation, unitPrice: '0.5' }), '0.004350000', '0'],
      [() => saveCustomerPlan({ pool }, 'changing', rational(1n, 5n)), '1.500000000', '1'],
      [() => setCustomerPlan({ pool, ids }, ACTOR, workspaceId, 'standard'), '0.100000000', '1'],
      [() => setAccountPrice(pool, accountId, operation, '0.0001'), '0.500000000', '1'],
      [() => setAccountPrice(pool, accountId, operation, null), '0.000100000', 'account'],
    ] as const) {
      // Whatever was changed before this is known.
      await until(async () => (await call(url, secret, operation)).costUsd === cost, HANGS_MS, cost)
      const running = call(url, secret, operation, 'sandbox:delay=2000')
      await until(async () => await isHeld(accountId), PATIENCE_MS)
      await change()
      await until(async () => (await call(url, secret, operation)).costUsd !== cost, HANGS_MS, `other than ${cost}`)
      assert.deepEqual(costAndVersion(await running), [cost, version])
    }
    assert.deepEqual(await verifyLedger(pool), [])
  })
})

describe('an operation that can not be sold now', () => {
  it('ERR-4 ERR-6 is 503 where no upstream is configured for it, before anything is held, and may be sent again', async () => {
    const { secret, accountId } = await makeCustomer(pool, { key: { mode: 'live' } })
    const told = await call(url, secret, 'tag_detail')
    assert.equal(told.status, 503)
    assert.deepEqual(
      [errorOf(told).code, errorOf(told).message],
      [
        'not_configured',
        'This operation is not set up on this installation. Ask the operator. You sent a live key, and live keys reach live providers only: this installation has none for this operation. A test key may work: it reaches test providers and spends test money, which every workspace has.',
      ],
    )
    assert.deepEqual([told.headers.get('x-should-retry'), told.headers.get('retry-after')], [null, null])
    const { rows } = await pool.query('select count(*)::integer from charges where account_id = $1', [accountId])
    assert.equal(rows[0].count, 0)
  })

  it('ERR-4 is 502 or 503 by the kind of an upstream that nobody can connect to; it is voided, and counts as failed', async () => {
    const { secret } = await makeCustomer(pool, { key: { mode: 'live' } })
    for (const [slot, kind] of [
      ['rerank', 'native'],
      ['financial', 'managed'],
    ] as const)
      await saveUpstream(
        { pool, ids, seal: null },
        { slot, mode: 'live', baseUrl: 'http://127.0.0.1:1', kind, credential: null },
      )
    const native = await call(url, secret, 'rerank')
    assert.deepEqual([native.status, errorOf(native).code], [502, 'upstream_unreachable'])
    const managed = await call(url, secret, 'financial_metrics_snapshot')
    assert.deepEqual([managed.status, errorOf(managed).code], [503, 'managed_upstream_unreachable'])
    for (const told of [native, managed]) {
      assert.equal(told.costUsd, '0.000000000')
      const { outcome, executed, failed } = (await ask(url, secret, `/v1/requests/${told.id}`)).json
      assert.deepEqual([outcome, executed, failed], ['voided', true, true])
    }
    assert.equal((await totalsOf(secret)).requests, 2)
  })

  for (const [what, price] of [
    ['is not a number', 'NaN'],
    ['is infinite', 'Infinity'],
    ['is finer than anything can be', `0.${'0'.repeat(30)}1`],
    ['is more money than there is', '99999999999999999'],
  ] as const)
    it(`ERR-4 is 503 invalid_billing_configuration where its price ${what}; nothing is asked or charged`, async () => {
      const { secret, accountId } = await makeCustomer(pool)
      // The table itself refuses most of it; this is for whatever came there all the same.
      await pool.query('alter table account_prices drop constraint if exists unit_price_is_readable')
      await pool.query("insert into account_prices (account_id, operation, unit_price) values ($1, 'rerank', $2)", [
        accountId,
        price,
      ])
      const before = (await sandbox.journal()).length
      for (const headers of [{}, { 'x-farebox-cost-mode': 'quote' }]) {
        const told = await call(url, secret, 'rerank', '', { headers })
        assert.equal(told.status, 503)
        assert.equal(errorOf(told).code, 'invalid_billing_configuration')
        assert.equal(told.headers.get('x-should-retry'), 'false')
      }
      assert.equal((await sandbox.journal()).length, before)
      await setAccountPrice(pool, accountId, 'rerank', '0.001')
      await until(
        async () => (await call(url, secret, 'rerank', 'sandbox:tokens=2')).costUsd === '0.002000000',
        HANGS_MS,
      )
    })
})

describe('without PostgreSQL', () => {
  it('ERR-4 every call is 503 billing_dependency_timeout before any upstream is asked, and works again with it', async () => {
    const postgres = await startPostgres()
    after(postgres.remove)
    await migrate({ url: new Secret(postgres.url()), log: silentLog })
    const alone = await startInstallation(postgres.url())
    after(alone.stop)
    const { secret } = await makeCustomer(alone.pool)
    const cold = await makeCustomer(alone.pool)
    assert.equal((await call(alone.url, secret, 'tag_detail')).status, 200)
    alone.pool.on('error', () => {})
    const before = (await alone.sandbox.journal()).length

    await postgres.kill()
    const told = [
      await call(alone.url, secret, 'tag_detail'),
      await call(alone.url, cold.secret, 'rerank'),
      await ask(alone.url, secret, '/v1/usage?start_time=1'),
      await ask(alone.url, secret, '/v1/balance'),
      await call(alone.url, secret, 'tag_detail', '', { headers: { 'x-farebox-cost-mode': 'quote' } }),
    ]
    for (const one of told) {
      assert.equal(one.status, 503, one.text)
      assert.equal(errorOf(one).code, 'billing_dependency_timeout')
      assert.ok(Number(one.headers.get('retry-after')) >= 1)
      assert.equal(one.headers.get('x-should-retry'), null)
    }
    assert.equal((await alone.sandbox.journal()).length, before)

    await postgres.start()
    await until(async () => (await call(alone.url, secret, 'tag_detail')).status === 200, PATIENCE_MS)
  })
})

async function isHeld(accountId: string): Promise<boolean> {
  const { rows } = await pool.query('select from holds where account_id = $1', [accountId])
  return rows.length > 0
}

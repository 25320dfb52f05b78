import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { ask, call, errorOf, ids, makeCustomer, startInstallation } from './installation.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)

const balance = (secret: string) => ask(url, secret, '/v1/balance')
const NOTHING = { usd: '0.000000000', micros_usd: 0 }

describe('GET /v1/balance', () => {
  it('BASE-4 is 200 with what can be spent, in exact USD and in whole micros', async () => {
    const { secret } = await makeCustomer(pool, { money: 1_234_567_899n })
    const { status, json } = await balance(secret)
    assert.equal(status, 200)
    assert.deepEqual(json, {
      currency: 'USD',
      mode: 'test',
      available: { usd: '1.234567899', micros_usd: 1_234_567 },
      held: NOTHING,
      promotional: NOTHING,
      debt: NOTHING,
      budget: null,
      budgets: [],
    })
  })

  it('BASE-5 is what the last call said that is left, to the nano', async () => {
    const { secret } = await makeCustomer(pool)
    const told = await call(url, secret, 'rerank', 'sandbox:tokens=7')
    assert.equal(told.costUsd, '0.000000350')
    const { json } = await balance(secret)
    assert.deepEqual(json.available, { usd: '9.999999650', micros_usd: 9_999_999 })
    assert.equal(told.headers.get('x-farebox-balance-usd'), '9.999999650')
  })

  it('tells what running calls hold, and that it is free again when they cost less', async () => {
    const { secret } = await makeCustomer(pool)
    const running = call(url, secret, 'website_traffic_engagement', 'sandbox:delay=4000')
    await until(
      async () => (await balance(secret)).json.held !== undefined && (await heldUsd(secret)) !== '0.000000000',
      PATIENCE_MS,
    )
    const { json } = await balance(secret)
    // Twelve metrics of 37 months, as nobody said fewer.
    assert.deepEqual(json.held, { usd: '0.888000000', micros_usd: 888_000 })
    assert.deepEqual(json.available, { usd: '9.112000000', micros_usd: 9_112_000 })
    assert.equal((await running).costUsd, '0.006000000')
    assert.deepEqual((await balance(secret)).json.held, NOTHING)
    assert.deepEqual((await balance(secret)).json.available, { usd: '9.994000000', micros_usd: 9_994_000 })
  })

  it('tells promotional credit apart, which is spent first', async () => {
    const { secret, accountId } = await makeCustomer(pool, { money: 1_000_000_000n })
    await creditAccount(pool, { entryId: ids.next(), accountId, kind: 'promotion', amount: nanos(500_000_000n) })
    await call(url, secret, 'financial_metrics_snapshot')
    const { available, promotional } = (await balance(secret)).json
    assert.deepEqual(available, { usd: '1.490000000', micros_usd: 1_490_000 })
    assert.deepEqual(promotional, { usd: '0.490000000', micros_usd: 490_000 })
  })

  it('ERR-2 tells the budget of the key; what does not fit is 402 before any spend, with what was needed and is left', async () => {
    const budget = { period: 'day', amount: nanos(15_000_000n) } as const
    const { secret } = await makeCustomer(pool, { key: { budget } })
    assert.equal((await call(url, secret, 'financial_metrics_snapshot')).status, 200)
    const before = (await sandbox.journal()).length
    const told = await call(url, secret, 'financial_metrics_snapshot')
    assert.equal(told.status, 402)
    const { code, needed_usd, left_usd } = errorOf(told)
    assert.deepEqual([code, needed_usd, left_usd], ['budget_exceeded', '0.010000000', '0.005000000'])
    assert.equal((await sandbox.journal()).length, before)
    assert.deepEqual((await balance(secret)).json.budget, {
      period: 'day',
      amount: { usd: '0.015000000', micros_usd: 15_000 },
      spent: { usd: '0.010000000', micros_usd: 10_000 },
      left: { usd: '0.005000000', micros_usd: 5_000 },
    })
  })

  it('ERR-2 a balance that does not cover a call is 402, and stays as it is', async () => {
    const { secret } = await makeCustomer(pool, { money: 1_449_999n })
    const told = await call(url, secret, 'tag_detail')
    assert.equal(told.status, 402)
    const { code, needed_usd, left_usd } = errorOf(told)
    assert.deepEqual([code, needed_usd, left_usd], ['insufficient_balance', '0.001450000', '0.001449999'])
    assert.deepEqual((await balance(secret)).json.available, { usd: '0.001449999', micros_usd: 1_449 })
  })

  it('is of the mode of the key: live money is not shown to a test key', async () => {
    const { secret } = await makeCustomer(pool, { key: { mode: 'live' }, money: 5n })
    const { json } = await balance(secret)
    assert.deepEqual([json.mode, json.available], ['live', { usd: '0.000000005', micros_usd: 0 }])
  })

  it('is 401 without a credential, 200 for a key with any scopes, 429 beyond the requests of a minute', async () => {
    assert.equal((await balance('')).status, 401)
    const { secret } = await makeCustomer(pool, { key: { scopes: ['rerank'] } })
    assert.equal((await balance(secret)).status, 200)
    const slow = await makeCustomer(pool, { requestsPerMinute: 1 })
    assert.equal((await balance(slow.secret)).status, 200)
    const told = await balance(slow.secret)
    assert.equal(told.status, 429)
    assert.equal(errorOf(told).code, 'rate_limit_exceeded')
    assert.ok(Number(told.headers.get('retry-after')) >= 1)
  })
})

async function heldUsd(secret: string): Promise<unknown> {
  return Object((await balance(secret)).json.held).usd
}

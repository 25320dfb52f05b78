import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { createCatalogue, type Operation } from '../../server/src/catalogue/operation.ts'
import { tagDetail } from '../../server/src/catalogue/operations/tag-detail.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { rational } from '../../server/src/kernel/rational.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { setAccountPrice, setPrice } from '../../server/src/pricing/prices.ts'
import { BOOKED_HOURS } from '../ledger/usage-rows.ts'
import {
  ask,
  CALLS,
  call,
  chargesOf,
  codeOf,
  costOf,
  FREE,
  LINKED,
  makeCustomer,
  makeKey,
  startInstallation,
  TASKS,
  type Told,
} from './installation.ts'
import { traceOf } from './refusals-trace.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)
const customer = await makeCustomer(pool)

const MODE = { headers: { 'x-farebox-cost-mode': 'quote' } }

function assertRefused(told: Told, status: number, code: string): void {
  assert.deepEqual([told.status, codeOf(told)], [status, code], told.text)
}

/** None of them is a price, although PostgreSQL has a number for each. */
const NO_PRICES = ['NaN', 'Infinity', '-Infinity', '-0.001', '1e18', '0.0000000000000000001']

describe('trap: a model without a known price is served free, its hold released', () => {
  it('trap: an operation without a price, or with none that is above nothing, can not be sold', () => {
    const withPrice = (unitPrice: unknown) =>
      ({ ...tagDetail, price: { ...tagDetail.price, unitPrice } }) as unknown as Operation
    const { price: _, ...priceless } = tagDetail
    for (const operation of [
      priceless as Operation,
      withPrice(undefined),
      withPrice(0),
      withPrice(Number.NaN),
      withPrice(rational(0n)),
      withPrice(rational(-1n)),
      withPrice({ numerator: 1n, denominator: 0n }),
    ])
      assert.throws(() => createCatalogue([operation]), /can't be sold/)
    assert.equal(createCatalogue([withPrice(rational(1n))]).operations.length, 1)
  })

  it('trap: what is no price can not be set, neither by us nor in PostgreSQL itself', async () => {
    for (const unitPrice of [...NO_PRICES, '', 'free', '1,5']) {
      await assert.rejects(setPrice(pool, { operation: 'tag_detail', unitPrice }), unitPrice)
      await assert.rejects(setPrice(pool, { operation: 'tag_detail', unitPrice: '1', providerCost: unitPrice }))
      await assert.rejects(setAccountPrice(pool, customer.accountId, 'tag_detail', unitPrice), unitPrice)
      for (const sql of [
        "insert into price_versions (operation, version, unit_price) values ('tag_detail', 1, $1::numeric)",
        "insert into price_versions (operation, version, unit_price, provider_cost) values ('tag_detail', 1, 1, $1::numeric)",
        `insert into account_prices (account_id, operation, unit_price) values ('${customer.accountId}', 'tag_detail', $1::numeric)`,
      ])
        await assert.rejects(pool.query(sql, [unitPrice]), { code: /^(23514|22P02)$/ }, `${sql} ${unitPrice}`)
    }
    assert.equal((await call(url, customer.secret, 'tag_detail')).costUsd, '0.001450000')
  })

  it('trap: a price that can not be read is 503, asks no upstream and holds nothing, for its operation alone', async () => {
    await forgetWhatPricesAre()
    let version = 1
    for (const unitPrice of [...NO_PRICES, '99999999999999999']) {
      await write('tag_detail', version++, unitPrice)
      await until(
        async () => (await call(url, customer.secret, 'tag_detail', '', MODE)).status === 503,
        PATIENCE_MS,
        `that ${unitPrice} is known`,
      )
      const before = await traceOf({ pool, sandbox })
      for (const also of [{}, MODE, { headers: { 'x-farebox-max-cost-usd': '1' } }]) {
        const told = await call(url, customer.secret, 'tag_detail', '', also)
        assertRefused(told, 503, 'invalid_billing_configuration')
        assert.equal(told.headers.get('x-should-retry'), 'false')
        assert.equal(told.costUsd, null)
      }
      assert.deepEqual(await traceOf({ pool, sandbox }), before, unitPrice)
      assert.equal((await call(url, customer.secret, 'user_stories')).costUsd, '0.002900000')
      await write('tag_detail', version++, '0.002')
      await until(
        async () => (await call(url, customer.secret, 'tag_detail', '', MODE)).status === 200,
        PATIENCE_MS,
        'that the price is known',
      )
    }
    assert.equal((await call(url, customer.secret, 'tag_detail')).costUsd, '0.002000000')
  })

  it("trap: an account's own price that can not be read is not replaced by another one", async () => {
    const special = await makeCustomer(pool)
    await pool.query(
      "insert into account_prices (account_id, operation, unit_price) values ($1, 'tag_detail', 'NaN')",
      [special.accountId],
    )
    const before = await traceOf({ pool, sandbox })
    assertRefused(await call(url, special.secret, 'tag_detail'), 503, 'invalid_billing_configuration')
    assert.deepEqual(await traceOf({ pool, sandbox }), before)
    assert.equal((await call(url, special.secret, 'user_stories')).costUsd, '0.002900000')
    assert.equal((await call(url, customer.secret, 'tag_detail')).status, 200)
  })
})

/** As if rows had come in by another way than ours. */
async function forgetWhatPricesAre(): Promise<void> {
  for (const table of ['price_versions', 'account_prices']) {
    const { rows } = await pool.query<{ conname: string }>(
      "select conname from pg_constraint where conrelid = $1::regclass and contype = 'c'",
      [table],
    )
    for (const { conname } of rows) await pool.query(`alter table ${table} drop constraint ${conname}`)
  }
}

async function write(operation: string, version: number, unitPrice: string): Promise<void> {
  await pool.query('insert into price_versions (operation, version, unit_price) values ($1, $2, $3::numeric)', [
    operation,
    version,
    unitPrice,
  ])
  await pool.query("select record_change('price', $1)", [operation])
}

describe('trap: a second protocol or a pass-through route bypasses budgets or drops the spend row', () => {
  for (const { id } of catalogue.operations.filter((one) => !FREE.has(one.id) && !LINKED.has(one.id)))
    it(`trap: every call of ${id} is in the ledger, in its key's report and in its budget, which it respects`, async () => {
      const { json } = await call(url, customer.secret, id, '', MODE)
      const most = usd(Object(json.max).usd)
      const { keyId, secret } = await makeKey(pool, customer.workspaceId, { budget: { period: 'total', amount: most } })
      const told = await call(url, secret, id)
      const cost = usd(await costOf(url, secret, told))
      assert.equal(told.status, 200)
      assert.ok(cost > 0n)

      const { rows } = await pool.query(
        `select c.amount, c.operation, c.executed, h.requests, h.charged, p.charged as budgeted, p.held
         from charges c join (
           select credential_id, sum(requests)::bigint as requests, sum(charged)::bigint as charged from ${BOOKED_HOURS} booked group by 1
         ) h on h.credential_id = c.credential_id
         join allowance_periods p on p.allowance_id = c.allowances[1] where c.id = $1 and c.credential_id = $2`,
        [told.id, keyId],
      )
      assert.deepEqual(rows, [
        { amount: cost, operation: id, executed: true, requests: 1n, charged: cost, budgeted: cost, held: 0n },
      ])
      // What is left is less than the most that another one could cost.
      const before = await traceOf({ pool, sandbox })
      assertRefused(await call(url, secret, id), 402, 'budget_exceeded')
      assert.deepEqual(await traceOf({ pool, sandbox }), before)
    })

  it('trap: no other spelling of a route, method or protocol reaches an upstream without a charge', async () => {
    const { secret, accountId } = await makeCustomer(pool)
    const asked = (await sandbox.journal()).length
    const answers: number[] = []
    for (const [id, make] of Object.entries(CALLS)) {
      if (FREE.has(id) || TASKS.has(id) || LINKED.has(id)) continue
      const { path, body } = make('')
      const [place = '', query = ''] = path.split('?')
      const spellings = [`${place}/`, `/${place}`, place.toUpperCase(), place.replace('/v1/', '/v1//'), `${place}%2F`]
      const encoded = place.replace(/.$/, (last) => `%${last.charCodeAt(0).toString(16)}`)
      for (const spelling of [...spellings, encoded, `${place};a=b`, `/v1/..${place}`, `${place}/.`])
        answers.push((await ask(url, secret, `${spelling}?${query}`, body === undefined ? {} : { body })).status)
      for (const method of ['HEAD', 'OPTIONS', 'PUT', 'DELETE'])
        answers.push((await ask(url, secret, path, { method })).status)
      for (const headers of [
        { 'anthropic-version': '2023-06-01' },
        { 'x-http-method-override': 'HEAD', 'x-original-url': '/livez' },
      ])
        answers.push((await ask(url, secret, path, { headers, ...(body !== undefined && { body }) })).status)
    }
    const executed = (await sandbox.journal()).length - asked
    const charges = await chargesOf(pool, accountId)
    assert.equal(executed, charges.size)
    assert.ok([...charges.values()].every((amount) => amount > 0n))
    assert.equal(answers.filter((status) => status === 200).length, executed)
    assert.ok(executed >= 2 * (catalogue.operations.length - FREE.size - TASKS.size - LINKED.size))
  })

  it('leaves a ledger that adds up', async () => {
    assert.deepEqual(await verifyLedger(pool), [])
  })
})

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { catalogueDocument } from '../../server/src/catalogue/document.ts'
import { createCatalogue, type Operation } from '../../server/src/catalogue/operation.ts'
import { rational } from '../../server/src/kernel/rational.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { setPrice } from '../../server/src/pricing/prices.ts'
import { saveUpstream } from '../../server/src/upstreams/configure.ts'
import { ask, type Customer, call, errorOf, ids, makeCustomer, startInstallation } from './installation.ts'
import { imaginedForecast, imaginedModel } from './one-more-operation.ts'
import { startScriptedUpstream } from './wire.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url, { changes: 'test/acceptance/one-more-server.ts' })
const { url, pool, masterKey } = installation
const upstream = await startScriptedUpstream()
after(() => Promise.all([installation.stop(), upstream.stop()]))

const FORECAST = '/apis/v1/social_a/imagined/forecast'
const json = { 'content-type': 'application/json' }

describe('an operation that is added by one file and a line in the list', () => {
  let customer: Customer
  before(async () => {
    customer = await makeCustomer(pool)
    await saveUpstream(
      { pool, ids, seal: createSeal({ current: masterKey }) },
      { slot: 'imagined', mode: 'test', baseUrl: upstream.url, kind: 'native', credential: new Secret('weather-key') },
    )
  })

  it('has a route, which asks its upstream, and is priced by its contract', async () => {
    upstream.answer({ headers: json, body: '{"days":[1,2,3]}' })
    const told = await ask(url, customer.secret, `${FORECAST}?place=here&days=5&a=%20`)
    assert.deepEqual([told.status, told.text, told.costUsd], [200, '{"days":[1,2,3]}', '0.036900000'])
    const { target, headers, method } = upstream.asked.at(-1) ?? {}
    assert.deepEqual(
      [method, target, headers?.['x-api-key']],
      ['GET', '/v9/forecast?place=here&days=5&a=%20', 'weather-key'],
    )
  })

  it('is in the usage report and in the records of requests', async () => {
    upstream.answer({ headers: json, body: '{"days":[1]}' })
    const own = await makeCustomer(pool)
    const { id } = await ask(url, own.secret, `${FORECAST}?place=here`)
    const { totals } = (await ask(url, own.secret, '/v1/usage?start_time=1')).json
    assert.deepEqual([Object(totals).requests, Object(totals).charged_micros_usd], [1, 12_300])
    const { data } = (await ask(url, own.secret, '/v1/requests?operation=imagined_forecast')).json
    assert.equal(Object(Object(data)[0]).id, id)
    await until(async () => (await ask(url, own.secret, `/v1/requests/${id}`)).json.detail !== null, PATIENCE_MS)
    const { detail } = (await ask(url, own.secret, `/v1/requests/${id}`)).json
    assert.equal(Object(detail).formula, '1 day × 0.0123 USD')
    assert.equal(Object(detail).upstream[0].slot, 'imagined')
  })

  it('can be quoted, capped, budgeted and scoped as the others', async () => {
    upstream.answer({ headers: json, body: '{"days":[1]}' })
    const quoted = await ask(url, customer.secret, `${FORECAST}?place=here&days=4`, {
      headers: { 'x-farebox-cost-mode': 'quote' },
    })
    assert.deepEqual(quoted.json.max, { usd: '0.049200000', micros_usd: 49_200 })
    const asked = upstream.asked.length
    const capped = await ask(url, customer.secret, `${FORECAST}?place=here&days=4`, {
      headers: { 'x-farebox-max-cost-usd': '0.04' },
    })
    assert.deepEqual([capped.status, errorOf(capped).code], [402, 'cost_cap_exceeded'])
    const other = await makeCustomer(pool, { key: { scopes: ['rerank'] } })
    assert.equal((await ask(url, other.secret, `${FORECAST}?place=here`)).status, 403)
    assert.equal(upstream.asked.length, asked)
    const scoped = await makeCustomer(pool, { key: { scopes: ['imagined_forecast'] } })
    assert.equal((await ask(url, scoped.secret, `${FORECAST}?place=here`)).status, 200)
    // What a key may not use is told before anything else is looked at, whatever it has left.
    const slow = await makeCustomer(pool, {
      key: {
        scopes: ['imagined_forecast'],
        rates: { requestsPerMinute: 1, tokensPerMinute: null, concurrency: null },
      },
    })
    for (const status of [200, 429, 429])
      assert.equal((await ask(url, slow.secret, `${FORECAST}?place=here`)).status, status)
    assert.equal((await ask(url, slow.secret, '/v1/rerank', { body: {} })).status, 403)
    assert.equal((await ask(url, '', `${FORECAST}?place=here`)).status, 401)
  })

  it('refuses what its own schema does not take, and what it names', async () => {
    for (const query of ['', 'place=', 'place=x&days=0', 'place=x&days=many', 'place=x&history=1'])
      assert.equal((await ask(url, customer.secret, `${FORECAST}?${query}`)).status, 400, query)
  })

  it('follows the price that the operator sets', async () => {
    upstream.answer({ headers: json, body: '{"days":[1,2]}' })
    const version = await setPrice(pool, { operation: 'imagined_forecast', unitPrice: '0.002' })
    const again = () => ask(url, customer.secret, `${FORECAST}?place=here&days=2`)
    await until(async () => (await again()).headers.get('x-farebox-price-version') === String(version), PATIENCE_MS)
    assert.equal((await again()).costUsd, '0.004000000')
  })

  it('BASE-1 under another base path it is there too, and refuses in the shape of that protocol', async () => {
    upstream.answer({ headers: json, body: '{"candidates":[]}' })
    const told = await ask(url, customer.secret, '/v1beta/models/imagined', { body: { contents: [1] } })
    assert.deepEqual([told.status, told.costUsd], [200, '0.700000000'])
    const wrong = await ask(url, customer.secret, '/v1beta/models/imagined', { body: {} })
    assert.deepEqual([wrong.status, errorOf(wrong).status], [400, 'INVALID_ARGUMENT'])
    const quoted = await ask(url, customer.secret, '/v1beta/models/imagined', {
      body: { contents: [1] },
      headers: { 'x-farebox-cost-mode': 'quote' },
    })
    assert.equal(quoted.status, 400)
  })

  it('leaves the others as they are', async () => {
    assert.equal((await call(url, customer.secret, 'tag_detail')).costUsd, '0.001450000')
  })

  it('is in the catalogue for people', () => {
    const text = catalogueDocument([...catalogue.operations, imaginedForecast])
    assert.match(
      text,
      /## imagined_forecast\n\nThe weather of the days to come at a place\.\n\n- `GET \/apis\/v1\/\{social_a\}\/imagined\/forecast`\n- 0\.0123 USD per day \(`dynamic`\)\n/,
    )
  })
})

describe('the list of what is sold', () => {
  const withPrice = (price: unknown) => ({ ...imaginedForecast, price }) as Operation

  for (const [what, price] of [
    ['no price', undefined],
    ['a price of nothing', { ...imaginedForecast.price, unitPrice: rational(0n) }],
    ['a negative price', { ...imaginedForecast.price, unitPrice: rational(-1n) }],
    ['a price without a unit', { ...imaginedForecast.price, unit: '' }],
    ['a price that says nothing of the most', { ...imaginedForecast.price, most: undefined }],
    ['a price that reads no evidence', { ...imaginedForecast.price, measure: undefined }],
    ['a price as a number', 0.5],
  ] as const)
    it(`trap: a model without a known price is served free: refuses an operation with ${what}`, () => {
      assert.throws(() => createCatalogue([withPrice(price)]), /imagined_forecast can't be sold/)
    })

  it('refuses two at one place, and two of one name', () => {
    assert.throws(
      () => createCatalogue([imaginedForecast, { ...imaginedModel, method: 'GET', path: imaginedForecast.path }]),
      /imagined_model \(GET .*\) is there already/,
    )
    assert.throws(
      () => createCatalogue([imaginedForecast, { ...imaginedModel, id: 'imagined_forecast' }]),
      /is there already/,
    )
    assert.equal(
      createCatalogue([imaginedForecast, { ...imaginedModel, path: imaginedForecast.path }]).operations.length,
      2,
    )
  })

  it('refuses one that stands under no base path', () => {
    for (const path of ['/weather', '/v2/weather', '/apis/v2/weather', 'v1/weather', '/v1/../weather', '/v1/a b'])
      assert.throws(() => createCatalogue([{ ...imaginedForecast, path }]), /can't be sold/, path)
  })
})

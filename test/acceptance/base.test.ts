import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { ask, CALLS, call, costOf, ids, makeCustomer, startInstallation, type Told } from './installation.ts'
import { linkAccount } from './links/linking.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool } = installation
after(installation.stop)

const { secret } = await makeCustomer(pool)
const ACCOUNT = ['/v1/usage?start_time=1', '/v1/balance', '/v1/requests', `/v1/requests/${ids.next()}`]
/** Without a credential there is nothing here. */
const HIDDEN = 'website_traffic_engagement'
await linkAccount(url, secret)

describe('base_url', () => {
  it('has a call of every operation in these tests', () => {
    assert.deepEqual(Object.keys(CALLS).toSorted(), catalogue.operations.map(({ id }) => id).toSorted())
  })

  it('BASE-1 has models under /v1, and data under /apis/v1; under each base path refusals have its shape', async () => {
    for (const { id, category, path } of catalogue.operations) {
      assert.match(path, category === 'models' ? /^\/v1(beta)?\// : /^\/apis\/v1\//)
      assert.equal((await call(url, secret, id)).status, 200, id)
      const elsewhere = CALLS[id]?.('').path.replace(/^\/(apis\/)?v1/, '/v2') ?? ''
      assert.equal((await ask(url, secret, elsewhere)).status, 404)
    }
    const [models, gemini, data] = await Promise.all(
      ['/v1/nothing', '/v1beta/nothing', '/apis/v1/nothing'].map((path) => ask(url, secret, path)),
    )
    for (const told of [models, gemini, data]) assert.equal(told?.status, 404)
    assert.deepEqual(Object.keys(models?.json ?? {}), ['error', 'request_id'])
    assert.equal(Object(models?.json.error).param, null)
    assert.equal(Object(gemini?.json.error).status, 'NOT_FOUND')
    assert.deepEqual(Object.keys(Object(data?.json.error)).toSorted(), ['code', 'message', 'type'])
  })

  it('MODEL-2 anthropic-version changes the shape of errors on the path that two protocols share, and on no other', async () => {
    const version = { 'anthropic-version': '2023-06-01' }
    const shapeOf = ({ json }: Told) => [Object.keys(json).toSorted(), Object.keys(Object(json.error)).toSorted()]
    const paths = [...Object.values(CALLS).map((make) => make('').path), ...ACCOUNT, '/v1/nothing', '/v1beta/models']
    for (const path of paths) {
      const [plain, versioned] = await Promise.all([
        ask(url, secret, path, { method: 'DELETE' }),
        ask(url, secret, path, { method: 'DELETE', headers: version }),
      ])
      assert.equal(plain.status, path === '/v1/nothing' ? 404 : 405, path)
      assert.equal(versioned.status, plain.status)
      assert.deepEqual(shapeOf(versioned), shapeOf(plain), path)
    }
    const removed = { method: 'DELETE' }
    assert.equal((await ask(url, secret, '/v1/models', removed)).json.type, undefined)
    assert.equal((await ask(url, secret, '/v1/models', { ...removed, headers: version })).json.type, 'error')
    const client = new Anthropic({ apiKey: secret, baseURL: url, maxRetries: 0 })
    await assert.rejects(client.models.retrieve('sandbox/nobody'), (error: unknown) => {
      assert.ok(error instanceof Anthropic.NotFoundError)
      assert.equal(Object(Object(error.error).error).type, 'not_found_error')
      return true
    })
  })

  it('BASE-2 every endpoint asks for a bearer credential, and takes a key', async () => {
    const forged = `${secret.slice(0, -4)}0000`
    for (const id of Object.keys(CALLS)) {
      assert.equal((await call(url, '', id)).status, id === HIDDEN ? 404 : 401, id)
      assert.equal((await call(url, forged, id)).status, 401, id)
      assert.equal((await call(url, '', id, '', { headers: { authorization: `Basic ${secret}` } })).status, 401, id)
      assert.equal((await call(url, secret, id)).status, 200, id)
    }
    for (const path of ACCOUNT) {
      assert.equal((await ask(url, '', path)).status, 401, path)
      assert.equal((await ask(url, forged, path)).status, 401, path)
      assert.notEqual((await ask(url, secret, path)).status, 401, path)
    }
  })

  it('BASE-3 BASE-5 an executed call is in the ledger, the report and the list once, at the cost that its answer told', async () => {
    const customer = await makeCustomer(pool)
    await linkAccount(url, customer.secret)
    const told: Told[] = []
    for (const id of Object.keys(CALLS)) {
      const one = await call(url, customer.secret, id)
      told.push({ ...one, costUsd: await costOf(url, customer.secret, one) })
    }
    const { rows } = await pool.query<{ id: string; amount: bigint }>(
      'select id, amount from charges where account_id = $1 order by ended_at',
      [customer.accountId],
    )
    assert.deepEqual(
      rows.map(({ id, amount }) => [id, `0.${String(amount).padStart(9, '0')}`]),
      told.map(({ id, costUsd }) => [id, costUsd]),
    )
    const listed = (await ask(url, customer.secret, '/v1/requests?limit=100')).json.data as {
      id: string
      cost: { usd: string }
    }[]
    assert.deepEqual(
      listed.map(({ id, cost }) => [id, cost.usd]).toReversed(),
      told.map(({ id, costUsd }) => [id, costUsd]),
    )
    const totals = Object((await ask(url, customer.secret, '/v1/usage?start_time=1')).json.totals)
    const nanos = rows.reduce((sum, { amount }) => sum + amount, 0n)
    // What is free is in the ledger, and no request of the report.
    const billable = Object.keys(CALLS).filter((id) => !/count_tokens$/.test(id))
    assert.ok(billable.length < told.length)
    assert.deepEqual([totals.requests, BigInt(totals.charged_micros_usd)], [billable.length, nanos / 1_000n])
  })

  it('LIMIT-1 requests for what is nowhere, or by another method, count as requests of a known caller', async () => {
    const slow = await makeCustomer(pool, { requestsPerMinute: 3 })
    const told = [
      await ask(url, slow.secret, '/v1/nothing'),
      await ask(url, slow.secret, '/v1/rerank'),
      await ask(url, slow.secret, '/apis/v1/nothing', { method: 'POST', body: {} }),
      await ask(url, slow.secret, '/v1/nothing'),
      await ask(url, slow.secret, '/v1/balance'),
    ]
    assert.deepEqual(
      told.map(({ status }) => status),
      [404, 405, 404, 429, 429],
    )
    assert.deepEqual(
      told.slice(0, 3).map(({ headers }) => headers.get('x-ratelimit-remaining-requests')),
      ['2', '1', '0'],
    )
    assert.equal(Object((await ask(url, secret, '/v1/usage?start_time=1')).json.totals).failed_requests, 0)
  })

  it('answers HEAD as GET where that is free, and never runs a call by it', async () => {
    const head = (path: string) => fetch(url + path, { method: 'HEAD', headers: { authorization: `Bearer ${secret}` } })
    for (const path of ['/v1/models', '/v1beta/models', '/v1/usage?start_time=1', '/v1/balance', '/v1/requests']) {
      const told = await head(path)
      assert.deepEqual([told.status, await told.text()], [200, ''], path)
      assert.equal(told.headers.get('content-type'), (await ask(url, secret, path)).headers.get('content-type'), path)
    }
    assert.equal((await head(CALLS.tag_detail?.('').path ?? '')).status, 405)
  })

  it('ERR-1 a refusal for rate limits has its type in every protocol', async () => {
    const slow = await makeCustomer(pool, { requestsPerMinute: 1 })
    await ask(url, slow.secret, '/v1/balance')
    for (const path of ['/v1/nothing', '/v1/messages', '/v1beta/nothing', '/apis/v1/nothing']) {
      const { type } = Object((await ask(url, slow.secret, path)).json.error)
      assert.equal(type, 'rate_limit_error', path)
    }
  })

  it('ERR-5 X-Request-ID is on every response, errors included, and is the one in its body', async () => {
    const body = { query: 'a', documents: ['b'] }
    const once = { 'idempotency-key': 'one' }
    const slow = await makeCustomer(pool, { requestsPerMinute: 1 })
    await ask(url, slow.secret, '/v1/balance')
    const answers: Record<number, Told> = {
      200: await ask(url, secret, '/v1/rerank', { body, headers: once }),
      400: await ask(url, secret, '/v1/rerank', { body: '{' }),
      401: await ask(url, '', '/v1/rerank', { body }),
      402: await ask(url, secret, '/v1/rerank', { body, headers: { 'x-farebox-max-cost-usd': '0' } }),
      403: await ask(
        url,
        (await makeCustomer(pool, { key: { scopes: ['x'] } })).secret,
        '/apis/v1/reseller/social_c/web/fetch_tag_detail?tag_name=x',
      ),
      404: await ask(url, secret, '/apis/v1/nothing'),
      409: await ask(url, secret, '/v1/rerank', { body, headers: once }),
      413: await ask(url, secret, '/v1/rerank', { body: `"${'x'.repeat(2_000_000)}"` }),
      414: await ask(url, secret, `/v1/usage?start_time=${'1'.repeat(10_000)}`),
      415: await ask(url, secret, '/v1/rerank', { body: 'a=b', headers: { 'content-type': 'text/csv' } }),
      422: await ask(url, secret, '/v1/rerank', { body: { ...body, top_n: 1 }, headers: once }),
      429: await ask(url, slow.secret, '/v1/balance'),
      500: await call(url, secret, 'tag_detail', 'sandbox:status=500'),
      502: await call(url, secret, 'rerank', 'sandbox:reset=before-headers'),
      503: await call(url, secret, 'tag_detail', 'sandbox:reset=before-headers'),
    }
    const seen = new Set<string>()
    for (const [status, told] of Object.entries(answers)) {
      assert.equal(told.status, Number(status), told.text.slice(0, 200))
      assert.match(told.id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
      // What an upstream says carries its own.
      if (told.status >= 400 && told.status !== 500) assert.equal(told.json.request_id, told.id)
      seen.add(told.id)
    }
    assert.equal(seen.size, Object.keys(answers).length)
    for (const path of ['/livez', '/readyz', '/nowhere']) assert.ok((await ask(url, '', path)).id, path)
    const own = await ask(url, secret, '/v1/balance', { headers: { 'x-request-id': 'mine' } })
    assert.notEqual(own.id, 'mine')
  })
})

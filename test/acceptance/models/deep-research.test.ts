import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { startGateway } from '../../../harness/gateways.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { setPrice } from '../../../server/src/pricing/prices.ts'
import { ask, errorOf, makeCustomer, makeKey, startInstallation } from '../installation.ts'
import { recordOf, usageOf } from './kept.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 2 })
const { url, pool, sandbox, gateways, masterKey } = installation
after(installation.stop)

const PATH = '/v1/deep-research/search'
/** Searches are few for a key, so that each test brings its own. */
const reader = () => makeCustomer(pool)
const search = (secret: string, body: unknown, headers: Record<string, string> = {}, from = url) =>
  ask(from, secret, PATH, { body, headers })
const asked = async (id: string) => (await sandbox.journal()).find(({ request_id }) => request_id === id)

describe('a search in depth', () => {
  it('passes request and answer on as they came, for its definition is not public', async () => {
    const { secret } = await reader()
    const body = '{ "query":"why is the sea s\\u0061lty", "unknown": [1.0, null],  "depth":"most" }'
    const told = await search(secret, body)
    assert.equal(told.status, 200)
    const entry = await asked(told.id)
    assert.deepEqual(
      [entry?.path, entry?.body_sha256],
      ['/deep_research/search', createHash('sha256').update(body).digest('hex')],
    )
    assert.deepEqual(Object.keys(told.json), ['id', 'query', 'answer', 'sources'])
  })

  it('costs 0.10 USD for each that succeeds, wherever it is looked up, and nothing otherwise', async () => {
    const { secret } = await reader()
    const told = await search(secret, { query: 'why is the sea salty' })
    assert.deepEqual([told.status, told.costUsd], [200, '0.100000000'])
    assert.deepEqual(await recordOf(url, secret, told.id), {
      costUsd: '0.100000000',
      failed: false,
      tokens: { input: 0, output: 0, cache_read: 0, cache_write: 0 },
      formula: '1 call × 0.1 USD',
      evidence: { units: '1' },
    })
    for (const [word, status] of [
      ['sandbox:status=500', 500],
      ['sandbox:status=404', 404],
      ['sandbox:reset=before-headers', 502],
    ] as const) {
      const failed = await search(secret, { query: word })
      assert.deepEqual([failed.status, failed.costUsd], [status, '0.000000000'], word)
    }
    const { requests, failed_requests, charged_micros_usd } = await usageOf(url, secret)
    assert.deepEqual([requests, failed_requests, charged_micros_usd], [4, 3, 100_000])
  })

  it('is charged in whatever form its answer comes: the caller may have asked for it', async () => {
    const { secret } = await reader()
    const told = await search(secret, { query: 'sandbox:garbage' })
    assert.deepEqual([told.status, told.costUsd], [200, '0.100000000'])
  })

  it('can be quoted, exactly', async () => {
    const { secret } = await reader()
    const { json } = await search(secret, { query: 'a' }, { 'x-farebox-cost-mode': 'quote' })
    assert.deepEqual([json.exact, Object(json.max).usd], [true, '0.100000000'])
    const used = await search(secret, { query: 'a' }, { 'x-farebox-quote-id': String(json.quote_id) })
    assert.deepEqual([used.status, used.costUsd], [200, '0.100000000'])
  })

  it('LIMIT-3 is 5 requests a minute for a key, over all processes; what else the key calls is not concerned', async () => {
    const { secret, workspaceId } = await reader()
    const told = await Promise.all(
      Array.from({ length: 12 }, (_, at) => search(secret, { query: `${at}` }, {}, gateways[at % 2]?.url)),
    )
    assert.equal(told.filter(({ status }) => status === 200).length, 5)
    const refused = told.filter(({ status }) => status === 429)
    assert.equal(refused.length, 7)
    for (const one of refused) {
      assert.deepEqual([errorOf(one).type, errorOf(one).code], ['rate_limit_error', 'rate_limit_exceeded'])
      assert.match(String(errorOf(one).message), /endpoint: 5 requests per 60 seconds/)
      assert.match(String(one.headers.get('retry-after')), /^[1-9]\d?$/)
    }
    assert.equal((await usageOf(url, secret)).requests, 5)
    const rerank = { query: 'a', documents: ['b'] }
    assert.equal((await ask(url, secret, '/v1/rerank', { body: rerank })).status, 200)
    const other = await makeKey(pool, workspaceId)
    assert.equal((await search(other.secret, { query: 'a' })).status, 200)
  })

  it('takes one of the places that its key has at once', async () => {
    const { secret } = await makeCustomer(pool, { key: { rates: { concurrency: 1 } } })
    const slow = search(secret, { query: 'sandbox:delay=4000' })
    await until(
      async () => (await pool.query("select from holds where operation = 'deep_research'")).rowCount === 1,
      PATIENCE_MS,
      'the first one',
    )
    const second = await search(secret, { query: 'a' })
    assert.deepEqual([second.status, errorOf(second).code], [429, 'rate_limit_exceeded'])
    assert.match(String(errorOf(second).message), /this key reached: 1 of 1 calls running/)
    assert.equal((await slow).status, 200)
    assert.equal((await search(secret, { query: 'a' })).status, 200)
  })

  it('refuses what is no JSON object, and asks nobody', async () => {
    const { secret } = await reader()
    const before = (await sandbox.journal()).length
    for (const body of ['{', '[]', '"text"']) {
      const told = await search(secret, body)
      assert.deepEqual([told.status, errorOf(told).type], [400, 'invalid_request_error'])
    }
    assert.equal((await sandbox.journal()).length, before)
  })

  it('stands where the configuration says, here and upstream', async () => {
    const { secret } = await reader()
    const elsewhere = await startGateway({
      databaseUrl: database.url,
      env: {
        FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(),
        FAREBOX_LOG_LEVEL: 'warn',
        FAREBOX_NAMES_DEEP_RESEARCH: 'research/in-depth',
        FAREBOX_NAMES_DEEP_RESEARCH_UPSTREAM: 'v7/search',
      },
    })
    try {
      assert.equal((await search(secret, { query: 'a' }, {}, elsewhere.url)).status, 404)
      const told = await ask(elsewhere.url, secret, '/v1/research/in-depth', { body: { query: 'a' } })
      // The sandbox has nothing there.
      assert.deepEqual([told.status, told.costUsd], [404, '0.000000000'])
      assert.equal((await asked(told.id))?.path, '/deep_research/v7/search')
    } finally {
      await elsewhere.stop()
    }
  })

  it('costs what an operator says instead', async () => {
    const { secret } = await reader()
    await setPrice(pool, { operation: 'deep_research', unitPrice: '0.25' })
    await until(
      async () => {
        const { json } = await search((await reader()).secret, { query: 'a' }, { 'x-farebox-cost-mode': 'quote' })
        return Object(json.max).usd === '0.250000000'
      },
      PATIENCE_MS,
      'the new price',
    )
    const told = await search(secret, { query: 'a' })
    assert.equal(told.headers.get('x-farebox-price-version'), '1')
    assert.equal(told.costUsd, '0.250000000')
    assert.deepEqual(await verifyLedger(pool), [])
  })
})

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { type Gateway, startGateway } from '../../harness/gateways.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { isSoldByUnit } from '../../server/src/catalogue/operation.ts'
import { decimalText } from '../../server/src/kernel/rational.ts'
import { setPrice } from '../../server/src/pricing/prices.ts'
import { connect } from '../ledger/world.ts'

const FRESH_SECONDS = 4
const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const running: Gateway[] = []

async function start(roles: string): Promise<Gateway> {
  const env = {
    FAREBOX_LOG_LEVEL: 'silent',
    FAREBOX_ROLES: roles,
    FAREBOX_SALES_FRESH_SECONDS: String(FRESH_SECONDS),
  }
  const process = await startGateway({ databaseUrl: database.url, env })
  running.push(process)
  return process
}

const site = await start('site')
after(async () => {
  await Promise.all(running.map((process) => process.stop()))
  await pools.close()
})

type Told = { readonly status: number; readonly headers: Headers; readonly body: Record<string, unknown> }

async function sales(at = site): Promise<Told> {
  const response = await fetch(`${at.siteUrl}/api/sales-api-data`)
  return { status: response.status, headers: response.headers, body: Object(await response.json()) }
}

/** Waits until the website says what is wanted; every answer on the way is verified. */
async function untilTold(isWanted: (told: Told) => boolean): Promise<Told> {
  let told = await sales()
  await until(
    async () => {
      told = await sales()
      if (told.status === 200) assertVerified(told)
      return isWanted(told)
    },
    PATIENCE_MS,
    'what is wanted of the sales data',
  )
  return told
}

const is = (freshness: string) => (told: Told) => told.body.freshness === freshness

function assertVerified({ body }: Told): void {
  const { content_hash: contentHash, snapshot, observed_at: observedAt } = body
  assert.equal(hash('sha256', JSON.stringify(snapshot), 'hex'), contentHash)
  assert.equal(Object(snapshot).observed_at, observedAt)
}

async function assertAbout({ headers }: Told): Promise<void> {
  const version = Object(await (await fetch(`${site.siteUrl}/api/contracts/version`)).json())
  assert.equal(headers.get('x-farebox-contract-hash'), version.contentHash)
  assert.equal(headers.get('x-farebox-docs-revision'), version.docsRevision)
}

async function assertUnavailable(told: Told): Promise<void> {
  assert.equal(told.status, 503)
  assert.equal(told.body.freshness, 'unavailable')
  assert.equal(told.body.reason_code, 'verified_sales_source_unavailable')
  assert.equal(told.body.snapshot, undefined)
  assert.match(told.headers.get('content-type') ?? '', /^application\/problem\+json/)
  await assertAbout(told)
}

describe('SITE-1, SITE-3 what is sold, at /api/sales-api-data', () => {
  let worker: Gateway

  it('is unavailable before any worker has seen it: 503, and nothing was executed or charged', async () => {
    await assertUnavailable(await sales())
  })

  it('is fresh once a worker has: every operation with its price, by bytes of the hash', async () => {
    worker = await start('worker')
    const told = await untilTold(is('fresh'))
    await assertAbout(told)
    const { operations, models, limits, contract_hash: contractHash } = Object(told.body.snapshot)
    assert.equal(contractHash, told.headers.get('x-farebox-contract-hash'))
    assert.deepEqual(
      operations.map((one: unknown) => Object(one).operation_id),
      catalogue.operations.map(({ id }) => id),
    )
    for (const operation of catalogue.operations.filter(isSoldByUnit)) {
      const { price } = operations.find((one: unknown) => Object(one).operation_id === operation.id)
      assert.equal(price.usd_per_unit, decimalText(operation.price.unitPrice, 9))
    }
    assert.ok(Array.isArray(models))
    assert.equal(limits.tiers.length, 3)
    assert.equal((await fetch(`${site.siteUrl}/api/sales-api-data`, { method: 'HEAD' })).status, 200)
  })

  it('is not sent again to who has it, and has another tag once anything of it is another', async () => {
    const get = (known: string) => fetch(`${site.siteUrl}/api/sales-api-data`, { headers: { 'if-none-match': known } })
    const first = await untilTold(is('fresh'))
    const tag = first.headers.get('etag') ?? assert.fail('there is no tag')
    assert.equal(tag, `"${first.body.content_hash}.fresh"`)
    // The worker may have made another meanwhile, which is then sent whole.
    const again = await get(tag)
    const isSame = again.headers.get('etag') === tag
    assert.equal(again.status, isSame ? 304 : 200)
    await assertAbout({ ...first, headers: again.headers })
    assert.equal((await again.text()).length === 0, isSame)
    assert.equal((await get('"another"')).status, 200)
  })

  it('tells a price that an operator has set', async () => {
    await setPrice(pool, { operation: 'rerank', unitPrice: '0.00000007' })
    const told = await untilTold(({ body }) => JSON.stringify(body).includes('"usd_per_unit":"0.00000007"'))
    assert.equal(told.body.freshness, 'fresh')
  })

  it('is stale while the source fails, with its own time of observation, and fresh again after that', async () => {
    await pool.query('alter table price_versions rename to price_versions_elsewhere')
    const told = await untilTold(is('stale'))
    assert.equal(told.body.reason_code, 'verified_sales_source_unavailable')
    await assertAbout(told)
    const again = await sales()
    assert.equal(again.body.observed_at, told.body.observed_at)
    assert.equal(again.body.content_hash, told.body.content_hash)
    await pool.query('alter table price_versions_elsewhere rename to price_versions')
    const fresh = await untilTold(is('fresh'))
    assert.ok(Date.parse(String(fresh.body.observed_at)) > Date.parse(String(told.body.observed_at)))
  })

  it('is stale once the worker is dead for too long, with the time at which it was seen', async () => {
    await worker.kill()
    const { rows } = await pool.query('select content_hash from sales_snapshots')
    const told = await untilTold(({ body }) => body.reason_code === 'observation_too_old')
    assert.equal(told.status, 200)
    assert.equal(told.body.freshness, 'stale')
    assert.equal(told.body.content_hash, rows[0].content_hash)
    await assertAbout(told)
    // Nobody makes another now: the same bytes, which who has them as fresh has not.
    const tag = `"${rows[0].content_hash}.stale.observation_too_old"`
    assert.equal(told.headers.get('etag'), tag)
    const ask = async (known: string) => {
      const answer = await fetch(`${site.siteUrl}/api/sales-api-data`, { headers: { 'if-none-match': known } })
      return [answer.status, (await answer.text()).length > 0]
    }
    assert.deepEqual(await ask(tag), [304, false])
    assert.deepEqual(await ask(`"${rows[0].content_hash}.fresh"`), [200, true])
  })

  it('goes on from memory where PostgreSQL can not be asked, and says that it is stale', async () => {
    await pool.query('alter table sales_snapshots rename to sales_elsewhere')
    const told = await untilTold(({ body }) => body.reason_code === 'verified_sales_source_unavailable')
    assert.equal(told.body.freshness, 'stale')
    await pool.query('alter table sales_elsewhere rename to sales_snapshots')
  })

  it('is not served where its bytes were tampered with: the one before is kept, and who has none says so', async () => {
    const before = await untilTold(is('stale'))
    const tamper = `update sales_snapshots set bytes = convert_to(replace(convert_from(bytes, 'UTF8'), '0.00000007', '0.00000001'), 'UTF8')`
    await assert.rejects(pool.query(tamper), /sales_snapshots_check|content_hash_check/)
    await pool.query('alter table sales_snapshots drop constraint sales_snapshots_check')
    assert.equal((await pool.query(tamper)).rowCount, 1)
    const told = await untilTold(({ body }) => body.reason_code === 'verified_sales_source_unavailable')
    assert.equal(told.body.freshness, 'stale')
    assert.equal(told.body.content_hash, before.body.content_hash)
    const other = await start('site')
    await assertUnavailable(await sales(other))
    // A worker makes another, and everybody has that.
    await start('worker')
    const fresh = await untilTold(is('fresh'))
    assert.ok(JSON.stringify(fresh.body).includes('"usd_per_unit":"0.00000007"'))
  })
})

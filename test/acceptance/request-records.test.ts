import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { reverseCharge } from '../../server/src/ledger/reverse.ts'
import { ask, call, errorOf, ids, makeCustomer, makeKey, startInstallation, type Told } from './installation.ts'
import { attemptsIn } from './recorded-attempts.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, gateways, sandbox } = installation
after(installation.stop)

const requests = (secret: string, query = '') => ask(url, secret, `/v1/requests${query}`)

async function detailOf(secret: string, id: string): Promise<Record<string, unknown>> {
  let told = await requests(secret, `/${id}`)
  // Written behind the answer.
  await until(async () => {
    told = await requests(secret, `/${id}`)
    return told.json.detail !== null
  }, PATIENCE_MS)
  return told.json
}

describe('GET /v1/requests/{id}', () => {
  it('BASE-4 BASE-5 is 200 with cost, evidence, formula, tokens, the part of the upstream, and times', async () => {
    const { secret } = await makeCustomer(pool)
    const told = await call(url, secret, 'rerank', 'sandbox:tokens=41')
    const { begun_at, ended_at, detail, ledger, postings, ...rest } = await detailOf(secret, told.id)
    assert.deepEqual(rest, {
      id: told.id,
      operation: 'rerank',
      model: null,
      outcome: 'posted',
      failed: false,
      executed: true,
      end_user: null,
      tags: {},
      route: 'rerank',
      cost: { usd: '0.000002050', micros_usd: 2 },
      held: { usd: '0.000005400', micros_usd: 5 },
      published_value: { usd: '0.000002050', micros_usd: 2 },
      overrun: { usd: '0.000000000', micros_usd: 0 },
      terms: [{ count: '41', unit: 'tokens', price_usd: '0.00000005', cost_usd: '0.00000205' }],
      tokens: { input: 41, output: 0, cache_read: 0, cache_write: 0 },
    })
    assert.equal(told.costUsd, '0.000002050')
    const moved = postings as { entry: string; debit: string; credit: string; amount: { usd: string } }[]
    assert.deepEqual(
      moved.map(({ entry, debit, credit, amount }) => [entry, debit, credit, amount.usd]),
      [
        ['hold', 'available', 'held', '0.000005400'],
        ['charge', 'held', 'charged', '0.000002050'],
        ['release', 'held', 'available', '0.000003350'],
      ],
    )
    assert.deepEqual(ledger, [
      {
        id: told.id,
        kind: 'posted',
        charged: { usd: '0.000002050', micros_usd: 2 },
        promotional: { usd: '0.000000000', micros_usd: 0 },
        at: ended_at,
      },
    ])
    const { timeline, upstream, routing, first_byte_ms, hold, ...how } = Object(detail)
    assert.deepEqual(how, {
      status: 200,
      formula: '41 tokens × 0.00000005 USD',
      evidence: { units: '41', inputTokens: 41 },
      price_version: '0',
      balance_after: { usd: '9.999997950', micros_usd: 9_999_997 },
    })
    assert.deepEqual(
      Object(hold).map(({ amount }: { amount: unknown }) => amount),
      [{ usd: '0.000005400', micros_usd: 5 }],
    )
    assert.deepEqual(attemptsIn(detail), [{ slot: 'rerank', outcome: 'answered', status: 200, reason: null }])
    assert.deepEqual(Object.keys(timeline).sort(), ['answered', 'begun', 'settled'])
    assert.deepEqual([upstream.length, routing, first_byte_ms], [1, null, timeline.settled])
    assert.ok(begun_at !== null)
  })

  it('tells of a call that failed: why, and that it costs nothing', async () => {
    const { secret } = await makeCustomer(pool)
    const told = await call(url, secret, 'rerank', 'sandbox:reset=before-headers')
    const { outcome, failed, executed, cost, detail } = await detailOf(secret, told.id)
    assert.deepEqual([outcome, failed, executed], ['voided', true, true])
    assert.deepEqual(cost, { usd: '0.000000000', micros_usd: 0 })
    assert.deepEqual(attemptsIn(detail), [{ slot: 'rerank', outcome: 'unknown', status: null, reason: 'reset' }])
    assert.equal(Object(detail).status, 502)
  })

  it('tells what was given back, and the cost without it', async () => {
    const { secret } = await makeCustomer(pool)
    const { id } = await call(url, secret, 'financial_metrics_snapshot')
    await reverseCharge(pool, ids.next(), id, nanos(4_000_000n))
    const { cost, ledger } = await detailOf(secret, id)
    assert.deepEqual(cost, { usd: '0.006000000', micros_usd: 6_000 })
    const lines = ledger as { kind: string; charged: { usd: string } }[]
    assert.deepEqual(
      lines.map(({ kind, charged }) => [kind, charged.usd]),
      [
        ['posted', '0.010000000'],
        ['charge_reversal', '-0.004000000'],
      ],
    )
    const [listed] = (await requests(secret)).json.data as { cost: unknown }[]
    assert.deepEqual(listed?.cost, { usd: '0.006000000', micros_usd: 6_000 })
  })

  it('tells of a call that runs what it holds, of one that nobody runs any more that it is unsettled, and of both how they end', async () => {
    const { secret, accountId } = await makeCustomer(pool)
    const running = call(url, secret, 'financial_metrics_snapshot', 'sandbox:delay=5000')
    let open: { id: string; owner_id: string } | undefined
    await until(async () => {
      const { rows } = await pool.query('select id, owner_id from holds where account_id = $1', [accountId])
      open = rows[0]
      return open !== undefined
    }, PATIENCE_MS)
    const { id = '', owner_id } = open ?? {}
    const { begun_at, ...rest } = (await requests(secret, `/${id}`)).json
    const held = { usd: '0.010000000', micros_usd: 10_000 }
    const expected = { id, operation: 'financial_metrics_snapshot', model: null, held, end_user: null, tags: {} }
    assert.deepEqual(rest, { ...expected, outcome: 'running', unsettled_at: null })
    assert.ok(new Date(String(begun_at)) <= new Date())
    const { secret: stranger } = await makeCustomer(pool)
    assert.equal((await requests(stranger, `/${id}`)).status, 404)

    await pool.query('select mark_unsettled(array[$1::uuid], $2)', [id, owner_id])
    const { outcome, unsettled_at } = (await requests(secret, `/${id}`)).json
    assert.equal(outcome, 'unsettled')
    assert.ok(unsettled_at !== null)
    assert.equal((await running).id, id)
    assert.equal((await requests(secret, `/${id}`)).json.outcome, 'posted')
  })

  it("is 404 for another's call, for one that nobody made, and for nonsense, alike", async () => {
    const { secret, workspaceId } = await makeCustomer(pool)
    const sibling = await makeKey(pool, workspaceId)
    const { id } = await call(url, secret, 'tag_detail')
    assert.equal((await requests(secret, `/${id}`)).status, 200)
    const strangers = await requests(sibling.secret, `/${id}`)
    const bodyOf = ({ json }: Told) => ({ ...json, request_id: '' })
    for (const [one, key] of [
      [id, (await makeCustomer(pool)).secret],
      [ids.next(), secret],
      ['00000000-0000-0000-0000-000000000000', secret],
      ['nonsense', secret],
      ['%25', secret],
      ["'%20or%201=1", secret],
      ['..%2f', secret],
      ['a'.repeat(2_000), secret],
    ] as const) {
      const told = await requests(key, `/${one}`)
      assert.equal(told.status, 404, one)
      assert.deepEqual(bodyOf(told), bodyOf(strangers))
    }
    assert.equal(errorOf(strangers).code, 'resource_not_found')
  })
})

describe('what is kept of a call', () => {
  it('is nothing of what was asked or answered: a canary in query, documents and answer is in no table and no log', async () => {
    const { secret } = await makeCustomer(pool)
    const canary = 'Canary7f3aTweet'
    const told = [
      await ask(url, secret, '/v1/rerank', {
        body: { query: `is ${canary}`, documents: [`a ${canary}`, 'b'], user: canary },
      }),
      await call(url, secret, 'tag_detail', canary),
      await call(url, secret, 'tweet_quotes', `${canary} sandbox:status=500`),
      await call(url, secret, 'rerank', `${canary} sandbox:garbage`),
      await call(url, secret, 'rerank', `${canary} sandbox:reset=before-headers`),
      await ask(url, secret, `/v1/requests?operation=${canary}`),
      await ask(url, secret, `/apis/v1/social_a/tweet/quotes?other=${canary}`),
    ]
    assert.deepEqual(
      told.map(({ status }) => status),
      [200, 200, 500, 502, 502, 400, 400],
    )
    await detailOf(secret, told[4]?.id ?? '')
    // The sandbox itself was told, so the search would find it.
    assert.ok((await sandbox.journal()).some(({ query }) => query.includes(canary)))
    const { rows: tables } = await pool.query(
      "select oid::regclass::text as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace",
    )
    assert.ok(tables.length > 15)
    let seen = 0
    for (const { name } of tables) {
      const { rows } = await pool.query(
        `select count(*)::integer as all, count(*) filter (where position($1 in one::text) > 0)::integer as found from ${name} one`,
        [canary],
      )
      assert.equal(rows[0].found, 0, name)
      seen += rows[0].all
    }
    assert.ok(seen > 100)
    for (const gateway of gateways) assert.ok(!gateway.output().includes(canary))
  })
})

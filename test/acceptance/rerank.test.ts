import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { ask, errorOf, makeCustomer, startInstallation } from './installation.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url, { env: { FAREBOX_RERANK_MODELS: 'another, a third' } })
const { url, pool, sandbox } = installation
after(installation.stop)
const customer = await makeCustomer(pool)

const rerank = (body: unknown, headers: Record<string, string> = {}, secret = customer.secret) =>
  ask(url, secret, '/v1/rerank', { body, headers })
const REQUEST = { query: 'a quick animal', documents: ['a snail', 'a fox', 'a stone'] }

describe('POST /v1/rerank', () => {
  it('RERANK-2 orders results by relevance, highest first; index points into the input and document is that input', async () => {
    for (const query of ['a quick animal', 'sandbox:unsorted anything']) {
      const { status, json } = await rerank({ ...REQUEST, query })
      assert.equal(status, 200)
      const results = json.results as { index: number; relevance_score: number; document: { text: string } }[]
      assert.equal(results.length, 3)
      assert.deepEqual(
        results.map(({ relevance_score }) => relevance_score),
        results.map(({ relevance_score }) => relevance_score).toSorted((a, b) => b - a),
      )
      for (const { index, document } of results) assert.equal(document.text, REQUEST.documents[index])
      assert.deepEqual(new Set(results.map(({ index }) => index)), new Set([0, 1, 2]))
    }
  })

  it('RERANK-2 gives at most top_n', async () => {
    const { json } = await rerank({ ...REQUEST, top_n: 2 })
    assert.equal((json.results as unknown[]).length, 2)
  })

  it('RERANK-1 needs a query and documents that are not empty; model, top_n and other known members may be there', async () => {
    for (const body of [
      { documents: ['a'] },
      { query: 'a' },
      { query: '', documents: ['a'] },
      { query: 'a', documents: [] },
      { query: 'a', documents: [1] },
      { query: 'a', documents: ['b'], top_n: 0 },
      { query: 'a', documents: ['b'], top_n: 1.5 },
      [],
      null,
      '"text"',
      '{"broken":',
      '',
    ]) {
      const told = await rerank(body)
      assert.equal(told.status, 400, JSON.stringify(body))
      assert.equal(errorOf(told).type, 'invalid_request_error')
    }
    for (const more of [{ model: 'another' }, { return_documents: true, max_tokens_per_doc: 100 }, { top_n: 100 }])
      assert.equal((await rerank({ ...REQUEST, ...more })).status, 200)
    for (const more of [{ model: 'rerank' }, { model: 'a third', instruction: 'Be strict.', user: 'u' }])
      assert.equal((await rerank({ ...REQUEST, ...more })).status, 200)
  })

  it('refuses by name what it does not know, another model, and a known name in another case', async () => {
    const before = (await sandbox.journal()).length
    for (const [more, expected] of [
      [{ rerank_twice: true }, /"rerank_twice" is not supported/],
      [{ Instruction: 'x' }, /"Instruction" is not supported in this spelling/],
      [{ instruction: 'a', topN: 2 }, /"topN"/],
      [{ instruction: ['a'] }, /instruction/],
      [{ max_chunks_per_doc: 9 }, /"max_chunks_per_doc" is not supported/],
      [{ model: 'large' }, /"model".* rerank, another, a third/],
    ] as const) {
      const told = await rerank({ ...REQUEST, ...more })
      assert.equal(told.status, 400, JSON.stringify(more))
      assert.match(String(errorOf(told).message), expected)
    }
    const queried = await ask(url, customer.secret, '/v1/rerank?instruction=zzz', { body: REQUEST })
    assert.equal(queried.status, 400, queried.text)
    assert.equal((await sandbox.journal()).length, before)
  })

  it('holds an instruction once for each document, for it is read with each', async () => {
    const instruction = 'x'.repeat(1_000)
    const needed = async (body: unknown) =>
      Number(errorOf(await rerank(body, { 'x-farebox-max-cost-usd': '0' })).needed_usd) / 0.000_000_05
    const more = (await needed({ ...REQUEST, instruction })) - (await needed(REQUEST))
    assert.equal(Math.round(more), 1_000 * REQUEST.documents.length)
  })

  it('RERANK-3 charges tokens × 0.00000005 USD, exactly as many as usage says', async () => {
    for (const tokens of [1, 2, 3, 19, 20, 21, 999, 123_457, 1_000_000]) {
      const query = `sandbox:tokens=${tokens} ${'x'.repeat(Math.max(0, tokens))}`.slice(0, 900_000)
      // Enough text that the bound covers the tokens, which are read once for each document.
      const documents = Array.from({ length: Math.ceil(tokens / query.length) + 1 }, () => 'document')
      const { status, json, costUsd } = await rerank({ query, documents })
      assert.equal(status, 200)
      assert.deepEqual(json.usage, { total_tokens: tokens })
      assert.equal(costUsd, `0.${String(tokens * 50).padStart(9, '0')}`)
    }
  })

  it('RERANK-3 tells the count that is charged where the upstream does not say what it used', async () => {
    const { json, costUsd } = await rerank({ ...REQUEST, query: 'sandbox:no-usage' })
    const tokens = Number(Object(json.usage).total_tokens)
    assert.ok(tokens > 0)
    assert.equal(costUsd, `0.${String(tokens * 50).padStart(9, '0')}`)
  })

  it('RERANK-3 tells the count that is billed where the upstream reports more than was held; it is the one of reports too', async () => {
    const { secret } = await makeCustomer(pool)
    const query = 'sandbox:tokens=1000000'
    const body = { query, documents: ['a snail', 'a fox'] }
    const [needed, quote] = [
      errorOf(await rerank(body, { 'x-farebox-max-cost-usd': '0' }, secret)).needed_usd,
      (await rerank(body, { 'x-farebox-cost-mode': 'quote' }, secret)).json.quote_id,
    ]
    const most = Math.round(Number(needed) / 0.000_000_05)
    assert.ok(most > 0 && most < 1_000_000, `${most}`)
    for (const headers of [{}, { 'x-farebox-quote-id': String(quote) }]) {
      const { status, json, costUsd } = await rerank(body, headers, secret)
      assert.equal(status, 200, JSON.stringify(json))
      assert.deepEqual([json.usage, costUsd], [{ total_tokens: most }, needed])
    }
    const { totals } = (await ask(url, secret, '/v1/usage?start_time=1')).json
    assert.equal(Object(totals).input_tokens, 2 * most)
  })

  it('ERR-4 a native upstream that can not be reached is 502, and costs nothing', async () => {
    const told = await rerank({ ...REQUEST, query: 'sandbox:reset=before-headers' })
    assert.equal(told.status, 502)
    assert.equal(errorOf(told).code, 'upstream_transport')
    assert.equal(told.costUsd, '0.000000000')
    assert.equal(told.headers.get('x-should-retry'), 'false')
  })

  it('ERR-2 a cap below the most that it can cost is 402 before any spend, with what was needed', async () => {
    const before = (await sandbox.journal()).length
    const told = await rerank(REQUEST, { 'x-farebox-max-cost-usd': '0.000000001' })
    assert.equal(told.status, 402)
    assert.equal(errorOf(told).code, 'cost_cap_exceeded')
    assert.equal(errorOf(told).cap_usd, '0.000000001')
    assert.match(String(errorOf(told).needed_usd), /^0\.\d{9}$/)
    assert.equal((await rerank(REQUEST, { 'x-farebox-max-cost-usd': '1' })).status, 200)
    for (const wrong of ['-1', 'much', '', '1e3', '0.0000000001'])
      assert.equal((await rerank(REQUEST, { 'x-farebox-max-cost-usd': wrong })).status, 400, wrong)
    assert.equal((await sandbox.journal()).length, before + 1)
  })

  it('ERR-2 a balance that does not cover it is 402, with what was needed and what is left', async () => {
    const poor = await makeCustomer(pool, { money: 100n })
    const told = await rerank(REQUEST, {}, poor.secret)
    assert.equal(told.status, 402)
    assert.equal(errorOf(told).code, 'insufficient_balance')
    assert.equal(errorOf(told).left_usd, '0.000000100')
  })
})

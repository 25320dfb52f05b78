import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { after, describe, it } from 'node:test'
import OpenAI from 'openai'
import { freePort } from '../../harness/free-port.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { saveUpstream } from '../../server/src/upstreams/configure.ts'
import { ask, call, errorOf, ids, makeCustomer, startInstallation } from './installation.ts'

const database = await freshDatabase()
const lines: string[] = []
const installation = await startInstallation(database.url, { onLine: (line) => lines.push(line) })
const { url, pool } = installation
after(installation.stop)
const { secret } = await makeCustomer(pool, { key: { mode: 'live' } })

const port = await freePort()
const bind = (slot: string, kind: 'native' | 'managed') =>
  saveUpstream(
    { pool, ids, seal: null },
    { slot, mode: 'live', baseUrl: `http://127.0.0.1:${port}`, kind, credential: null },
  )
await bind('rerank', 'native')
await bind('financial', 'managed')

const lineOf = (id: string) => lines.map((line) => JSON.parse(line)).find((line) => line.request_id === id)

/** Answers as a reranker does, from now on. */
function startReranker() {
  const server = createServer((request, response) => {
    const results = [{ index: 0, relevance_score: 0.5 }]
    request.resume().on('end', () => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ model: 'rerank', results, usage: { total_tokens: 2 } }))
    })
  })
  after(() => server.close())
  server.listen(port, '127.0.0.1')
}

describe('an upstream that nobody can connect to', () => {
  let failures = 0
  for (const [operation, status, code] of [
    ['rerank', 502, 'upstream_unreachable'],
    ['financial_metrics_snapshot', 503, 'managed_upstream_unreachable'],
  ] as const)
    it(`ERR-4 ERR-6 is ${status} ${code}, which may be repeated; nothing is charged, and the log says why: ${operation}`, async () => {
      const told = await call(url, secret, operation)
      assert.deepEqual([told.status, errorOf(told).code], [status, code])
      assert.deepEqual([told.headers.get('x-should-retry'), told.headers.get('retry-after')], [null, '1'])
      assert.equal(told.costUsd, '0.000000000')
      const record = (await ask(url, secret, `/v1/requests/${told.id}`)).json
      assert.deepEqual([record.outcome, record.executed, record.failed], ['voided', true, true])
      const { totals } = (await ask(url, secret, '/v1/usage?start_time=1&group_by=operation')).json
      const { requests, failed_requests: failed, charged_micros_usd: charged } = Object(totals)
      failures += 1
      assert.deepEqual([requests, failed, charged], [failures, failures, 0])
      await until(async () => lineOf(told.id) !== undefined, PATIENCE_MS)
      const { code: logged, reason, upstream, duration_ms, level } = lineOf(told.id)
      assert.deepEqual([logged, reason, level], [code, 'connect', 'warn'])
      assert.equal(upstream, `${operation === 'rerank' ? 'rerank' : 'financial'}@127.0.0.1:${port}`)
      assert.ok(Number.isInteger(duration_ms) && duration_ms >= 0)
    })

  it('ERR-6 an SDK repeats the call by itself, and is answered once when the upstream is there again', async () => {
    const sent: number[] = []
    const client = new OpenAI({
      baseURL: `${url}/v1`,
      apiKey: secret,
      maxRetries: 3,
      async fetch(input, init) {
        const answer = await fetch(input, init)
        sent.push(answer.status)
        if (sent.length === 2) startReranker()
        return answer
      },
    })
    const answer = await client.post('/rerank', { body: { query: 'a', documents: ['b'] } })
    assert.deepEqual(Object(answer).usage, { total_tokens: 2 })
    assert.deepEqual(sent, [502, 502, 200])
  })
})

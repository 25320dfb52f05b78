import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { FIXES } from '../../client/src/fixes.ts'
import { BudgetError, Farebox, FareboxError, UnexpectedAnswerError } from '../../client/src/index.ts'
import { FAULTS } from '../../server/src/kernel/fault.ts'

/** A client whose gateway says just this. */
function told(status: number, body: string, headers: Readonly<Record<string, string>>) {
  const asked: { url: string; init: RequestInit }[] = []
  const farebox = new Farebox({
    apiKey: 'fb_test_secret',
    baseUrl: 'https://gateway.invalid/',
    maxRetries: 0,
    async fetch(url, init) {
      asked.push({ url, init })
      return new Response(body, { status, headers })
    },
  })
  const call = () => farebox.call('rerank', { query: 'a', documents: ['b'] }).catch((error: unknown) => error)
  return { farebox, call, asked }
}

const CHARGED = { 'x-farebox-cost-usd': '0.000000150', 'x-request-id': 'r-1' }
const JSON_TYPE = { 'content-type': 'application/json' }

describe('an answer', () => {
  it('CLIENT-4 that is not JSON by its content type is not parsed, and is handed over with its cost', async () => {
    for (const type of ['text/html', 'text/plain; charset=utf-8', 'application/octet-stream', 'text/json-like', '']) {
      const { call } = told(200, '{"results": []}', { ...CHARGED, ...(type !== '' && { 'content-type': type }) })
      const error = await call()
      assert.ok(error instanceof UnexpectedAnswerError, type)
      assert.deepEqual([error.body, error.cost?.usd, error.requestId], ['{"results": []}', '0.000000150', 'r-1'])
    }
  })

  it('CLIENT-4 that calls itself JSON and is none is told as such, with its cost', async () => {
    const error = await told(200, '{"results": [', { ...CHARGED, ...JSON_TYPE }).call()
    assert.ok(error instanceof UnexpectedAnswerError)
    assert.deepEqual([error.body, error.cost?.usd], ['{"results": [', '0.000000150'])
  })

  it('CLIENT-4 with the status of an error is one, whatever its body looks like', async () => {
    for (const status of [400, 404, 500, 502]) {
      const body = '{"results": [], "model": "m", "usage": {"total_tokens": 1}}'
      const error = await told(status, body, { ...JSON_TYPE, 'x-should-retry': 'false' }).call()
      assert.ok(error instanceof FareboxError)
      assert.deepEqual([error.status, error.code, error.cost], [status, `status_${status}`, null])
    }
    // What calls itself a page has no code of ours in it.
    const page = '{"error": {"code": "overloaded", "message": "no"}}'
    const error = await told(404, page, { 'content-type': 'text/html' }).call()
    assert.ok(error instanceof FareboxError && error.code === 'status_404')
  })

  it('CLIENT-4 that sends elsewhere is not followed', async () => {
    const { call, asked } = told(302, '', { location: 'https://elsewhere.invalid/' })
    const error = await call()
    assert.ok(error instanceof UnexpectedAnswerError)
    assert.deepEqual([asked.length, asked[0]?.init.redirect], [1, 'manual'])
  })

  it('CLIENT-2 without a cost is not said to have cost nothing', async () => {
    const result = await told(200, '{"results": []}', JSON_TYPE).farebox.call('rerank', {
      query: 'a',
      documents: ['b'],
    })
    assert.equal(result.cost, null)
  })

  it('has what was charged, what is left and the limits beside its data', async () => {
    const money = { 'x-farebox-balance-usd': '9.5', 'x-farebox-budget-usd': '0.000000001' }
    const limits = {
      'x-ratelimit-limit-requests': '60',
      'x-ratelimit-remaining-requests': '59',
      'x-ratelimit-reset-requests': '1000',
    }
    const { farebox } = told(200, '{"results": []}', { ...JSON_TYPE, ...CHARGED, ...money, ...limits })
    const result = await farebox.call('rerank', { query: 'a', documents: ['b'] }, { idempotencyKey: 'k' })
    assert.deepEqual(
      [result.cost?.nanos, result.balanceLeft?.usd, result.budgetLeft?.nanos, result.requestId, result.idempotencyKey],
      [150n, '9.500000000', 1n, 'r-1', 'k'],
    )
    assert.deepEqual(result.limits.requests, { limit: 60, remaining: 59, resetAt: new Date(1_000_000) })
    assert.equal(JSON.parse(JSON.stringify(result)).cost, '0.000000150')
  })
})

describe('an error', () => {
  it('has the code and the fix, in every dialect of the gateway', async () => {
    const bodies = [
      { error: { code: 'insufficient_balance', message: 'm', needed_usd: '0.2', left_usd: '0.1' } },
      { error: { message: 'm', details: { error_code: 'insufficient_balance', needed_usd: '0.2', left_usd: '0.1' } } },
      {
        error: {
          code: 402,
          message: 'm',
          details: [{ reason: 'insufficient_balance', metadata: { needed_usd: '0.2', left_usd: '0.1' } }],
        },
      },
    ]
    for (const body of bodies) {
      const error = await told(402, JSON.stringify(body), JSON_TYPE).call()
      assert.ok(error instanceof BudgetError)
      assert.deepEqual(
        [error.code, error.needed?.usd, error.left?.usd],
        ['insufficient_balance', '0.200000000', '0.100000000'],
      )
      assert.match(error.fix, /Add credit/)
    }
  })

  it('has a fix for every code that a caller of the gateway can meet', () => {
    // Those of the pages, of the account API, which says what to do itself, and of requests that no client sends.
    const others =
      /^(form_refused|password_reset|sign_up_closed|invitation_|last_owner|member_has_keys|already_member|members_full|contract_hash|unsupported_uri|sign_in_required|cross_site|quota_request|precondition|workspace_closing|workspace_suspended|person_blocked|export_not_ready)/
    const without = Object.keys(FAULTS).filter((code) => !(code in FIXES) && !others.test(code))
    assert.deepEqual(without, [])
  })

  it('advises nobody to wait for a budget that is a total', async () => {
    for (const [period, mayWait] of [
      ['total', false],
      ['day', true],
      ['month', true],
    ] as const) {
      const body = { error: { code: 'budget_exceeded', message: 'm', budget_period: period } }
      const error = await told(402, JSON.stringify(body), JSON_TYPE).call()
      assert.ok(error instanceof BudgetError)
      assert.equal(/or wait for/.test(error.fix), mayWait, error.fix)
    }
  })

  it('has no secret in it, nor has the client when it is printed', async () => {
    const { farebox, call } = told(500, 'oh', { 'x-should-retry': 'false' })
    const error = await call()
    const { inspect } = await import('node:util')
    for (const text of [
      inspect(error, { depth: 9 }),
      inspect(farebox, { depth: 9, showHidden: false }),
      JSON.stringify(farebox),
    ])
      assert.ok(!text.includes('fb_test_secret'), text)
  })
})

describe('a request', () => {
  it('goes to the paths and headers that the operator has named otherwise', async () => {
    const asked: string[] = []
    const farebox = new Farebox({
      apiKey: 'k',
      baseUrl: 'https://gateway.invalid/base/',
      names: { provider: 'Acme', social_a: 'birds', deep_research: 'deep' },
      async fetch(url, init) {
        asked.push(`${url} ${Object.keys(Object(init.headers)).filter((name) => name.startsWith('x-'))}`)
        return new Response('{"quote_id": "a.b", "max": {"usd": "1"}}', {
          headers: { ...JSON_TYPE, 'x-acme-cost-usd': '1' },
        })
      },
    })
    const { cost } = await farebox.call('tweet_quotes', { tweetId: '1 & 2' }, { maxCostUsd: '0.1' })
    await farebox.quote('deep_research', { query: 'why' })
    assert.equal(cost?.usd, '1.000000000')
    assert.deepEqual(asked, [
      'https://gateway.invalid/base/apis/v1/birds/tweet/quotes?tweetId=1+%26+2 x-acme-max-cost-usd,x-acme-tell',
      'https://gateway.invalid/base/v1/deep x-acme-cost-mode',
    ])
  })

  it('is refused before it is sent where it lacks what its path needs, or asks for a stream', async () => {
    const { farebox, asked } = told(200, '{}', JSON_TYPE)
    const model: string = ''
    await assert.rejects(farebox.call('generate_content', { model, contents: [] }), TypeError)
    const body: object = { model: 'm', messages: [], stream: true }
    await assert.rejects(farebox.call('chat_completions', body as { model: string; messages: [] }), /for the SDKs/)
    assert.equal(asked.length, 0)
    assert.throws(() => new Farebox({ apiKey: '', baseUrl: 'https://gateway.invalid' }), TypeError)
  })
})

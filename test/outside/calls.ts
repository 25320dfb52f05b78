import assert from 'node:assert/strict'
import { usd } from '../../server/src/kernel/money.ts'
import { cap, changed, having, maxOf, probesOf, QUOTE, quoteOf, recordOf, refused, requestOf } from './call-rules.ts'
import { ENDPOINTS, SYNCHRONOUS, TRAFFIC } from './endpoints.ts'
import { requireError, sendsNothing } from './probe.ts'

/** What holds for a call of every paid endpoint: credentials, limits, quotes, caps and money. */
export const CALL_PROBES = probesOf([
  {
    says: 'AUTH-1 a call without a credential is 401 in the shape of its protocol',
    of: ENDPOINTS.filter(({ operation }) => operation !== TRAFFIC),
    async check(stack, endpoint) {
      const told = await stack.send('', requestOf(endpoint))
      requireError(told, endpoint.dialect, 401, 'missing_credential')
    },
  },
  {
    says: 'AUTH-1 a call with a key that nobody has is 401 in the shape of its protocol',
    async check(stack, endpoint) {
      const told = await stack.send(`fb_test_${'x'.repeat(40)}`, requestOf(endpoint))
      requireError(told, endpoint.dialect, 401, 'invalid_credential')
    },
  },
  {
    says: 'AUTH-2 a key in the query is refused and reaches no upstream',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const { path } = endpoint
      const told = await refused(stack, customer, {
        ...requestOf(endpoint),
        path: `${path}${path.includes('?') ? '&' : '?'}api_key=${customer.secret}`,
      })
      assert.ok(told.status >= 400 && told.status < 500, told.text)
      assert.doesNotMatch(told.text, new RegExp(customer.secret))
    },
  },
  {
    says: 'AUTH-7 a key whose scopes do not name it is refused with 403',
    async check(stack, endpoint) {
      const customer = await stack.customer({ key: { scopes: [endpoint.otherScope] } })
      requireError(await refused(stack, customer, requestOf(endpoint)), endpoint.dialect, 403, 'forbidden')
    },
  },
  {
    says: 'BASE-5 the cost of an answer, of its record and of the ledger are the same',
    of: SYNCHRONOUS,
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const told = await stack.send(customer.secret, requestOf(endpoint))
      assert.equal(told.status, 200, told.text)
      assert.match(told.costUsd ?? '', /^\d+\.\d{9}$/)
      if (endpoint.costUsd !== undefined) assert.equal(told.costUsd, endpoint.costUsd)
      const record = await recordOf(stack, customer, told.id)
      assert.equal(Object(record.cost).usd, told.costUsd)
      assert.equal(record.operation, endpoint.operation)
      assert.equal(await stack.chargedOf(customer), usd(told.costUsd ?? ''))
    },
  },
  {
    says: 'ERR-5 an answer has an X-Request-ID, and its own content type',
    of: SYNCHRONOUS,
    async check(stack, endpoint) {
      const { secret } = await stack.customer()
      const told = await stack.send(secret, requestOf(endpoint))
      assert.match(told.id, /^[0-9a-f-]{36}$/)
      assert.match(told.headers.get('content-type') ?? '', /^application\/json/)
    },
  },
  {
    says: 'LIMIT-4 an answer tells the requests of the minute: limit, remaining and reset',
    async check(stack, endpoint) {
      const { secret } = await stack.customer({ requestsPerMinute: 4 })
      const [first, second] = [
        await stack.send(secret, requestOf(endpoint)),
        await stack.send(secret, requestOf(endpoint)),
      ]
      for (const [told, left] of [
        [first, '3'],
        [second, '2'],
      ] as const) {
        assert.equal(told.headers.get('x-ratelimit-limit-requests'), '4')
        assert.equal(told.headers.get('x-ratelimit-remaining-requests'), left)
        const reset = Number(told.headers.get('x-ratelimit-reset-requests'))
        assert.ok(Math.abs(reset - Date.now() / 1_000) <= 62, String(reset))
      }
    },
  },
  {
    says: 'ERR-1 a call beyond the requests of a minute is 429 rate_limit_exceeded with Retry-After',
    async check(stack, endpoint) {
      const { secret } = await stack.customer({ requestsPerMinute: 1 })
      await stack.send(secret, requestOf(endpoint))
      const told = await sendsNothing(stack, () => stack.send(secret, requestOf(endpoint)))
      const error = requireError(told, endpoint.dialect, 429, 'rate_limit_exceeded')
      if (endpoint.dialect === 'gemini') assert.equal(error.status, 'RESOURCE_EXHAUSTED')
      else assert.equal(error.type, 'rate_limit_error')
      const seconds = Number(told.headers.get('retry-after'))
      assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60)
      assert.equal(told.headers.get('x-ratelimit-remaining-requests'), '0')
    },
  },
  {
    says: 'QUOTE-1 a quote is free: nothing is executed, charged, held or sent',
    async check(stack, endpoint) {
      const customer = await stack.customer({ requestsPerMinute: 9 })
      const [first, second] = await sendsNothing(stack, async () => [
        await quoteOf(stack, customer, endpoint),
        await quoteOf(stack, customer, endpoint),
      ])
      assert.equal(await stack.chargedOf(customer), 0n)
      const balance = await stack.send(customer.secret, { path: '/v1/balance' })
      assert.doesNotMatch(JSON.stringify(balance.json.held), /[1-9]/)
      const [left, less] = [first, second].map((told) => Number(told?.headers.get('x-ratelimit-remaining-requests')))
      assert.equal(less, (left ?? 0) - 1, 'it counts as a request')
    },
  },
  {
    says: 'QUOTE-2 a quote has operation, currency, expected, max, exactness, version, hash, expiry and its id',
    async check(stack, endpoint) {
      const { json } = await quoteOf(stack, await stack.customer(), endpoint)
      assert.equal(json.operation, endpoint.operation)
      assert.equal(json.currency, 'USD')
      for (const amount of [json.expected, json.max].map(Object)) {
        assert.match(amount.usd, /^\d+\.\d{9}$/)
        assert.ok(Number.isInteger(amount.micros_usd))
      }
      assert.ok(usd(Object(json.expected).usd) <= usd(Object(json.max).usd))
      if (endpoint.costUsd !== undefined) assert.equal(Object(json.expected).usd, endpoint.costUsd)
      assert.equal(typeof json.exact, 'boolean')
      for (const member of ['price_version', 'contract_hash', 'quote_id', 'expires_at']) assert.ok(json[member], member)
    },
  },
  {
    says: 'QUOTE-3 a quote without a credential puts code and message into an error',
    async check(stack, endpoint) {
      const told = await stack.send('', having(endpoint, QUOTE))
      assert.equal(told.status, 401, told.text)
      const { code, message } = Object(told.json.error)
      assert.ok(code === 'missing_credential' || endpoint.dialect === 'anthropic' || code === 401, told.text)
      assert.equal(typeof message, 'string')
    },
  },
  {
    says: 'QUOTE-3 a quote with a bad key tells its request_id too',
    async check(stack, endpoint) {
      const told = await stack.send('fb_test_nobody', having(endpoint, QUOTE))
      assert.equal(told.status, 401, told.text)
      const { code, message } = Object(told.json.error)
      assert.ok(code !== undefined && typeof message === 'string', told.text)
      assert.match(told.text, new RegExp(`"request_id":"${told.id}"`))
    },
  },
  {
    says: 'QUOTE-6 a call with a quote is charged at most its max, and the quote works once',
    of: SYNCHRONOUS,
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const { json } = await quoteOf(stack, customer, endpoint)
      const quoted = having(endpoint, { 'x-farebox-quote-id': String(json.quote_id) })
      const told = await stack.send(customer.secret, quoted)
      assert.equal(told.status, 200, told.text)
      assert.ok(usd(told.costUsd ?? '') <= usd(Object(json.max).usd))
      const again = await sendsNothing(stack, () => stack.send(customer.secret, quoted))
      assert.ok(again.status >= 400 && again.status < 500, again.text)
      assert.equal(await stack.chargedOf(customer), usd(told.costUsd ?? ''))
    },
  },
  {
    says: 'QUOTE-6 a quote of another request is refused before any spend',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const { json } = await quoteOf(stack, customer, endpoint)
      const other = changed(endpoint)
      const told = await refused(stack, customer, {
        ...other,
        headers: { ...other.headers, 'x-farebox-quote-id': String(json.quote_id) },
      })
      requireError(told, endpoint.dialect, 400, 'quote_invalid')
    },
  },
  {
    says: 'ERR-2 a call whose maximum is above its cap is 402 before any spend, with both amounts',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const told = await refused(stack, customer, having(endpoint, cap('0.000000001')))
      requireError(told, endpoint.dialect, 402, 'cost_cap_exceeded')
      assert.match(told.text, /"needed_usd":"\d+\.\d{9}"/)
      assert.match(told.text, /"cap_usd":"0\.000000001"/)
    },
  },
  {
    says: 'QUOTE-2 a cap of exactly the quote’s max lets the call through',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const told = await stack.send(customer.secret, having(endpoint, cap(await maxOf(stack, customer, endpoint))))
      assert.equal(told.status, 200, told.text)
    },
  },
  {
    says: 'QUOTE-2 a cap one nano below the quote’s max refuses it',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const below = usd(await maxOf(stack, customer, endpoint)) - 1n
      const text = `${below / 1_000_000_000n}.${String(below % 1_000_000_000n).padStart(9, '0')}`
      requireError(await refused(stack, customer, having(endpoint, cap(text))), endpoint.dialect, 402)
    },
  },
  {
    says: 'ERR-2 a cap that is no amount is refused, never ignored',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      for (const wrong of ['cheap', '-1', '1e3', ''])
        requireError(await refused(stack, customer, having(endpoint, cap(wrong))), endpoint.dialect, 400)
    },
  },
  {
    says: 'QUOTE-4 a cost mode that does not exist is refused, never executed',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const told = await refused(stack, customer, having(endpoint, { 'x-farebox-cost-mode': 'estimate' }))
      requireError(told, endpoint.dialect, 400)
    },
  },
  {
    says: 'ERR-2 an account without money is 402 insufficient_balance, with what is needed and left',
    async check(stack, endpoint) {
      const customer = await stack.customer({ money: 0n })
      const told = await refused(stack, customer, requestOf(endpoint))
      requireError(told, endpoint.dialect, 402, 'insufficient_balance')
      assert.match(told.text, /"needed_usd":"/)
      assert.match(told.text, /"left_usd":"0\.000000000"/)
    },
  },
  {
    says: 'ERR-2 a key whose budget does not cover the call is 402 budget_exceeded',
    async check(stack, endpoint) {
      const customer = await stack.customer({ key: { budget: { amount: usd('0.000000001'), period: 'total' } } })
      const told = await refused(stack, customer, requestOf(endpoint))
      requireError(told, endpoint.dialect, 402, 'budget_exceeded')
      assert.match(told.text, /"needed_usd":"/)
    },
  },
])

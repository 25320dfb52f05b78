import assert from 'node:assert/strict'
import { usd } from '../../server/src/kernel/money.ts'
import { recordOf } from './call-rules.ts'
import { answerIn, broken, costsIn, framesOf, NO_MORE_THAN, saying, streamed, textIn } from './conversations.ts'
import { type Endpoint, MODELS } from './endpoints.ts'
import { type Probe, requireError, sendsNothing } from './probe.ts'
import type { Stack } from './stack.ts'

/** Models that answer as a stream. */
type Rule = { readonly says: string; readonly check: (stack: Stack, endpoint: Endpoint) => Promise<void> }

const RULES: readonly Rule[] = [
  {
    says: 'MODEL-1 a stream says what the answer in one piece says',
    async check(stack, endpoint) {
      const { secret } = await stack.customer()
      const whole = await stack.send(secret, saying(endpoint, 'sandbox/text', 'a story'))
      const stream = await stack.send(secret, streamed(saying(endpoint, 'sandbox/text', 'a story')))
      assert.equal(stream.status, 200, stream.text)
      assert.match(stream.headers.get('content-type') ?? '', /^text\/event-stream/)
      assert.equal(textIn(framesOf(stream.text)), answerIn(whole.json))
    },
  },
  {
    says: 'BASE-5 the cost of a stream stands once, in one of its last frames, as in its record and the ledger',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const told = await stack.send(customer.secret, streamed(saying(endpoint, 'sandbox/text', 'a story')))
      const costs = costsIn(told.text)
      assert.equal(costs.length, 1, told.text.slice(-600))
      const at = framesOf(told.text).findLastIndex((frame) => JSON.stringify(frame).includes('cost_usd'))
      assert.ok(at >= framesOf(told.text).length - 2)
      assert.equal(Object((await recordOf(stack, customer, told.id)).cost).usd, costs[0])
      assert.equal(await stack.chargedOf(customer), usd(costs[0] ?? ''))
    },
  },
  {
    says: 'MODEL-3 a stream costs what the same answer costs in one piece',
    async check(stack, endpoint) {
      const { secret } = await stack.customer()
      const whole = await stack.send(secret, saying(endpoint, 'sandbox/text', 'a story'))
      const stream = await stack.send(secret, streamed(saying(endpoint, 'sandbox/text', 'a story')))
      assert.deepEqual(costsIn(stream.text), [whole.costUsd])
    },
  },
  {
    says: 'MODEL-3 a stream whose upstream reports no usage is counted and charged',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const told = await stack.send(customer.secret, streamed(saying(endpoint, 'sandbox/no-usage', 'Hello')))
      assert.ok(usd(costsIn(told.text)[0] ?? '0') > 0n, told.text)
      assert.equal(await stack.chargedOf(customer), usd(costsIn(told.text)[0] ?? ''))
    },
  },
  {
    says: 'MODEL-2 BASE-5 a stream that ends with the upstream’s error frame says what it cost, and our request id',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const told = await broken(stack, customer.secret, streamed(saying(endpoint, 'sandbox/error-mid-stream', 'Hello')))
      assert.equal(told.status, 200)
      const last = JSON.stringify(framesOf(told.text).at(-1))
      assert.match(last, /error/)
      assert.match(last, new RegExp(told.id))
      assert.equal(await stack.chargedOf(customer), usd(costsIn(last)[0] ?? ''))
    },
  },
  {
    says: 'MODEL-2 BASE-5 a stream that breaks off upstream ends with an error in the protocol, which says what it cost',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const told = await broken(stack, customer.secret, streamed(saying(endpoint, 'sandbox/cut-mid-stream', 'Hello')))
      const last = JSON.stringify(framesOf(told.text).at(-1))
      assert.match(last, /error/)
      assert.equal(await stack.chargedOf(customer), usd(costsIn(last)[0] ?? ''))
      assert.equal((await recordOf(stack, customer, told.id)).failed, true)
    },
  },
  {
    says: 'MODEL-3 a caller who leaves in the middle of a stream is charged what was delivered, once, and no more than its maximum',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const { path, body } = streamed(saying(endpoint, 'sandbox/slow', 'a story'))
      const leaving = new AbortController()
      const response = await fetch(stack.url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${customer.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: leaving.signal,
      })
      const id = response.headers.get('x-request-id') ?? ''
      const reader = response.body?.getReader()
      await reader?.read()
      leaving.abort()
      const { cost } = await recordOf(stack, customer, id)
      const charged = await stack.chargedOf(customer)
      assert.ok(charged > 0n && charged <= BigInt(NO_MORE_THAN) * 2_000n + 1_000_000n)
      assert.equal(usd(Object(cost).usd), charged)
    },
  },
  {
    says: 'ERR-2 a stream above its cap is refused with 402 before a byte, in one piece',
    async check(stack, endpoint) {
      const { secret } = await stack.customer()
      const request = streamed(saying(endpoint, 'sandbox/echo', 'Hello'))
      const told = await sendsNothing(stack, () =>
        stack.send(secret, { ...request, headers: { 'x-farebox-max-cost-usd': '0.000000001' } }),
      )
      requireError(told, endpoint.dialect, 402, 'cost_cap_exceeded')
    },
  },
  {
    says: 'QUOTE-1 a stream is quoted without being begun',
    async check(stack, endpoint) {
      const { secret } = await stack.customer()
      const request = streamed(saying(endpoint, 'sandbox/echo', 'Hello'))
      const told = await sendsNothing(stack, () =>
        stack.send(secret, { ...request, headers: { 'x-farebox-cost-mode': 'quote' } }),
      )
      assert.equal(told.status, 200, told.text)
      assert.ok(Object(told.json.max).usd !== undefined)
    },
  },
  {
    says: 'ERR-3 a stream with a repeated Idempotency-Key is 409 and names its first request',
    async check(stack, endpoint) {
      const { secret } = await stack.customer()
      const request = { ...streamed(saying(endpoint, 'sandbox/echo', 'Hello')), headers: { 'idempotency-key': 's1' } }
      const first = await stack.send(secret, request)
      const again = await sendsNothing(stack, () => stack.send(secret, request))
      requireError(again, endpoint.dialect, 409, 'idempotency_completed')
      assert.match(again.text, new RegExp(first.id))
    },
  },
  {
    says: 'ERR-3 while a first stream runs, its Idempotency-Key is 409 with Retry-After',
    async check(stack, endpoint) {
      const { secret } = await stack.customer()
      const request = {
        ...streamed(saying(endpoint, 'sandbox/slow', 'Hello')),
        headers: { 'idempotency-key': 'running' },
      }
      const { path, body } = request
      const first = await fetch(stack.url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...request.headers },
        body: JSON.stringify(body),
      })
      const again = await stack.send(secret, request)
      requireError(again, endpoint.dialect, 409, 'idempotency_running')
      assert.ok(Number(again.headers.get('retry-after')) >= 1)
      await first.text()
    },
  },
  {
    says: 'LIMIT-1 streams beyond the calls at once are 429 rate_limit_exceeded with Retry-After',
    async check(stack, endpoint) {
      const { secret } = await stack.customer({ key: { rates: { requestsPerMinute: 100, concurrency: 1 } } })
      const { path, body } = streamed(saying(endpoint, 'sandbox/slow', 'Hello'))
      const first = await fetch(stack.url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      const told = await stack.send(secret, { path, body })
      requireError(told, endpoint.dialect, 429, 'rate_limit_exceeded')
      assert.ok(Number(told.headers.get('retry-after')) >= 1)
      await first.text()
      assert.equal((await stack.send(secret, saying(endpoint, 'sandbox/echo', 'Hello'))).status, 200)
    },
  },
]

export const STREAM_PROBES: readonly Probe[] = RULES.flatMap(({ says, check }) =>
  MODELS.map((endpoint): Probe => [`${says}: ${endpoint.name}`, (stack) => check(stack, endpoint)]),
)

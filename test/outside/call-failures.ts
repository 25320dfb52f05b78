import assert from 'node:assert/strict'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { changed, having, probesOf, recordOf, refused, requestOf } from './call-rules.ts'
import { ENDPOINTS, SYNCHRONOUS } from './endpoints.ts'
import { requireError, sendsNothing } from './probe.ts'
import { sentTo } from './stack.ts'

/** What holds for a call of every paid endpoint that is repeated, or goes wrong. */
export const CALL_FAILURE_PROBES = probesOf([
  {
    says: 'ERR-3 a repeated Idempotency-Key is 409 and names the first call and its cost',
    of: SYNCHRONOUS,
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const keyed = having(endpoint, { 'idempotency-key': 'order-1' })
      const first = await stack.send(customer.secret, keyed)
      assert.equal(first.status, 200, first.text)
      const again = await sendsNothing(stack, () => stack.send(customer.secret, keyed))
      requireError(again, endpoint.dialect, 409, 'idempotency_completed')
      assert.match(again.text, new RegExp(first.id))
      assert.match(again.text, new RegExp(first.costUsd ?? 'never'))
      assert.match(again.text, /\b200\b/)
      assert.equal(again.headers.get('x-should-retry'), 'false')
      assert.equal(await stack.chargedOf(customer), usd(first.costUsd ?? ''))
    },
  },
  {
    says: 'ERR-3 the same Idempotency-Key with another request is 422, and nothing is executed',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const keyed = { 'idempotency-key': 'order-2' }
      assert.equal((await stack.send(customer.secret, having(endpoint, keyed))).status, 200)
      const other = changed(endpoint)
      const told = await sendsNothing(stack, () =>
        stack.send(customer.secret, { ...other, headers: { ...other.headers, ...keyed } }),
      )
      requireError(told, endpoint.dialect, 422)
    },
  },
  {
    says: 'ERR-3 an Idempotency-Key belongs to its credential',
    async check(stack, endpoint) {
      const keyed = having(endpoint, { 'idempotency-key': 'order-3' })
      const [one, other] = [await stack.customer(), await stack.customer()]
      assert.equal((await stack.send(one.secret, keyed)).status, 200)
      assert.equal((await stack.send(other.secret, keyed)).status, 200)
    },
  },
  {
    says: 'ERR-3 a first call that ended uncharged frees its Idempotency-Key',
    of: SYNCHRONOUS,
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const keyed = having(endpoint, { 'idempotency-key': 'order-4' })
      await stack.sandbox.fault(endpoint.upstream as 'rerank', ['status=429'])
      assert.equal((await stack.send(customer.secret, keyed)).status, 429)
      const again = await stack.send(customer.secret, keyed)
      assert.equal(again.status, 200, again.text)
    },
  },
  {
    says: 'ERR-1 an upstream’s 429 is ours with upstream_rate_limit and its Retry-After, and free',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      await stack.sandbox.fault(endpoint.upstream as 'rerank', ['status=429', 'retry-after=7'])
      const told = await stack.send(customer.secret, requestOf(endpoint))
      requireError(told, endpoint.dialect, 429, 'upstream_rate_limit')
      assert.ok(Number(told.headers.get('retry-after')) >= 7)
      assert.equal(await stack.chargedOf(customer), 0n)
    },
  },
  {
    says: 'DATA-7 an upstream’s 401 of our own account is 503 upstream_account, and free',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      await stack.sandbox.fault(endpoint.upstream as 'rerank', ['status=401'])
      const told = await stack.send(customer.secret, requestOf(endpoint))
      requireError(told, endpoint.dialect, 503, 'upstream_account')
      assert.equal(await stack.chargedOf(customer), 0n)
    },
  },
  {
    says: 'DATA-7 an upstream’s 402 of our own account is 503 upstream_account, and free',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      await stack.sandbox.fault(endpoint.upstream as 'rerank', ['status=402'])
      const told = await stack.send(customer.secret, requestOf(endpoint))
      requireError(told, endpoint.dialect, 503, 'upstream_account')
      assert.equal(await stack.chargedOf(customer), 0n)
    },
  },
  {
    says: 'ERR-4 ERR-6 a connection that the upstream closes is 502 or 503, is not to be retried blindly, is asked once and is free',
    of: SYNCHRONOUS,
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const before = await sentTo(stack.sandbox)
      await stack.sandbox.fault(endpoint.upstream as 'rerank', ['close-early'])
      const told = await stack.send(customer.secret, requestOf(endpoint))
      assert.ok(told.status === 502 || told.status === 503, told.text)
      requireError(told, endpoint.dialect, told.status)
      assert.equal(told.headers.get('x-should-retry'), 'false')
      assert.equal(await sentTo(stack.sandbox), before + 1)
      assert.equal(await stack.chargedOf(customer), 0n)
    },
  },
  {
    says: 'USAGE-9 a call that failed upstream counts as failed, at no charge',
    of: SYNCHRONOUS,
    async check(stack, endpoint) {
      const customer = await stack.customer()
      await stack.sandbox.fault(endpoint.upstream as 'rerank', ['close-early'])
      const { id } = await stack.send(customer.secret, requestOf(endpoint))
      const record = await recordOf(stack, customer, id)
      assert.equal(record.failed, true)
      const totals = async () =>
        Object((await stack.send(customer.secret, { path: '/v1/usage?start_time=1' })).json.totals)
      await until(async () => (await totals()).requests === 1, PATIENCE_MS, 'usage')
      assert.equal((await totals()).failed_requests, 1)
      assert.equal((await totals()).charged_micros_usd, 0)
    },
  },
  {
    says: 'ERR-7 another method is 405 with Allow, in the shape of its protocol',
    async check(stack, endpoint) {
      const { secret } = await stack.customer()
      const told = await stack.send(secret, { path: endpoint.path, method: 'DELETE' })
      requireError(told, endpoint.dialect, 405)
      assert.match(told.headers.get('allow') ?? '', endpoint.body === undefined ? /GET/ : /POST/)
    },
  },
  {
    says: 'ERR-7 a body that is no JSON is 400, and costs nothing',
    of: ENDPOINTS.filter(({ body }) => body !== undefined),
    async check(stack, endpoint) {
      const told = await refused(stack, await stack.customer(), { ...requestOf(endpoint), body: '{"model": ' })
      requireError(told, endpoint.dialect, 400)
    },
  },
  {
    says: 'ERR-7 a name that stands twice in a body is refused',
    of: ENDPOINTS.filter(({ body }) => body !== undefined),
    async check(stack, endpoint) {
      const twice = JSON.stringify(endpoint.body).replace(/^\{("\w+":)/, '{$1null,$1')
      const told = await refused(stack, await stack.customer(), { ...requestOf(endpoint), body: twice })
      requireError(told, endpoint.dialect, 400)
    },
  },
  {
    says: 'AUTH-6 a revoked key starts no call',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      await stack.pool.query('update api_keys set revoked_at = clock_timestamp() where id = $1', [customer.keyId])
      const told = await refused(stack, customer, requestOf(endpoint))
      requireError(told, endpoint.dialect, 401)
    },
  },
])

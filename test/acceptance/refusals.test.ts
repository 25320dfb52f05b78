import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { count, recordProof, seed } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { Random } from '../../sandbox/src/random.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { FAILURES_PER_SECOND } from '../../server/src/identity/failures-by-address.ts'
import { revokeKey } from '../../server/src/identity/keys.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { createNetworks } from '../../server/src/kernel/networks.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { reversePayment } from '../../server/src/ledger/reverse.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import {
  ACTOR,
  ask,
  CALLS,
  call,
  codeOf,
  errorOf,
  FREE,
  ids,
  LINKED,
  makeCustomer,
  makeKey,
  SCARCE,
  startInstallation,
  type Told,
} from './installation.ts'
import { traceOf } from './refusals-trace.ts'

/** Every way to be told no, in random order and many at once: afterwards nothing is there that was not there before. */
const REFUSALS = count({ full: 1_000, reduced: 150 })
const AT_ONCE = 8

const database = await freshDatabase()
// Behind a proxy, so that those who guess keys can have addresses of their own.
const env = { FAREBOX_HTTP_TRUSTED_PROXIES: '127.0.0.1' }
const installation = await startInstallation(database.url, { processes: 2, env })
const { url, pool, sandbox, gateways } = installation
after(installation.stop)

const OPERATIONS = catalogue.operations
  .map(({ id }) => id)
  .filter((id) => !FREE.has(id) && !SCARCE.has(id) && !LINKED.has(id))
/** Who has no credential is not told of the others. */
const SHOWN = OPERATIONS.filter((id) => catalogue.find(id)?.isHidden !== true)
const random = new Random(seed)
const anyOf = <T>(list: readonly T[]): T => list[random.between(0, list.length - 1)] as T
const anyUrl = () => anyOf(gateways).url
const anyAddress = () => ({ 'x-forwarded-for': `203.0.113.${random.between(1, 254)}` })

const rich = await makeCustomer(pool)
const poor = await makeCustomer(pool, { money: 500n })
const live = await makeCustomer(pool, { key: { mode: 'live' } })
const budgeted = await makeKey(pool, rich.workspaceId, { budget: { period: 'month', amount: nanos(500n) } })
const scoped = await makeKey(pool, rich.workspaceId, { scopes: ['nothing_that_is_sold'] })
const distant = await makeKey(pool, rich.workspaceId, { networks: createNetworks(['192.0.2.0/24']) })
const revoked = await makeKey(pool, rich.workspaceId)
await revokeKey({ pool, ids }, ACTOR, revoked.keyId)
const spent = await makeCustomer(pool, { requestsPerMinute: 1 })
const frugal = await makeCustomer(pool, { key: { rates: { tokensPerMinute: 5 } } })
const indebted = await makeIndebted()

/** Somebody who spent what a payment gave, and then lost the payment. */
async function makeIndebted() {
  const debtor = await makeCustomer(pool, { money: 0n })
  const paymentId = ids.next()
  const { accountId } = debtor
  await creditAccount(pool, { entryId: paymentId, accountId, kind: 'payment', amount: nanos(10_000_000n) })
  assert.equal((await call(url, debtor.secret, 'tag_detail')).status, 200)
  const reversal = { reversalId: ids.next(), paymentId, kind: 'payment_reversal', most: nanos(10_000_000n) } as const
  await reversePayment(pool, reversal)
  return debtor
}

type Refusal = { readonly expected: number; readonly code?: string; readonly send: () => Promise<Told> }

const MODE = { 'x-farebox-cost-mode': 'quote' }
const withKey = (operation: string) => ({ 'idempotency-key': `used-${operation}` })
const as = (secret: string, headers: Record<string, string> = {}) =>
  call(anyUrl(), secret, anyOf(OPERATIONS), anyOf(['', 'a', 'ü', 'x'.repeat(300)]), { headers })
const raw = (path: string, also: Parameters<typeof ask>[3] = {}) => ask(anyUrl(), rich.secret, path, also)
const rerank = (body: unknown, headers: Record<string, string> = {}) => raw('/v1/rerank', { body, headers })

const BROKEN: readonly (() => Promise<Told>)[] = [
  () =>
    rerank(anyOf<unknown>([{}, [], '"text"', '{"a":', { query: '', documents: ['a'] }, { query: 'a', documents: [] }])),
  () => rerank('{"query":"a","query":"b","documents":["c"]}'),
  () => rerank(`{"query":"a","documents":["b"],"deep":${'['.repeat(100)}${']'.repeat(100)}}`),
  () => raw('/apis/v1/social_a/tweet/quotes'),
  () => raw('/apis/v1/financial/financial-metrics/snapshot?ticker='),
  () => raw('/apis/v1/social_b/post/comments?include_replies=true'),
  () => raw('/apis/v1/traffic_analytics/website/traffic-engagement?start_date=a&start_date=b'),
  () => as(rich.secret, { 'x-farebox-max-cost-usd': anyOf(['-1', 'NaN', '1e9', ' ', '0x1']) }),
  () => as(rich.secret, { 'idempotency-key': anyOf(['', 'a b', 'x'.repeat(300), 'ü']) }),
  () => as(rich.secret, { 'x-farebox-cost-mode': anyOf(['', 'free', 'QUOTE']) }),
  () => as(rich.secret, { 'x-farebox-quote-id': anyOf(['', 'x', 'a.b', `${'a'.repeat(50)}.${'b'.repeat(43)}`]) }),
]

const REFUSED: Readonly<Record<string, () => Refusal>> = {
  'a quote': () => ({ expected: 200, send: () => as(anyOf([rich, poor]).secret, MODE) }),
  'a wrong request': () => ({ expected: 400, send: anyOf(BROKEN) }),
  'no credential': () => ({
    expected: 401,
    code: 'missing_credential',
    send: () => call(anyUrl(), '', anyOf(SHOWN)),
  }),
  'a credential that is none': () => ({
    expected: 401,
    code: 'invalid_credential',
    send: () => as(anyOf(['nonsense', revoked.secret, `${rich.secret}x`]), anyAddress()),
  }),
  'no balance': () => ({ expected: 402, code: 'insufficient_balance', send: () => as(poor.secret) }),
  'no budget': () => ({ expected: 402, code: 'budget_exceeded', send: () => as(budgeted.secret) }),
  debt: () => ({ expected: 402, code: 'account_suspended', send: () => as(indebted.secret) }),
  'a cap': () => ({
    expected: 402,
    code: 'cost_cap_exceeded',
    send: () => as(rich.secret, { 'x-farebox-max-cost-usd': anyOf(['0', '0.000000001', '0.00000005']) }),
  }),
  'no scope': () => ({ expected: 403, code: 'forbidden', send: () => as(scoped.secret) }),
  'another address': () => ({ expected: 403, code: 'address_not_allowed', send: () => as(distant.secret) }),
  'no route': () => ({
    expected: 404,
    send: () => raw(anyOf(['/v1/nothing', '/v1beta/models/a:generateContent', '/apis/v1/', '/', '/apis/v1/reseller'])),
  }),
  'no method': () => ({
    expected: 405,
    code: 'method_not_allowed',
    send: () => raw(anyOf(Object.values(CALLS))('').path, { method: anyOf(['DELETE', 'PUT', 'PATCH']) }),
  }),
  'a key that was used': () => {
    const operation = anyOf(OPERATIONS)
    const headers = withKey(operation)
    return {
      expected: 409,
      code: 'idempotency_completed',
      send: () => call(anyUrl(), rich.secret, operation, '', { headers }),
    }
  },
  'a key with another request': () => {
    const operation = anyOf(OPERATIONS)
    const headers = withKey(operation)
    return {
      expected: 422,
      code: 'idempotency_mismatch',
      send: () => call(anyUrl(), rich.secret, operation, 'other', { headers }),
    }
  },
  'a quote that was used': () => ({
    expected: 409,
    code: 'quote_used',
    send: () => call(anyUrl(), rich.secret, 'tag_detail', 'quoted', { headers: { 'x-farebox-quote-id': usedQuote } }),
  }),
  'a body that is too large': () => ({
    expected: 413,
    code: 'body_too_large',
    send: () => rerank({ query: 'a', documents: ['x'.repeat(1_100_000)] }),
  }),
  'a body that is no JSON': () => ({
    expected: 415,
    code: 'unsupported_media_type',
    send: () => rerank('a=b', { 'content-type': 'application/x-www-form-urlencoded' }),
  }),
  'requests that are spent': () => ({ expected: 429, code: 'rate_limit_exceeded', send: () => as(spent.secret) }),
  'more tokens than a minute has': () => ({
    expected: 429,
    code: 'quota_exceeded',
    send: () => call(anyUrl(), frugal.secret, 'rerank', 'with many words'),
  }),
  'no upstream': () => ({ expected: 503, code: 'not_configured', send: () => as(live.secret) }),
}

// What has to have happened before, so that it can be refused the next time.
for (const operation of OPERATIONS)
  assert.equal((await call(url, rich.secret, operation, '', { headers: withKey(operation) })).status, 200)
const usedQuote = String((await call(url, rich.secret, 'tag_detail', 'quoted', { headers: MODE })).json.quote_id)
const redeemed = { headers: { 'x-farebox-quote-id': usedQuote } }
assert.equal((await call(url, rich.secret, 'tag_detail', 'quoted', redeemed)).status, 200)

describe('a refusal', () => {
  it('leaves no charge, hold, entry, claim or usage behind, and asks no upstream', async (test) => {
    test.diagnostic(`seed ${seed}`)
    const before = await traceOf({ pool, sandbox })
    const names = Object.keys(REFUSED)
    const met: Record<string, number> = {}
    for (let at = 0; at < REFUSALS; at += AT_ONCE) {
      // The only one of a minute that is admitted, where it is the first.
      await call(url, spent.secret, 'rerank', '', { headers: MODE })
      await Promise.all(
        Array.from({ length: AT_ONCE }, async (_, more) => {
          const name = names[(at + more) % names.length] ?? ''
          const { expected, code, send } = REFUSED[name]?.() ?? { expected: 0, send: () => as('') }
          const told = await send()
          assert.equal(told.status, expected, `${name}: ${told.text}`)
          if (code !== undefined) assert.equal(codeOf(told), code, `${name}: ${told.text}`)
          assert.equal(told.costUsd, null, name)
          met[name] = (met[name] ?? 0) + 1
        }),
      )
    }
    const now = await traceOf({ pool, sandbox })
    assert.deepEqual(now, before)
    assert.deepEqual(await verifyLedger(pool), [])
    const refusals = Object.values(met).reduce((sum, one) => sum + one, 0)
    assert.ok(refusals >= REFUSALS)
    const left = { new_ledger_rows: 0, upstream_requests: 0, open_claims: 0 }
    test.diagnostic(JSON.stringify({ refusals, ...met }))
    recordProof('refusals', 'what a refusal leaves behind', { refusals, kinds: names.length, ...left, met })
  })
})

/** The parts of a refusal that every dialect has somewhere. */
type Refused = { readonly type: unknown; readonly code: unknown; readonly retryAfter: string | null }

const READERS: Readonly<Record<string, (told: Told) => Omit<Refused, 'retryAfter'>>> = {
  openai: (told) => ({ type: errorOf(told).type, code: errorOf(told).code }),
  data: (told) => ({ type: errorOf(told).type, code: errorOf(told).code }),
  anthropic: (told) => {
    assert.equal(told.json.type, 'error')
    return { type: errorOf(told).type, code: Object(errorOf(told).details).error_code }
  },
  gemini: (told) => {
    const { code, status, details } = errorOf(told)
    assert.deepEqual([code, status], [429, 'RESOURCE_EXHAUSTED'])
    const [info] = details as { reason: string }[]
    return { type: 'rate_limit_error', code: info?.reason }
  },
}

function assertLimited(dialect: string, told: Told, code: string): void {
  assert.equal(told.status, 429, told.text)
  assert.deepEqual(READERS[dialect]?.(told), { type: 'rate_limit_error', code }, dialect)
  assert.match(String(told.headers.get('retry-after')), /^[1-9]\d*$/)
}

const VERSION = { 'anthropic-version': '2023-06-01' }

describe('a limit', () => {
  it('ERR-1 of ours is 429 with rate_limit_exceeded and Retry-After, in the shapes of three protocols', async () => {
    for (const [dialect, operation, headers] of [
      ['openai', 'rerank', {}],
      ['openai', 'rerank', VERSION],
      ['anthropic', 'messages', {}],
      ['data', 'tag_detail', {}],
    ] as const) {
      const slow = await makeCustomer(pool, { requestsPerMinute: 1 })
      assert.equal((await call(url, slow.secret, operation, '', { headers })).status, 200)
      assertLimited(dialect, await call(url, slow.secret, operation, '', { headers }), 'rate_limit_exceeded')
    }
  })

  it('ERR-1 on those whose keys are wrong is told in the shapes of all four protocols', async () => {
    for (const [dialect, path, more] of [
      ['openai', '/v1/rerank', {}],
      ['openai', '/v1/chat/completions', {}],
      ['anthropic', '/v1/messages', VERSION],
      ['anthropic', '/v1/models', VERSION],
      ['openai', '/v1/rerank', VERSION],
      ['gemini', '/v1beta/models/a:generateContent', {}],
      ['data', '/apis/v1/reseller/social_c/web/fetch_tag_detail', {}],
    ] as const) {
      const headers = { 'x-forwarded-for': '198.51.100.7', ...more }
      // More than a network may look up in a second, however the seconds fall.
      const all = await Promise.all(
        Array.from({ length: 3 * FAILURES_PER_SECOND }, () => ask(url, revoked.secret, path, { headers })),
      )
      const told = all.find(({ status }) => status === 429)
      assert.ok(told !== undefined, `${path}: ${all.map(({ status }) => status)}`)
      assertLimited(dialect, told, 'rate_limit_exceeded')
    }
  })

  it('ERR-1 of an upstream is upstream_rate_limit, with its Retry-After where it says one', async () => {
    for (const [dialect, operation, headers] of [
      ['openai', 'rerank', {}],
      ['openai', 'rerank', VERSION],
      ['data', 'tag_detail', {}],
    ] as const)
      for (const [word, seconds] of [
        ['sandbox:status=429 sandbox:retry-after=7', '7'],
        ['sandbox:status=429 sandbox:retry-after=soon', '60'],
        ['sandbox:status=429 sandbox:retry-after=-1', '60'],
        ['sandbox:status=429 sandbox:retry-after=999999999', '3600'],
        ['sandbox:status=429', '60'],
      ] as const) {
        const told = await call(url, rich.secret, operation, word, { headers })
        assertLimited(dialect, told, 'upstream_rate_limit')
        assert.equal(told.headers.get('retry-after'), seconds, word)
        assert.equal(told.costUsd, '0.000000000')
      }
  })

  it('ERR-1 that waiting a minute does not restore is quota_exceeded, and money is never one of them', async () => {
    for (const [dialect, headers] of [
      ['openai', {}],
      ['openai', VERSION],
    ] as const) {
      const told = await call(url, frugal.secret, 'rerank', 'with many words', { headers })
      assertLimited(dialect, told, 'quota_exceeded')
      assert.equal(told.headers.get('x-should-retry'), 'false')
    }
    for (const { secret } of [poor, budgeted, indebted]) assert.equal((await as(secret)).status, 402)
  })
})

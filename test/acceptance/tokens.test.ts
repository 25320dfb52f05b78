import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { until } from '../../harness/until.ts'
import type { KeyRates } from '../../server/src/catalogue/key-rates.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { anotherAddress } from '../identity/customers.ts'
import { AUDIENCE, FACES_ENV, issueToken, MCP_AUDIENCE, makeGranted } from '../identity/granted.ts'
import {
  ask,
  CALLS,
  call,
  codeOf,
  costOf,
  errorOf,
  FREE,
  LINKED,
  makeCustomer,
  makeKey,
  startInstallation,
  TASKS,
  type Told,
} from './installation.ts'
import { decide, LINKS, open, startLink } from './links/linking.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url, {
  env: { ...FACES_ENV, FAREBOX_HTTP_TRUSTED_PROXIES: '127.0.0.1' },
})
const { url, pool, sandbox } = installation
after(installation.stop)

const BUDGET = { period: 'month', amount: nanos(5_000_000_000n) } as const
const SETTLED_MS = 180_000

/** Two customers alike: the one calls by a key, the other by an access token. */
async function twins(rates: Partial<KeyRates> = {}) {
  const byKey = await makeCustomer(pool, { key: { budget: BUDGET, rates } })
  const other = await makeCustomer(pool)
  const granted = await makeGranted(pool, {
    workspaceId: other.workspaceId,
    mode: 'test',
    budget: BUDGET,
    terms: { rates },
  })
  const byToken = { ...other, keyId: granted.id, secret: granted.token }
  return [byKey, byToken] as const
}

type Twin = Awaited<ReturnType<typeof twins>>[number]

/** The user decides on the platform's page, and comes back under our public URL, which is this process. */
async function link({ secret }: Twin): Promise<void> {
  const started = await startLink(url, secret)
  assert.equal(started.status, 200, started.text)
  const back = await decide(String(started.json.auth_url))
  assert.ok(back.startsWith(AUDIENCE), back)
  assert.equal((await open(back.replace(AUDIENCE, url), '*/*')).status, 200)
}

/** Differs by its nature: when it was, and which one it is. */
const OWN_HEADERS = /^(date|x-request-id|x-correlation-id|request-id|(x|anthropic)-ratelimit-.*reset.*|retry-after)$/

const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g

/** What the account has is told to keys, and to tokens that may read it. */
const OF_ACCOUNT = 'x-farebox-balance-usd'

function likenessOf({ status, headers, text, id }: Told) {
  return {
    status,
    headers: Object.fromEntries(
      [...headers]
        .filter(([name]) => name !== OF_ACCOUNT)
        .map(([name, value]) => [name, OWN_HEADERS.test(name) ? 'its own' : value.replaceAll(UUID, 'an id')]),
    ),
    // Ids and times of the sandbox, and those of the request.
    shape: text
      .replaceAll(id, 'its id')
      // Where the person who gave the grant can do something about a refusal.
      .replaceAll(/,?"(mandate|fix)_url":"[^"]*"/g, '')
      .replaceAll(UUID, 'an id')
      .replaceAll(/\d{4}-\d\d-\d\d[T ][\d:.]+Z?/g, 'a time')
      .replaceAll(/\d{9,}/g, 'a number'),
  }
}

/** What the ledger and the record have of a call, without its ids and times. */
async function booked(id: Id) {
  const { rows } = await pool.query(
    `select operation, amount, value, overrun, outcome, executed, failed, input_tokens, output_tokens, cache_read_tokens,
       cache_write_tokens, promo from charges where id = $1`,
    [id],
  )
  return rows
}

/** Without what the account had left: as the header, it is told to keys, and to tokens that may read it. */
async function recordOf({ secret }: Twin, { id }: Told): Promise<unknown> {
  const { detail, ...record } = (await ask(url, secret, `/v1/requests/${id}`)).json
  const { balance_after, ...how } = Object(detail)
  return withoutTimes({ ...record, detail: (detail ?? null) && how })
}

/** The members of a record that say how much and what, at whatever depth; times are each call's own. */
function withoutTimes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTimes)
  if (typeof value !== 'object' || value === null)
    return typeof value === 'string' ? value.replaceAll(UUID, 'an id') : value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !/(_at|_ms|^at|^time|timing|duration|latency)/.test(name))
      .map(([name, inner]) => [name, withoutTimes(inner)]),
  )
}

describe('BASE-2 the same call with a key and with an access token is the same call', () => {
  for (const operation of Object.keys(CALLS))
    it(`${operation}: same answer, same headers, same charge, same record`, async () => {
      const both = await twins()
      if (LINKED.has(operation)) for (const twin of both) await link(twin)
      const told: Told[] = []
      for (const { secret } of both) told.push(await call(url, secret, operation))
      const [key, token] = told
      assert.ok(key !== undefined && token !== undefined)
      assert.equal(key.status, 200, key.text)
      assert.deepEqual(likenessOf(token), likenessOf(key))
      const costs = await Promise.all(both.map(({ secret }, at) => costOf(url, secret, told[at] ?? key)))
      assert.equal(costs[1], costs[0])
      const charges = await Promise.all(told.map(({ id }) => booked(id)))
      assert.equal(charges[0]?.length, 1)
      assert.deepEqual(charges[1], charges[0])
      // Written behind the answer, for a task in two parts: waited for until both are there, and alike.
      const records = () => Promise.all(both.map((twin, at) => recordOf(twin, told[at] ?? key)))
      const areAlike = async () => {
        const [one, other] = await records()
        return (Object(one).detail ?? null) !== null && isDeepStrictEqual(one, other)
      }
      await until(areAlike, SETTLED_MS, 'two records that are alike').catch(async (late: unknown) => {
        const [one, other] = await records()
        assert.deepEqual(other, one)
        throw late
      })
    })

  it('the same quote, the same cap, the same idempotency key', async () => {
    const both = await twins()
    const steps: Readonly<Record<string, Readonly<Record<string, string>>>> = {
      quote: { 'x-farebox-cost-mode': 'quote' },
      capped: { 'x-farebox-max-cost-usd': '0' },
      first: { 'idempotency-key': 'one' },
      again: { 'idempotency-key': 'one' },
    }
    const answers: Readonly<Record<string, readonly unknown[]>>[] = []
    for (const { secret } of both) {
      const one: Record<string, readonly unknown[]> = {}
      for (const [step, headers] of Object.entries(steps)) {
        const told = await call(url, secret, 'rerank', '', { headers })
        one[step] = [told.status, codeOf(told), told.costUsd]
      }
      const other = await call(url, secret, 'rerank', 'another', { headers: { 'idempotency-key': 'one' } })
      answers.push({ ...one, other: [other.status, codeOf(other)] })
    }
    assert.deepEqual(answers[1], answers[0])
    assert.deepEqual(
      Object.values(answers[0] ?? {}).map(([status]) => status),
      [200, 402, 200, 409, 422],
    )
  })

  it('the same limits, told in the same headers and the same words', async () => {
    const both = await twins({ requestsPerMinute: 3 })
    const answers = []
    for (const { secret } of both) {
      const told: Told[] = []
      for (let sent = 0; sent < 4; sent += 1) told.push(await call(url, secret, 'tag_detail'))
      assert.deepEqual(
        told.map(({ status }) => status),
        [200, 200, 200, 429],
      )
      answers.push(told.map(likenessOf).map((one) => ({ ...one, shape: one.shape.replace(/in \d+ s/, 'soon') })))
    }
    assert.deepEqual(answers[1], answers[0])
  })

  it('the same budget, balance, usage, list of requests and models', async () => {
    const both = await twins()
    for (const { secret } of both) for (const id of ['tag_detail', 'rerank']) await call(url, secret, id)
    const balances = await Promise.all(both.map(({ secret }) => ask(url, secret, '/v1/balance')))
    assert.notEqual(balances[0]?.json.budget, null)
    assert.deepEqual(balances[1]?.json.budget, balances[0]?.json.budget)
    // The window ends at the same time for both.
    const usage = `/v1/usage?start_time=1&end_time=${Math.floor(Date.now() / 1_000) + 60}`
    for (const path of [usage, '/v1/requests', '/v1/models', LINKS]) {
      const [key, token] = await Promise.all(both.map(({ secret }) => ask(url, secret, path)))
      assert.equal(key?.status, 200, path)
      assert.deepEqual(withoutTimes(token?.json), withoutTimes(key?.json), path)
    }
    const small = { period: 'day', amount: nanos(1n) } as const
    const [one] = both
    const poor = [
      (await makeKey(pool, one.workspaceId, { budget: small })).secret,
      (await makeGranted(pool, { workspaceId: one.workspaceId, mode: 'test', budget: small })).token,
    ]
    const refused = await Promise.all(poor.map((secret) => call(url, secret, 'tag_detail')))
    assert.deepEqual([refused[0]?.status, refused.map(codeOf)[0]], [402, 'budget_exceeded'])
    const [byKey, byToken] = refused.map(likenessOf)
    const shape = byToken?.shape.replace('"budget_kind":"mandate"', '"budget_kind":"key"')
    assert.deepEqual({ ...byToken, shape, headers: null }, { ...byKey, headers: null })
  })

  it('a task is polled, and a link is used, by the grant that made it, with whichever of its tokens', async () => {
    const [, { workspaceId }] = await twins()
    const granted = await makeGranted(pool, { workspaceId, mode: 'test' })
    const renewed = await issueToken(pool, granted)
    const stranger = await makeGranted(pool, { workspaceId, mode: 'test' })
    const started = await call(url, granted.token, [...TASKS][0] ?? '')
    const taskId = String(Object(started.json.output).task_id)
    const stateFor = async (secret: string) =>
      Object((await ask(url, secret, `/apis/v1/services/aigc/tasks/${taskId}`)).json.output).task_status
    assert.match(await stateFor(renewed.token), /^(PENDING|RUNNING|SUCCEEDED)$/)
    assert.equal(await stateFor(stranger.token), 'UNKNOWN')
    await link({ workspaceId, accountId: '', keyId: granted.id, secret: granted.token })
    const [linked] = LINKED
    assert.equal((await call(url, renewed.token, linked ?? '')).status, 200)
    assert.equal((await call(url, stranger.token, linked ?? '')).status, 403)
    await until(async () => (await booked(started.id)).length === 1, SETTLED_MS, 'that the task has ended')
    assert.deepEqual(await verifyLedger(pool), [])
  })

  it('a token for another address, or with another scope, is refused on every endpoint in its dialect, and nothing is asked', async () => {
    const { workspaceId } = await makeCustomer(pool)
    const audiences = [AUDIENCE, MCP_AUDIENCE]
    const granted = await makeGranted(pool, { workspaceId, mode: 'test', audiences, scopes: ['calls', 'agent'] })
    const foreign = await issueToken(pool, granted, { audience: MCP_AUDIENCE, scopes: ['calls', 'agent'] })
    const agents = await issueToken(pool, granted, { scopes: ['agent'] })
    const before = (await sandbox.journal()).length
    // Failed look-ups count for their network.
    const elsewhere = () => ({ headers: { 'x-forwarded-for': anotherAddress() } })
    for (const operation of Object.keys(CALLS)) {
      const unknown = await call(url, `${granted.token.slice(0, -4)}0000`, operation, '', elsewhere())
      const told = await call(url, foreign.token, operation, '', elsewhere())
      assert.deepEqual([told.status, likenessOf(told)], [401, likenessOf(unknown)], operation)
      assert.equal((await call(url, agents.token, operation)).status, 403, operation)
    }
    for (const path of ['/v1/balance', '/v1/usage?start_time=1', '/v1/requests', '/v1/models']) {
      assert.equal((await ask(url, foreign.token, path, elsewhere())).status, 401, path)
      assert.equal((await ask(url, agents.token, path)).status, 403, path)
    }
    assert.equal((await sandbox.journal()).length, before)
  })
})

describe('a token that may not read the account', () => {
  it('is told what its own grant has, and nothing of what the account has', async () => {
    const { workspaceId } = await makeCustomer(pool, { money: 10_000_000_000n })
    const tokens = await Promise.all(
      [['calls'] as const, ['calls', 'account.read'] as const].map((scopes) =>
        makeGranted(pool, { workspaceId, mode: 'test', budget: BUDGET, scopes }),
      ),
    )
    const [without, reading] = tokens.map(({ token }) => token)
    assert.ok(without !== undefined && reading !== undefined)
    const own = {
      period: 'month',
      amount: { usd: '5.000000000', micros_usd: 5_000_000 },
      spent: { usd: '0.000000000', micros_usd: 0 },
      left: { usd: '5.000000000', micros_usd: 5_000_000 },
    }
    const { budgets, ...balance } = (await ask(url, without, '/v1/balance')).json
    assert.deepEqual(balance, { currency: 'USD', mode: 'test', budget: own })
    assert.ok(Array.isArray(budgets) && budgets.length === 1)
    const { resets_at: resetsAt, ...only } = budgets[0]
    assert.match(resetsAt, /^\d{4}-\d\d-01T00:00:00\.000Z$/)
    assert.deepEqual(only, { kind: 'mandate', subject: null, ...own })
    const told = (await ask(url, reading, '/v1/balance')).json
    assert.deepEqual(told.available, { usd: '10.000000000', micros_usd: 10_000_000 })
    assert.equal((await call(url, without, 'rerank')).headers.get(OF_ACCOUNT), null)
    assert.match((await call(url, reading, 'rerank')).headers.get(OF_ACCOUNT) ?? '', /^9\.99/)
  })

  it('is not told what is left where the account has too little', async () => {
    const { workspaceId } = await makeCustomer(pool, { money: 123n })
    for (const [scopes, left] of [
      [['calls'], undefined],
      [['calls', 'account.read'], '0.000000123'],
    ] as const) {
      const { token } = await makeGranted(pool, { workspaceId, mode: 'test', budget: BUDGET, scopes })
      const told = await call(url, token, 'financial_metrics_snapshot')
      const { code, needed_usd, left_usd } = errorOf(told)
      assert.deepEqual([code, needed_usd, left_usd], ['insufficient_balance', '0.010000000', left])
      assert.equal(told.text.includes('0.000000123'), left !== undefined)
    }
  })
})

describe('a grant without an amount', () => {
  it('is told 402 by every paid operation, with nothing held, written or asked; what is free works, quotes too', async () => {
    const { workspaceId, accountId } = await makeCustomer(pool)
    const granted = await makeGranted(pool, { workspaceId, mode: 'test', budget: null })
    await link({ workspaceId, accountId, keyId: granted.id, secret: granted.token })
    const before = (await sandbox.journal()).length
    for (const operation of Object.keys(CALLS)) {
      if (FREE.has(operation)) continue
      const told = await call(url, granted.token, operation)
      assert.equal(told.status, 402, operation)
      assert.match(told.text, /has no budget/)
      // As every refusal for money, it counts as a request.
      assert.match(told.headers.get('x-ratelimit-remaining-requests') ?? '', /^\d+$/, operation)
    }
    assert.equal((await sandbox.journal()).length, before)
    const { rows } = await pool.query(
      `select (select count(*) from holds where credential_id = $1)::integer as holds,
         (select count(*) from charges where credential_id = $1)::integer as charges,
         (select count(*) from claims where credential_id = $1)::integer as claims`,
      [granted.id],
    )
    assert.deepEqual(rows, [{ holds: 0, charges: 0, claims: 0 }])
    for (const operation of FREE) assert.equal((await call(url, granted.token, operation)).status, 200, operation)
    const quote = await call(url, granted.token, 'rerank', '', { headers: { 'x-farebox-cost-mode': 'quote' } })
    assert.equal(quote.status, 200)
    assert.equal((await ask(url, granted.token, '/v1/balance')).status, 200)
  })
})

describe('USAGE-5 an access token', () => {
  it('with account.read sees what the whole account used, and one without it what its grant did', async () => {
    const { workspaceId, secret } = await makeCustomer(pool)
    const scopes = ['calls', 'account.read'] as const
    const granted = await makeGranted(pool, { workspaceId, mode: 'test', scopes })
    const callsAlone = await issueToken(pool, granted, { scopes: ['calls'] })
    const readsAlone = await issueToken(pool, granted, { scopes: ['account.read'] })
    const stranger = await makeCustomer(pool)
    await call(url, stranger.secret, 'tag_detail')
    for (const one of [secret, secret, granted.token]) assert.equal((await call(url, one, 'tag_detail')).status, 200)
    const reportOf = async (one: string) => {
      const { status, json } = await ask(url, one, '/v1/usage?start_time=1')
      const { requests, charged_micros_usd: charged } = Object(json.totals)
      return [status, json.scope, requests, charged]
    }
    assert.deepEqual(await reportOf(granted.token), [200, 'account', 3, 4_350])
    assert.deepEqual(await reportOf(readsAlone.token), [200, 'account', 3, 4_350])
    assert.deepEqual(await reportOf(callsAlone.token), [200, 'key', 1, 1_450])
    assert.deepEqual(await reportOf(secret), [200, 'key', 2, 2_900])
    assert.equal((await call(url, readsAlone.token, 'tag_detail')).status, 403)
  })
})

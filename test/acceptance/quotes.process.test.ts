import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { startGateway } from '../../harness/gateways.ts'
import { testCaller } from '../../harness/test-caller.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { type DataOperation, isSoldByUnit } from '../../server/src/catalogue/operation.ts'
import { digestOf } from '../../server/src/gateway/request-digest.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { setPrice } from '../../server/src/pricing/prices.ts'
import { createQuotes } from '../../server/src/pricing/quotes.ts'
import {
  ask,
  CALLS,
  type Customer,
  call,
  chargesOf,
  codeOf,
  costOf,
  errorOf,
  FREE,
  makeCustomer,
  makeKey,
  startInstallation,
  type Told,
} from './installation.ts'
import { linkAccount } from './links/linking.ts'
import { traceOf } from './refusals-trace.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 3 })
const { url, pool, sandbox, gateways, masterKey } = installation
after(installation.stop)
const customer = await makeCustomer(pool)
await linkAccount(url, customer.secret)

const MODE = { 'x-farebox-cost-mode': 'quote' }
const using = (quoteId: unknown) => ({ 'x-farebox-quote-id': String(quoteId) })

type Money = { readonly usd: string; readonly micros_usd: number }
type Quote = {
  readonly operation: string
  readonly currency: string
  readonly expected: Money
  readonly max: Money
  readonly exact: boolean
  readonly assumption?: string
  readonly price_version: string
  readonly expires_at: string
  readonly quote_id: string
}

async function quoteOf(operation: string, word = '', { secret }: Pick<Customer, 'secret'> = customer): Promise<Quote> {
  const { status, json } = await call(url, secret, operation, word, { headers: MODE })
  assert.equal(status, 200, operation)
  return json as unknown as Quote
}

async function asked(marker: string): Promise<number> {
  return (await sandbox.journal()).filter(({ query }) => query.replaceAll('+', ' ').includes(marker)).length
}

function assertRefused(told: Told, status: number, code: string): void {
  assert.deepEqual([told.status, errorOf(told).code], [status, code], told.text)
}

describe('a request for a quote', () => {
  it('QUOTE-1 is answered for every operation, and nothing is executed, charged, held or sent', async () => {
    const before = await traceOf({ pool, sandbox })
    for (const { id, quotable } of catalogue.operations) {
      assert.equal(quotable, !FREE.has(id))
      if (!quotable) continue
      const { status, json, costUsd } = await call(url, customer.secret, id, '', { headers: MODE })
      assert.equal(status, 200, id)
      assert.equal(json.operation, id)
      assert.equal(costUsd, null)
    }
    assert.deepEqual(await traceOf({ pool, sandbox }), before)
  })

  it('QUOTE-1 in the words of another gateway is refused, as a cap and a quote are: none of it is ignored', async () => {
    const before = await traceOf({ pool, sandbox })
    const strange = { 'cost-mode': 'quote', 'max-cost-usd': '1', 'quote-id': 'a.b' }
    for (const [name, value] of Object.entries(strange))
      for (const operation of ['tag_detail', 'rerank', 'chat_completions', 'generate_content', 'video_synthesis']) {
        const headers = { [`X-Acme-Inc-${name}`]: value }
        const told = await call(url, customer.secret, operation, '', { headers })
        assert.deepEqual([told.status, codeOf(told)], [400, 'invalid_request'], told.text)
        assert.match(
          JSON.stringify(told.json),
          /Unknown header .{2}x-acme-inc-.*This gateway uses x-farebox-max-cost-usd/,
        )
      }
    assert.deepEqual(await traceOf({ pool, sandbox }), before)
  })

  it('QUOTE-1 counts as a request: 429 when those are spent, as for a call', async () => {
    const slow = await makeCustomer(pool, { requestsPerMinute: 3 })
    const left: (string | null)[] = []
    for (let at = 0; at < 3; at += 1) {
      const { headers } = await call(url, slow.secret, 'tag_detail', '', { headers: MODE })
      left.push(headers.get('x-ratelimit-remaining-requests'))
    }
    assert.deepEqual(left, ['2', '1', '0'])
    const told = await call(url, slow.secret, 'tag_detail', '', { headers: MODE })
    assertRefused(told, 429, 'rate_limit_exceeded')
    assertRefused(await call(url, slow.secret, 'tag_detail'), 429, 'rate_limit_exceeded')
  })

  it('QUOTE-2 carries operation, currency, expected and most, exactness, price version, the hash of the contract, expiry and an id', async () => {
    const before = Date.now()
    const { json } = await call(url, customer.secret, 'user_stories', '', { headers: MODE })
    const { quote_id, expires_at, ...rest } = json
    const version = await fetch(`${installation.gateways[0]?.siteUrl}/api/contracts/version`)
    const { contentHash } = Object(await version.json())
    assert.match(contentHash, /^[0-9a-f]{64}$/)
    assert.deepEqual(rest, {
      operation: 'user_stories',
      currency: 'USD',
      expected: { usd: '0.002900000', micros_usd: 2_900 },
      max: { usd: '0.002900000', micros_usd: 2_900 },
      exact: true,
      price_version: '0',
      contract_hash: contentHash,
      admission: { fits: true },
    })
    assert.match(String(quote_id), /^[\w-]+\.[\w-]{43}$/)
    const expiresMs = Date.parse(String(expires_at))
    const isWithin = expiresMs > before + 295_000 && expiresMs < Date.now() + 305_000
    assert.ok(isWithin, `${expiresMs - before} ms`)
  })

  it('QUOTE-2 says what a call holds at the most, which is what caps are compared with', async () => {
    for (const operation of ['rerank', 'website_traffic_engagement', 'post_comments']) {
      const word = 'sandbox:delay=2500'
      const { max } = await quoteOf(operation, word)
      const owner = await makeCustomer(pool)
      const running = call(url, owner.secret, operation, word, { headers: { 'x-farebox-max-cost-usd': max.usd } })
      const heldBy = async () =>
        (await pool.query<{ amount: bigint }>('select amount from holds where account_id = $1', [owner.accountId])).rows
      await until(async () => (await heldBy()).length === 1, PATIENCE_MS, 'a hold')
      assert.equal((await heldBy())[0]?.amount, usd(max.usd), operation)
      assert.equal((await running).status, 200)
      const below = `0.${String(usd(max.usd) - 1n).padStart(9, '0')}`
      const headers = { 'x-farebox-max-cost-usd': below }
      assertRefused(await call(url, customer.secret, operation, word, { headers }), 402, 'cost_cap_exceeded')
    }
  })

  it('is exact where it says so, and is never exceeded where it does not', async () => {
    const exact: string[] = []
    for (const { id, quotable } of catalogue.operations) {
      if (!quotable) continue
      const quote = await quoteOf(id)
      const told = await call(url, customer.secret, id)
      const costUsd = await costOf(url, customer.secret, told)
      assert.equal(told.status, 200, id)
      assert.ok(usd(costUsd) <= usd(quote.max.usd), id)
      assert.ok(usd(quote.expected.usd) <= usd(quote.max.usd), id)
      if (!quote.exact) continue
      exact.push(id)
      assert.deepEqual([quote.expected.usd, quote.max.usd], [costUsd, costUsd], id)
    }
    const priced = catalogue.operations.filter((one) => one.quotable && isSoldByUnit(one) && one.price.isExact)
    assert.deepEqual(
      exact,
      priced.map(({ id }) => id),
    )
    assert.ok(exact.length >= 8, String(exact.length))
  })

  it('QUOTE-2 expects what a call costs as a rule, and says what it takes for granted wherever it is not exact', async () => {
    const traffic = await quoteOf('website_traffic_engagement')
    assert.deepEqual([traffic.expected.usd, traffic.max.usd], ['0.006000000', '0.888000000'])
    assert.equal((await call(url, customer.secret, 'website_traffic_engagement')).costUsd, '0.006000000')
    assert.equal(
      traffic.assumption,
      'Assumed: one metric, as "metrics" is not given; three months, as "start_date" and "end_date" are not both given as months.',
    )
    const video = await quoteOf('video_synthesis')
    assert.equal(
      video.assumption,
      'Assumed: 5 seconds, as "parameters.duration" is not given; 720P, as "parameters.resolution" is not given.',
    )
    assert.ok(usd(video.expected.usd) * 3n <= usd(video.max.usd), `${video.expected.usd} of ${video.max.usd}`)
    const chat = await quoteOf('chat_completions')
    assert.match(
      chat.assumption ?? '',
      /^Assumed: about \d+ tokens of input, 500 of output \(4,096 at most\), nothing read from or written to a cache\.$/,
    )
    for (const { id, quotable } of catalogue.operations) {
      if (!quotable) continue
      const { exact, assumption } = await quoteOf(id)
      assert.equal(assumption === undefined, exact, id)
      if (!exact) assert.match(assumption ?? '', /^Assumed: .+\.$/, id)
    }
  })

  it('expects by what the request names, and never more than the most', async () => {
    const base = '/apis/v1/traffic_analytics/website/traffic-engagement?domain=example.com'
    for (const [query, expected, max] of [
      ['&metrics=visits,bounce_rate&start_date=2026-01&end_date=2026-04', '0.016000000', '0.016000000'],
      ['&metrics=visits,bounce_rate', '0.012000000', '0.148000000'],
      ['&start_date=2026-01&end_date=2026-01', '0.002000000', '0.024000000'],
      ['&metrics=all', '0.072000000', '0.888000000'],
    ] as const) {
      const { json } = await ask(url, customer.secret, base + query, { headers: MODE })
      assert.deepEqual([Object(json.expected).usd, Object(json.max).usd], [expected, max], query)
    }
  })

  it('rounds whole micros so that what is expected is not above, and the most not below', async () => {
    const { expected, max } = await quoteOf('rerank')
    assert.equal(expected.micros_usd, Math.floor(Number(usd(expected.usd)) / 1_000))
    assert.equal(max.micros_usd, Math.ceil(Number(usd(max.usd)) / 1_000))
    assert.notEqual(usd(max.usd) % 1_000n, 0n)
  })

  it('costs nothing, so that an empty account gets one', async () => {
    const poor = await makeCustomer(pool, { money: 0n })
    assert.equal((await quoteOf('user_stories', '', poor)).max.usd, '0.002900000')
    assertRefused(await call(url, poor.secret, 'user_stories'), 402, 'insufficient_balance')
  })

  it('is refused with 400 where the request is wrong, the mode unknown, or a quote is sent along', async () => {
    const wrong = await ask(url, customer.secret, '/apis/v1/social_a/tweet/quotes', { headers: MODE })
    assertRefused(wrong, 400, 'invalid_request')
    for (const mode of ['', 'execute', 'QUOTE', 'quote, quote', 'true']) {
      const told = await call(url, customer.secret, 'tag_detail', '', { headers: { 'x-farebox-cost-mode': mode } })
      assertRefused(told, 400, 'invalid_request')
    }
    const { quote_id } = await quoteOf('tag_detail')
    const both = { headers: { ...MODE, ...using(quote_id) } }
    assertRefused(await call(url, customer.secret, 'tag_detail', '', both), 400, 'invalid_request')
  })

  it('is refused with 402 where the most exceeds the cap that was sent', async () => {
    const headers = { ...MODE, 'x-farebox-max-cost-usd': '0.001' }
    assertRefused(await call(url, customer.secret, 'user_stories', '', { headers }), 402, 'cost_cap_exceeded')
  })

  it('is refused with 403 where the key may not call it', async () => {
    const { secret } = await makeKey(pool, customer.workspaceId, { scopes: ['rerank'] })
    assertRefused(await call(url, secret, 'user_stories', '', { headers: MODE }), 403, 'forbidden')
  })

  it('QUOTE-3 tells who has no credential by code and message inside error', async () => {
    const told = await call(url, '', 'tag_detail', '', { headers: MODE })
    assertRefused(told, 401, 'missing_credential')
    assert.equal(typeof errorOf(told).message, 'string')
  })

  it('QUOTE-3 tells a wrong key the same, with a request id', async () => {
    for (const secret of ['nonsense', `${customer.secret.slice(0, -1)}!`])
      for (const operation of ['tag_detail', 'rerank', 'website_traffic_engagement']) {
        const told = await call(url, secret, operation, '', { headers: MODE })
        assertRefused(told, 401, 'invalid_credential')
        assert.equal(typeof errorOf(told).message, 'string')
        assert.equal(told.json.request_id, told.id)
      }
  })

  it('QUOTE-3 has code, message and request id of a wrong key on every endpoint, in every protocol', async () => {
    // Failed authentications are counted by address.
    const headers = { ...MODE, 'x-forwarded-for': '198.51.100.9' }
    for (const operation of Object.keys(CALLS)) {
      const told = await call(url, 'nonsense', operation, '', { headers })
      assert.deepEqual([told.status, codeOf(told)], [401, 'invalid_credential'], operation)
      const { code, message } = errorOf(told)
      assert.ok(code !== undefined && typeof message === 'string', told.text)
      assert.equal(told.json.request_id, told.id, told.text)
    }
  })

  it('QUOTE-4 is refused with 400 where an endpoint gives none, and never becomes a call', async () => {
    const one = await startGateway({
      databaseUrl: database.url,
      env: { FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal() },
      changes: 'test/acceptance/hostile-server.ts',
    })
    const path = '/apis/v1/reseller/unquotable?tag_name=unquoted'
    try {
      const before = await traceOf({ pool, sandbox })
      for (const mode of ['quote', '', 'nonsense'])
        assert.equal(
          (await ask(one.url, customer.secret, path, { headers: { 'x-farebox-cost-mode': mode } })).status,
          400,
        )
      assertRefused(await ask(one.url, customer.secret, path, { headers: MODE }), 400, 'quote_not_supported')
      assert.deepEqual(await traceOf({ pool, sandbox }), before)
      assert.equal((await ask(one.url, customer.secret, path)).status, 200)
    } finally {
      await one.stop()
    }
    for (const free of ['/v1/usage?start_time=1', '/v1/balance', '/v1/requests', `/v1/requests/${customer.keyId}`])
      assert.equal((await ask(url, customer.secret, free, { headers: MODE })).status, 400, free)
  })

  it('QUOTE-5 on the web-traffic endpoint is told apart from execution, with a credential and without', async () => {
    const operation = 'website_traffic_engagement'
    const before = await traceOf({ pool, sandbox })
    const quoting = await call(url, '', operation, '', { headers: MODE })
    assertRefused(quoting, 401, 'missing_credential')
    assert.equal(typeof errorOf(quoting).message, 'string')
    assertRefused(await call(url, '', operation), 404, 'route_not_found')
    const quote = await quoteOf(operation)
    assert.equal(quote.exact, false)
    assert.deepEqual(await traceOf({ pool, sandbox }), before)
    const { status, json } = await call(url, customer.secret, operation)
    assert.equal(status, 200)
    assert.ok(Array.isArray(json.data))
  })
})

/** A quote as one of our processes would have made it at another time, or for another caller. */
function forged(operation: DataOperation, query: string, { atMs = Date.now(), lifeSeconds = 300 } = {}) {
  const { workspaceId, accountId, keyId: credentialId } = customer
  const caller = testCaller({ workspaceId, accountId, credentialId, mode: 'test' })
  const { unit, unitPrice } = operation.price
  const quotes = createQuotes({ time: { nowMs: () => atMs }, masterKeys: [masterKey], lifeSeconds })
  const terms = { version: '0', rates: [{ unit, price: unitPrice, published: unitPrice, providerCost: null }] }
  const digest = digestOf({ operation, query, rawBody: null })
  return String(
    quotes.issue({ caller, operation, digest }, { terms, most: [1n], expected: () => [1n], isExact: true }).quote_id,
  )
}

describe('a call with a quote', () => {
  it('QUOTE-6 is charged at most the quoted amount, once: a second use is 409', async () => {
    const { quote_id, max } = await quoteOf('tag_detail', 'once')
    const first = await call(url, customer.secret, 'tag_detail', 'once', { headers: using(quote_id) })
    assert.deepEqual([first.status, first.costUsd], [200, max.usd])
    const second = await call(url, customer.secret, 'tag_detail', 'once', { headers: using(quote_id) })
    assertRefused(second, 409, 'quote_used')
    assert.equal(second.headers.get('x-should-retry'), 'false')
    assert.equal(await asked('cats once'), 1)
  })

  it('QUOTE-6 is held to the quoted amount, whatever the upstream used', async () => {
    const word = 'sandbox:tokens=1000000'
    const { quote_id, max } = await quoteOf('rerank', word)
    const told = await call(url, customer.secret, 'rerank', word, { headers: using(quote_id) })
    assert.deepEqual([told.status, told.costUsd], [200, max.usd])
  })

  it('QUOTE-6 is made once, however many race with one quote at several processes', async () => {
    const { quote_id } = await quoteOf('tag_detail', 'raced')
    const racers = Array.from({ length: 50 }, (_, at) =>
      call(gateways[at % 3]?.url ?? '', customer.secret, 'tag_detail', 'raced', { headers: using(quote_id) }),
    )
    const all = await Promise.all(racers)
    assert.equal(all.filter(({ status }) => status === 200).length, 1)
    for (const told of all) if (told.status !== 200) assertRefused(told, 409, 'quote_used')
    assert.equal(await asked('cats raced'), 1)
    const charges = await chargesOf(pool, customer.accountId)
    assert.equal(all.filter(({ id }) => charges.has(id)).length, 1)
  })

  it('QUOTE-6 for another request, key, account, mode or operation is 400, before any spend', async () => {
    const { quote_id } = await quoteOf('tag_detail', 'mine')
    const headers = using(quote_id)
    const stranger = await makeCustomer(pool)
    const sibling = await makeKey(pool, customer.workspaceId)
    const live = await makeKey(pool, customer.workspaceId, { mode: 'live' })
    const before = await traceOf({ pool, sandbox })
    for (const secret of [stranger.secret, sibling.secret, live.secret])
      assertRefused(await call(url, secret, 'tag_detail', 'mine', { headers }), 400, 'quote_invalid')
    assertRefused(await call(url, customer.secret, 'tag_detail', 'other', { headers }), 400, 'quote_invalid')
    assertRefused(await call(url, customer.secret, 'user_stories', 'mine', { headers }), 400, 'quote_invalid')
    const { path } = CALLS.tag_detail?.('mine') ?? { path: '' }
    for (const query of [`${path}&more=1`, `${path}&`, path.replace('+', '%20')])
      assertRefused(await ask(url, customer.secret, query, { headers }), 400, 'quote_invalid')

    const body = '{"query":"a","documents":["b"]}'
    const { json } = await ask(url, customer.secret, '/v1/rerank', { body, headers: MODE })
    for (const changed of ['{"query":"a","documents":["c"]}', `${body} `, '{"documents":["b"],"query":"a"}']) {
      const told = await ask(url, customer.secret, '/v1/rerank', { body: changed, headers: using(json.quote_id) })
      assertRefused(told, 400, 'quote_invalid')
    }
    assert.deepEqual(await traceOf({ pool, sandbox }), before)
    assert.equal((await call(url, customer.secret, 'tag_detail', 'mine', { headers })).status, 200)
  })

  it('QUOTE-6 that has expired is 400, and one that has not is taken', async () => {
    const { path } = CALLS.tag_detail?.('timed') ?? { path: '' }
    const query = path.slice(path.indexOf('?') + 1)
    const tagDetail = catalogue.find('tag_detail')
    assert.ok(tagDetail !== undefined && isSoldByUnit(tagDetail))
    const before = await traceOf({ pool, sandbox })
    for (const late of [{ atMs: Date.now() - 301_000 }, { lifeSeconds: -1 }, { lifeSeconds: -10 }]) {
      const told = await ask(url, customer.secret, path, { headers: using(forged(tagDetail, query, late)) })
      assertRefused(told, 400, 'quote_invalid')
      assert.match(String(errorOf(told).message), /expired/)
    }
    assert.deepEqual(await traceOf({ pool, sandbox }), before)
    const fresh = using(forged(tagDetail, query, { atMs: Date.now() - 290_000 }))
    assert.equal((await ask(url, customer.secret, path, { headers: fresh })).status, 200)
  })

  it('QUOTE-6 that was tampered with is 400, wherever a bit of it is changed', async () => {
    const { quote_id } = await quoteOf('tag_detail', 'tampered')
    const [text = '', signature = ''] = quote_id.split('.')
    const payload = JSON.parse(Buffer.from(text, 'base64url').toString())
    const cheap = Buffer.from(JSON.stringify({ ...payload, x: '1', u: '1/1' })).toString('base64url')
    const before = await traceOf({ pool, sandbox })
    const others = [
      `${cheap}.${signature}`,
      `${text}.${signature.slice(0, -1)}`,
      `${text}.${'A'.repeat(43)}`,
      text,
      `.${signature}`,
      `${quote_id}.`,
      'null',
      '',
      'a'.repeat(4_000),
      ...[0, 40, text.length - 1, text.length + 1, quote_id.length - 3].map(
        (at) => quote_id.slice(0, at) + (quote_id[at] === 'A' ? 'B' : 'A') + quote_id.slice(at + 1),
      ),
    ]
    for (const other of others) {
      const told = await call(url, customer.secret, 'tag_detail', 'tampered', { headers: using(other) })
      assertRefused(told, 400, 'quote_invalid')
    }
    assert.deepEqual(await traceOf({ pool, sandbox }), before)
  })

  it('QUOTE-6 that ended uncharged leaves its quote to be used again', async () => {
    const { quote_id } = await quoteOf('tag_detail', 'again')
    const use = () => call(url, customer.secret, 'tag_detail', 'again', { headers: using(quote_id) })
    await sandbox.fault('reseller', ['code=400'])
    assert.deepEqual([(await use()).costUsd, (await use()).status, (await use()).status], ['0.000000000', 200, 409])
  })

  it('QUOTE-6 is charged by the quoted price when the price has changed meanwhile', async () => {
    const quote = await quoteOf('tag_detail', 'cheap')
    await setPrice(pool, { operation: 'tag_detail', unitPrice: '0.5' })
    try {
      await until(
        async () => (await quoteOf('tag_detail', 'dear')).max.usd === '0.500000000',
        PATIENCE_MS,
        'the new price',
      )
      const told = await call(url, customer.secret, 'tag_detail', 'cheap', { headers: using(quote.quote_id) })
      assert.deepEqual([told.status, told.costUsd], [200, '0.001450000'])
      assert.equal(told.headers.get('x-farebox-price-version'), '0')
      const later = await call(url, customer.secret, 'tag_detail', 'cheap')
      assert.equal(later.costUsd, '0.500000000')
    } finally {
      await setPrice(pool, { operation: 'tag_detail', unitPrice: '0.00145' })
    }
  })

  it('QUOTE-6 is charged by the quoted price of a unit, not only within the quoted maximum', async () => {
    // Of a call that uses far less than its maximum, a maximum alone would let the new price through.
    const quote = await quoteOf('rerank', 'by the unit')
    await setPrice(pool, { operation: 'rerank', unitPrice: '0.0000001' })
    try {
      const isNew = async () => usd((await quoteOf('rerank', 'by the unit')).max.usd) === 2n * usd(quote.max.usd)
      await until(isNew, PATIENCE_MS, 'the new price')
      const told = await call(url, customer.secret, 'rerank', 'by the unit', { headers: using(quote.quote_id) })
      const tokens = BigInt(Object(told.json.usage).total_tokens)
      assert.ok(tokens * 100n < usd(quote.max.usd), 'either price is within the maximum')
      assert.deepEqual([told.status, usd(told.costUsd ?? '')], [200, tokens * 50n])
      const later = await call(url, customer.secret, 'rerank', 'by the unit')
      assert.equal(usd(later.costUsd ?? ''), tokens * 100n)
    } finally {
      await setPrice(pool, { operation: 'rerank', unitPrice: '0.00000005' })
    }
  })

  it('QUOTE-6 is refused with 402 where the money is gone since, and the quote stays good', async () => {
    const poor = await makeCustomer(pool, { money: 100n })
    const { quote_id } = await quoteOf('financial_metrics_snapshot', '', poor)
    const use = () => call(url, poor.secret, 'financial_metrics_snapshot', '', { headers: using(quote_id) })
    for (let at = 0; at < 2; at += 1) assertRefused(await use(), 402, 'insufficient_balance')
  })

  it('leaves a ledger that adds up', async () => {
    assert.deepEqual(await verifyLedger(pool), [])
  })
})

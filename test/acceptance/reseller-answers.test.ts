import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { until } from '../../harness/until.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { saveUpstream } from '../../server/src/upstreams/configure.ts'
import { converse } from '../edge/raw-http.ts'
import { ask, type Customer, call, ids, isDataFault, makeCustomer, startInstallation } from './installation.ts'
import { attemptsIn } from './recorded-attempts.ts'
import { startScriptedUpstream, wire } from './wire.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox, masterKey } = installation
const scripted = await startScriptedUpstream()
after(() => Promise.all([installation.stop(), scripted.stop()]))
const { secret } = await makeCustomer(pool)

const TAG = '/apis/v1/reseller/social_c/web/fetch_tag_detail'
const asked = async (id: string) => (await sandbox.journal()).filter(({ request_id }) => request_id === id)

describe('what the upstream of a data endpoint says about our account', () => {
  for (const status of [401, 402, 403])
    it(`DATA-7 its ${status} is 503 upstream_account, and costs nothing, whatever its body says`, async () => {
      for (const word of [`sandbox:status=${status}`, `sandbox:status=${status} sandbox:code=200`]) {
        const told = await call(url, secret, 'tag_detail', word)
        assert.equal(told.status, 503)
        isDataFault(told, 'upstream_account', 'api_error')
        assert.equal(told.headers.get('x-should-retry'), 'false')
        assert.equal(told.headers.get('retry-after'), null)
        assert.equal(told.costUsd, '0.000000000')
      }
    })

  for (const [header, expected] of [
    ['sandbox:retry-after=7', '7'],
    ['sandbox:retry-after=0', '60'],
    ['sandbox:retry-after=-5', '60'],
    ['sandbox:retry-after=soon', '60'],
    ['sandbox:retry-after=1.5', '60'],
    ['sandbox:retry-after=99999999', '3600'],
    ['sandbox:dup-headers', '60'],
    ['', '60'],
  ] as const)
    it(`DATA-7 its 429 is 429 upstream_rate_limit with a Retry-After, ${header === '' ? 'also without one' : header}`, async () => {
      const told = await call(url, secret, 'tag_detail', `sandbox:status=429 ${header}`)
      assert.equal(told.status, 429)
      isDataFault(told, 'upstream_rate_limit', 'rate_limit_error')
      assert.equal(told.headers.get('retry-after'), expected)
      assert.equal(told.costUsd, '0.000000000')
    })

  for (const word of ['reset=before-headers', 'reset=in-body', 'close-early', 'truncate'])
    it(`ERR-4 its transport failure, ${word}, is 503 managed_upstream_transport, not to be repeated blindly`, async () => {
      const told = await call(url, secret, 'tag_detail', `sandbox:${word}`)
      assert.equal(told.status, 503)
      isDataFault(told, 'managed_upstream_transport', 'api_error')
      assert.equal(told.headers.get('x-should-retry'), 'false')
      assert.equal(told.costUsd, '0.000000000')
      assert.equal((await asked(told.id)).length, 1)
      assert.equal((await call(url, secret, 'tag_detail')).status, 200)
    })
})

/** Live keys ask an upstream of ours, which says what the sandbox can't. */
describe('an answer that is passed on', () => {
  let live: Customer
  const liveTag = (query = 'tag_name=x') => wire(url, live.secret, `${TAG}?${query}`)
  before(async () => {
    live = await makeCustomer(pool, { key: { mode: 'live' } })
    const seal = createSeal({ current: masterKey })
    const segments = { social_c: 'clips.v2' }
    await saveUpstream(
      { pool, ids, seal },
      {
        slot: 'reseller',
        mode: 'live',
        baseUrl: `${scripted.url}/base`,
        kind: 'managed',
        credential: new Secret('our-own'),
        segments,
      },
    )
  })

  for (const status of [
    200, 201, 202, 206, 301, 302, 304, 400, 404, 405, 409, 410, 418, 422, 451, 500, 501, 502, 503, 504, 529,
  ])
    it(`DATA-7 keeps the status ${status}, the body and the content type`, async () => {
      const text = `it is ${status}, "déjà vu"`
      // Of a success it is read whether it is one to be paid for.
      const body = status === 304 ? '' : status < 300 ? `{ "code": 1, "data": ${JSON.stringify(text)} }` : text
      scripted.answer({
        status,
        headers: { 'content-type': 'text/x-own; charset=utf-8; a=b', location: 'http://127.0.0.1:1/' },
        body,
      })
      const told = await liveTag()
      assert.equal(told.status, status)
      assert.equal(String(told.body), body)
      if (status !== 304) assert.equal(told.headers['content-type'], 'text/x-own; charset=utf-8; a=b')
      assert.equal(told.headers.location, undefined)
      assert.equal(told.headers['x-farebox-cost-usd'], '0.000000000')
    })

  const bytes = Buffer.from(Array.from({ length: 1_024 }, (_, at) => (at * 37) % 256))
  const NO_JSON = [
    ['text/html', '<!doctype html><h1>No</h1>'],
    ['application/octet-stream', bytes],
    ['image/png', bytes],
    ['application/json', bytes],
    ['application/json; charset=gb18030', Buffer.from([0xc3, 0xa8])],
    ['text/plain', ''],
  ] as const

  it('DATA-7 keeps what is no JSON: HTML, bytes, an odd encoding, an empty body', async () => {
    for (const [contentType, body] of NO_JSON) {
      scripted.answer({ status: 404, headers: { 'content-type': contentType }, body })
      const told = await liveTag()
      assert.equal(told.status, 404)
      assert.equal(told.headers['content-type'], contentType)
      assert.deepEqual(told.body, Buffer.from(body))
    }
  })

  it('DATA-7 keeps JSON as it is written, with its spaces', async () => {
    const body = '{ "code" :  200 ,\n"a":1e2, "a": 2, "big": 12345678901234567890 }\n'
    scripted.answer({ headers: { 'content-type': 'application/json' }, body })
    const told = await liveTag()
    assert.deepEqual([told.status, String(told.body)], [200, body])
  })

  for (const status of [200, 201, 202, 203, 206])
    it(`DATA-7 withholds a ${status} whose price can't be read: 502 upstream_unreadable, uncharged, the hold our loss`, async () => {
      for (const [contentType, body] of NO_JSON) {
        scripted.answer({ status, headers: { 'content-type': contentType }, body })
        const told = await liveTag()
        assert.equal(told.status, 502, String(told.body))
        const { error } = JSON.parse(String(told.body))
        assert.deepEqual([error.code, error.type], ['upstream_unreadable', 'api_error'])
        assert.match(error.message, /You were not charged/)
        // It was executed: nobody is to ask for it again without a thought.
        assert.equal(told.headers['x-should-retry'], 'false')
        assert.equal(told.headers['x-farebox-cost-usd'], '0.000000000')
        const { rows } = await pool.query(
          'select outcome, amount, overrun, executed, failed from charges where id = $1',
          [told.headers['x-request-id']],
        )
        const lost = { outcome: 'voided', amount: 0n, overrun: 1_450_000n, executed: true, failed: true }
        assert.deepEqual(rows, [lost])
      }
    })

  it('DATA-7 withholds a 204, and what is packed though nobody asked for that', async () => {
    scripted.answer({ status: 204, headers: {}, body: '' })
    assert.equal((await liveTag()).status, 502)
    const packed = gzipSync('{"code":200}')
    scripted.answer({ headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' }, body: packed })
    const told = await liveTag()
    assert.equal(told.status, 502)
    assert.ok(!told.body.includes(packed))
  })

  it('DATA-7 keeps of a withheld answer what became of it, for its owner to look up', async () => {
    scripted.answer({ headers: { 'content-type': 'text/html' }, body: '<h1>paid for</h1>' })
    const id = String((await liveTag()).headers['x-request-id'])
    const recorded = async () => (await ask(url, live.secret, `/v1/requests/${id}`)).json
    // Written behind the answer.
    await until(async () => (await recorded()).detail !== null, 3_000, 'the record')
    const found = await recorded()
    const { status, evidence } = Object(found.detail)
    assert.deepEqual([found.outcome, found.executed, found.failed, status, evidence], ['voided', true, true, 502, {}])
    assert.deepEqual(attemptsIn(found.detail), [{ slot: 'reseller', outcome: 'answered', status: 200, reason: null }])
    assert.doesNotMatch(JSON.stringify(found), /paid for/)
  })

  it('calls bytes what the upstream gives no name, which is what HTTP lets every reader assume', async () => {
    scripted.answer({ body: '{"code":1}' })
    const told = await liveTag()
    assert.equal(told.headers['content-type'], 'application/octet-stream')
    assert.equal(String(told.body), '{"code":1}')
  })

  it('DATA-7 passes headers on by a list: what is about the upstream, its cookies or our account stays with us', async () => {
    const kept = { 'content-type': 'application/json', 'content-language': 'de' }
    const held = {
      'set-cookie': ['session=1', 'b=2'],
      server: 'vendor/1.2',
      'x-powered-by': 'vendor',
      'www-authenticate': 'Basic realm="vendor"',
      'retry-after': '9',
      'x-ratelimit-remaining': '3',
      'x-ratelimit-limit-requests': '1',
      'x-farebox-cost-usd': '0.5',
      'x-farebox-balance-usd': '77',
      'x-request-id': 'vendor-1',
      'x-account-balance': '12.50',
      location: 'https://vendor.invalid/',
      'cache-control': 'public, max-age=86400',
      etag: '"1"',
      'access-control-allow-origin': '*',
      'strict-transport-security': 'max-age=1',
      'content-disposition': 'attachment',
      via: '1.1 vendor',
      link: '<https://vendor.invalid>',
    }
    scripted.answer({ headers: { ...kept, ...held }, body: '{"code":200}' })
    const { headers } = await liveTag()
    for (const [name, value] of Object.entries(kept)) assert.equal(headers[name], value)
    for (const [name, value] of Object.entries(held)) assert.notDeepEqual(headers[name], value, name)
    for (const name of [
      'set-cookie',
      'server',
      'x-powered-by',
      'retry-after',
      'x-account-balance',
      'etag',
      'location',
      'via',
    ])
      assert.equal(headers[name], undefined, name)
    assert.equal(headers['x-farebox-cost-usd'], '0.001450000')
    assert.match(String(headers['x-request-id']), /^[0-9a-f-]{36}$/)
  })

  it('DATA-8 passes cache_url and the cache messages on as they came; nobody reads the cache for it', async () => {
    const body = `{"code":200,"cache_url":"${scripted.url}/cache/1?sign=a\\u0026b=%2F","cache_message":"Kept for 24 hours \\u2713","cache_message_zh":"缓存","data":null}`
    scripted.answer({ headers: { 'content-type': 'application/json' }, body })
    const before = scripted.asked.length
    const told = await liveTag()
    assert.equal(String(told.body), body)
    const { json } = await call(url, secret, 'tag_detail')
    assert.match(String(json.cache_url), /^https:\/\/cache\.sandbox\.invalid\/api\/v1\/cache\/public\//)
    const failed = await call(url, secret, 'tag_detail', 'sandbox:code=400')
    assert.deepEqual([failed.json.cache_message, failed.json.cache_message_zh, failed.json.cache_url], [null, null, ''])
    assert.equal(scripted.asked.length, before + 1)
    // Reading it is between the caller and the cache: we have no route for it, so there is nothing to charge.
    const { pathname } = new URL(String(json.cache_url))
    assert.equal((await ask(url, secret, pathname)).status, 404)
    assert.equal((await ask(url, secret, `/apis/v1/reseller${pathname}`)).status, 404)
  })

  it("asks in the upstream's own words, with our credential, and with nothing of the caller's headers", async () => {
    scripted.answer({ headers: { 'content-type': 'application/json' }, body: '{"code":200}' })
    const headers = { cookie: 'a=b', 'x-forwarded-for': '10.1.1.1', 'x-own': 'canary', 'accept-language': 'fr' }
    const told = await ask(url, live.secret, `${TAG}?tag_name=x`, { headers })
    assert.equal(told.status, 200)
    const last = scripted.asked.at(-1)
    assert.equal(last?.target, '/base/api/v1/clips.v2/web/fetch_tag_detail?tag_name=x')
    assert.deepEqual(Object.keys(last?.headers ?? {}).toSorted(), [
      'accept',
      'accept-encoding',
      'authorization',
      'connection',
      'host',
      'x-request-id',
    ])
    assert.equal(last?.headers.authorization, 'Bearer our-own')
    assert.equal(last?.headers['x-request-id'], told.id)
  })
})

describe('refusals of the data endpoints', () => {
  it('ERR-7 400 for invalid parameters is an object with code, message and type, beside the request id', async () => {
    for (const path of [
      '/social_a/tweet/quotes',
      '/social_a/tweet/quotes?tweetId=',
      '/financial/financial-metrics/snapshot?x=1',
    ]) {
      const told = await ask(url, secret, `/apis/v1${path}`)
      assert.equal(told.status, 400)
      isDataFault(told, 'invalid_request', 'invalid_request_error')
    }
  })

  it('ERR-7 401, 402, 403, 404, 405, 429 likewise; 403 and 422 only where they are documented', async () => {
    const target = `${TAG}?tag_name=x`
    const refused = [
      [await ask(url, '', target), 401, 'missing_credential', 'authentication_error'],
      [await ask(url, 'nonsense', target), 401, 'invalid_credential', 'authentication_error'],
      [
        await ask(url, (await makeCustomer(pool, { money: 0n })).secret, target),
        402,
        'insufficient_balance',
        'billing_error',
      ],
      [
        await ask(url, secret, target, { headers: { 'x-farebox-max-cost-usd': '0.001' } }),
        402,
        'cost_cap_exceeded',
        'billing_error',
      ],
      [
        await ask(url, (await makeCustomer(pool, { key: { scopes: ['rerank'] } })).secret, target),
        403,
        'forbidden',
        'permission_error',
      ],
      [await ask(url, secret, '/apis/v1/reseller/nothing'), 404, 'route_not_found', 'not_found_error'],
      [await ask(url, secret, target, { body: {} }), 405, 'method_not_allowed', 'invalid_request_error'],
    ] as const
    for (const [told, status, code, type] of refused) {
      assert.equal(told.status, status, code)
      isDataFault(told, code, type)
      assert.equal(told.costUsd, null)
    }
    const slow = await makeCustomer(pool, { requestsPerMinute: 1 })
    assert.equal((await ask(url, slow.secret, target)).status, 200)
    const told = await ask(url, slow.secret, target)
    assert.equal(told.status, 429)
    isDataFault(told, 'rate_limit_exceeded', 'rate_limit_error')
    assert.ok(Number(told.headers.get('retry-after')) >= 1)
  })

  it('asks nothing and costs nothing for another method, a HEAD among them, or for a GET with a body', async () => {
    const before = (await sandbox.journal()).length
    const target = `${TAG}?tag_name=x`
    for (const method of ['HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS'])
      assert.equal((await ask(url, secret, target, { method })).status, 405, method)
    const { port } = new URL(url)
    const { responses } = await converse(
      Number(port),
      `GET ${target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secret}\r\ncontent-length: 2\r\n\r\n{}`,
    )
    assert.deepEqual(
      responses.map(({ status }) => status),
      [400],
    )
    assert.equal((await sandbox.journal()).length, before)
  })
})

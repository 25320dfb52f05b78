import assert from 'node:assert/strict'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { makeGranted } from '../identity/granted.ts'
import { ENDPOINTS } from './endpoints.ts'
import { type Probe, requireError, sendsNothing } from './probe.ts'

/** Credentials, and what is there beside paid calls. */
const RERANK = { path: '/v1/rerank', body: { query: 'a quick animal', documents: ['a snail', 'a fox'] } }
const TAG = { path: '/apis/v1/reseller/social_c/web/fetch_tag_detail?tag_name=cats' }
/** Paths that nobody serves, of each group. */
const NOWHERE = ['/v1/nothing', '/v1beta/nothing', '/apis/v1/nothing', '/nothing', '/v2/chat/completions']

const CREDENTIALS: readonly Probe[] = [
  ...NOWHERE.map(
    (path): Probe => [
      `AUTH-3 a path that nobody serves is 401 without a credential, and 404 with one: ${path}`,
      async (stack) => {
        assert.equal((await stack.send('', { path })).status, 401)
        const { secret } = await stack.customer()
        const told = await stack.send(secret, { path })
        assert.equal(told.status, 404, told.text)
        assert.match(told.id, /./)
      },
    ],
  ),
  ...NOWHERE.slice(0, 3).map(
    (path): Probe => [
      `LIMIT-1 a 404 of somebody who is known counts as a request: ${path}`,
      async (stack) => {
        const { secret } = await stack.customer({ requestsPerMinute: 1 })
        assert.equal((await stack.send(secret, { path })).status, 404)
        assert.equal((await stack.send(secret, { path })).status, 429)
      },
    ],
  ),
  [
    'AUTH-4 the web-traffic endpoint without a credential is 404',
    async (stack) => {
      const path = ENDPOINTS.find(({ operation }) => operation === 'website_traffic_engagement')?.path ?? ''
      assert.equal((await stack.send('', { path })).status, 404)
    },
  ],
  [
    'AUTH-4 the web-traffic endpoint with a credential works',
    async (stack) => {
      const path = ENDPOINTS.find(({ operation }) => operation === 'website_traffic_engagement')?.path ?? ''
      const { secret } = await stack.customer()
      assert.equal((await stack.send(secret, { path })).status, 200)
    },
  ],
  [
    'AUTH-5 a 401 names the metadata of RFC 9728, and the metadata names the resource',
    async (stack) => {
      const told = await stack.send('', { path: '/v1/models' })
      const [, metadata = ''] = /resource_metadata="([^"]+)"/.exec(told.headers.get('www-authenticate') ?? '') ?? []
      const { pathname } = new URL(metadata)
      const { status, json } = await stack.send('', { path: pathname })
      assert.equal(status, 200)
      assert.equal(json.resource, stack.url)
    },
  ],
  ...['Basic abc', 'Bearer', 'bearer ', 'Bearer a b', 'Token x'].map(
    (authorization): Probe => [
      `AUTH-1 a credential that is none is 401: ${JSON.stringify(authorization)}`,
      async (stack) => {
        const told = await stack.send('', { ...RERANK, headers: { authorization } })
        requireError(told, 'openai', 401)
      },
    ],
  ),
  [
    'AUTH-1 the scheme is Bearer in any case',
    async (stack) => {
      const { secret } = await stack.customer()
      assert.equal(
        (await stack.send('', { path: '/v1/models', headers: { authorization: `bearer ${secret}` } })).status,
        200,
      )
    },
  ],
  [
    'BASE-2 an access token for base_url is the same call as a key, at the same cost',
    async (stack) => {
      const customer = await stack.customer()
      const { workspaceId } = customer
      const { token } = await makeGranted(stack.pool, { workspaceId, mode: 'test', audiences: [stack.url] })
      const [byKey, byToken] = [await stack.send(customer.secret, TAG), await stack.send(token, TAG)]
      assert.deepEqual([byToken.status, byToken.costUsd], [200, byKey.costUsd])
    },
  ],
  [
    'BASE-2 an access token for another audience is 401',
    async (stack) => {
      const { workspaceId } = await stack.customer()
      const { token } = await makeGranted(stack.pool, { workspaceId, mode: 'test', audiences: [stack.mcpUrl] })
      requireError(await stack.send(token, TAG), 'data', 401)
    },
  ],
  [
    'AUTH-6 a rotated key’s old secret works until its overlap ends; an expired key is 401',
    async (stack) => {
      const { secret } = await stack.customer({ key: { expiresAt: new Date(Date.now() + 1_500) } })
      assert.equal((await stack.send(secret, { path: '/v1/models' })).status, 200)
      await until(
        async () => (await stack.send(secret, { path: '/v1/models' })).status === 401,
        PATIENCE_MS,
        'the end of a key',
      )
    },
  ],
  [
    'AUTH-2 a refusal never repeats the secret',
    async (stack) => {
      const { secret } = await stack.customer({ money: 0n })
      for (const { path, body, headers } of ENDPOINTS) {
        const told = await stack.send(secret, { path, body, headers: { ...headers } })
        assert.doesNotMatch(`${told.text} ${[...told.headers].join()}`, new RegExp(secret))
      }
    },
  ],
]

const READING = [
  ['/v1/models', 'MODEL-4'],
  ['/v1/usage?start_time=1', 'USAGE-1'],
  ['/v1/balance', 'BASE-4'],
  ['/v1/requests', 'BASE-5'],
] as const

const BESIDE: readonly Probe[] = [
  ...READING.map(
    ([path, id]): Probe => [
      `${id} HEAD answers as GET, without its body: ${path}`,
      async (stack) => {
        const { secret } = await stack.customer()
        const [got, headed] = [await stack.send(secret, { path }), await stack.send(secret, { path, method: 'HEAD' })]
        assert.equal(headed.status, got.status)
        assert.equal(headed.text, '')
        assert.equal(headed.headers.get('content-type'), got.headers.get('content-type'))
      },
    ],
  ),
  [
    'QUOTE-4 HEAD of a paid endpoint executes nothing: a request for headers alone never turns into a paid call',
    async (stack) => {
      const customer = await stack.customer()
      const told = await sendsNothing(stack, () => stack.send(customer.secret, { ...TAG, method: 'HEAD' }))
      assert.deepEqual([told.status, told.headers.get('allow')], [405, 'GET'])
    },
  ],
  [
    'BASE-5 the record of a call has its operation, outcome, cost and times',
    async (stack) => {
      const { secret } = await stack.customer()
      const { id } = await stack.send(secret, TAG)
      const { status, json } = await stack.send(secret, { path: `/v1/requests/${id}` })
      assert.equal(status, 200)
      assert.equal(json.operation, 'tag_detail')
      assert.equal(Object(json.cost).usd, '0.001450000')
    },
  ],
  [
    'AUTH-3 the record of another account’s call can’t be told from none',
    async (stack) => {
      const [one, other] = [await stack.customer(), await stack.customer()]
      const { id } = await stack.send(one.secret, TAG)
      const foreign = await stack.send(other.secret, { path: `/v1/requests/${id}` })
      const absent = await stack.send(other.secret, { path: `/v1/requests/${id.slice(0, -4)}0000` })
      assert.deepEqual([foreign.status, absent.status], [404, 404])
    },
  ],
  [
    'BASE-3 the list of calls has each executed call once',
    async (stack) => {
      const { secret } = await stack.customer()
      const made = [(await stack.send(secret, TAG)).id, (await stack.send(secret, RERANK)).id]
      const listed = async () =>
        [(await stack.send(secret, { path: '/v1/requests' })).json.data]
          .flat()
          .map((one) => Object(one).id)
          .toSorted()
      await until(async () => (await listed()).length >= 2, PATIENCE_MS, 'the list')
      assert.deepEqual(await listed(), made.toSorted())
    },
  ],
  [
    'BASE-4 the balance is told as integer micro-USD and exact USD, less what was charged',
    async (stack) => {
      const customer = await stack.customer({ money: usd('1') })
      await stack.send(customer.secret, TAG)
      const { json, text } = await stack.send(customer.secret, { path: '/v1/balance' })
      assert.match(text, /0\.998550000/)
      assert.match(text, /"micros_usd":998550\b/)
      assert.ok(json)
    },
  ],
  [
    'ERR-3 a call is found by its Idempotency-Key',
    async (stack) => {
      const { secret } = await stack.customer()
      const { id } = await stack.send(secret, { ...TAG, headers: { 'idempotency-key': 'find-me' } })
      const { json } = await stack.send(secret, { path: '/v1/requests?idempotency_key=find-me' })
      assert.equal(Object([json.data].flat()[0]).id, id)
    },
  ],
  [
    'ERR-3 an Idempotency-Key belongs to the operation',
    async (stack) => {
      const { secret } = await stack.customer()
      const headers = { 'idempotency-key': 'the-same' }
      assert.equal((await stack.send(secret, { ...TAG, headers })).status, 200)
      assert.equal((await stack.send(secret, { ...RERANK, headers })).status, 200)
    },
  ],
  [
    'ERR-3 ten calls at once with one Idempotency-Key are one charge',
    async (stack) => {
      const customer = await stack.customer()
      const headers = { 'idempotency-key': 'a-race' }
      const told = await Promise.all(Array.from({ length: 10 }, () => stack.send(customer.secret, { ...TAG, headers })))
      assert.equal(told.filter(({ status }) => status === 200).length, 1)
      for (const { status } of told) assert.ok(status === 200 || status === 409)
      assert.equal(await stack.chargedOf(customer), usd('0.00145'))
    },
  ],
  [
    'ERR-2 twenty calls at once never spend more than the balance covers',
    async (stack) => {
      const customer = await stack.customer({ money: usd('0.00145') * 3n })
      const told = await Promise.all(Array.from({ length: 20 }, () => stack.send(customer.secret, TAG)))
      assert.equal(told.filter(({ status }) => status === 200).length, 3)
      assert.equal(told.filter(({ status }) => status === 402).length, 17)
      assert.equal(await stack.chargedOf(customer), usd('0.00435'))
    },
  ],
  [
    'LIMIT-5 thirty calls at once never pass the requests of a minute',
    async (stack) => {
      const { secret } = await stack.customer({ requestsPerMinute: 7 })
      const told = await Promise.all(Array.from({ length: 30 }, () => stack.send(secret, TAG)))
      assert.equal(told.filter(({ status }) => status === 200).length, 7)
      assert.equal(told.filter(({ status }) => status === 429).length, 23)
    },
  ],
  [
    'AUTH-3 the address itself names the website',
    async (stack) => {
      assert.match((await stack.send('', { path: '/' })).text, new RegExp(stack.siteUrl))
    },
  ],
  [
    'ERR-5 a request may bring no request id of its own into ours',
    async (stack) => {
      const { secret } = await stack.customer()
      const told = await stack.send(secret, { path: '/v1/models', headers: { 'x-request-id': 'mine' } })
      assert.notEqual(told.id, 'mine')
    },
  ],
]

export const ACCOUNT_PROBES: readonly Probe[] = [...CREDENTIALS, ...BESIDE]

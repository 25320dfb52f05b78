import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { saveUpstream } from '../../server/src/upstreams/configure.ts'
import { okay, startUpstream } from '../upstreams/raw-upstream.ts'
import {
  ask,
  call,
  chargesOf,
  errorOf,
  ids,
  makeCustomer,
  makeKey,
  startInstallation,
  type Told,
} from './installation.ts'
import { traceOf } from './refusals-trace.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox, masterKey } = installation
after(installation.stop)
const customer = await makeCustomer(pool)

const COMMENTS = '/apis/v1/social_b/post/comments'
const TWEETS = '/apis/v1/social_a/tweet/quotes'
const SNAPSHOT = '/apis/v1/financial/financial-metrics/snapshot'
const TRAFFIC = '/apis/v1/traffic_analytics/website/traffic-engagement'
const FREE = '0.000000000'

const get = (path: string, query: Record<string, string> = {}, headers: Record<string, string> = {}) =>
  ask(url, customer.secret, Object.keys(query).length === 0 ? path : `${path}?${new URLSearchParams(query)}`, {
    headers,
  })

function assertRefused(told: Told, status: number, code: string): void {
  assert.deepEqual([told.status, errorOf(told).code], [status, code], told.text)
}

/** What each member is, by its name. */
function assertShape(value: unknown, shape: Readonly<Record<string, string>>): void {
  for (const [name, type] of Object.entries(shape)) {
    const member: unknown = Object(value)[name]
    const is = Array.isArray(member) ? 'array' : Number.isInteger(member) ? 'integer' : typeof member
    assert.ok(is === type || (type === 'number' && is === 'integer'), `${name} is ${is}, not ${type}`)
  }
}

const named = (type: string, names: string) => Object.fromEntries(names.split(' ').map((name) => [name, type]))

describe('GET {social_b}/post/comments', () => {
  const post = { url: 'https://social-b.invalid/p/1' }

  it('DATA-1 answers with the envelope, its comments and their users, for 0.00188 USD', async () => {
    const { status, json, costUsd } = await get(COMMENTS, post)
    assert.deepEqual([status, costUsd], [200, '0.001880000'])
    assertShape(json, { success: 'boolean', credits_remaining: 'integer', comments: 'array', cursor: 'string' })
    for (const comment of json.comments as Record<string, unknown>[]) {
      assertShape(comment, named('string', 'id text created_at'))
      assertShape(comment, named('integer', 'comment_like_count child_comment_count'))
      assertShape(comment.user, named('string', 'id pk profile_pic_url username fbid_v2'))
      assertShape(comment.user, { is_verified: 'boolean' })
      assert.ok(Object.hasOwn(Object(comment.user), 'is_unpublished'))
      assert.ok(!Object.hasOwn(comment, 'replies'))
    }
  })

  it('DATA-1 costs the same however many comments there are, on whichever page', async () => {
    const counts = new Set<number>()
    let cursor = ''
    for (let page = 0; page < 3; page += 1) {
      const { json, costUsd } = await get(COMMENTS, { url: 'many', ...(cursor !== '' && { cursor }) })
      assert.equal(costUsd, '0.001880000')
      counts.add((json.comments as unknown[]).length)
      cursor = String(json.cursor)
    }
    assert.ok(counts.size > 1, 'pages of different lengths')
  })

  it('DATA-1 costs nothing where success is not true, whatever the status, and is charged where it is', async () => {
    const denied = await get(COMMENTS, { url: 'sandbox:success=false' })
    assert.deepEqual([denied.status, denied.json.success, denied.costUsd], [200, false, FREE])
    for (const [directives, cost] of [
      ['sandbox:success=true sandbox:status=203', '0.001880000'],
      ['sandbox:status=500', FREE],
      ['sandbox:status=404', FREE],
      ['sandbox:garbage', FREE],
      ['sandbox:empty', FREE],
    ] as const)
      assert.equal((await get(COMMENTS, { url: directives })).costUsd, cost, directives)
  })

  it('DATA-1 does not need url: whether it may be missing is the upstream’s to say', async () => {
    const { status, json, costUsd } = await get(COMMENTS)
    assert.deepEqual([status, json.success, costUsd], [400, false, FREE])
    assert.equal((await sandbox.journal()).at(-1)?.query, '')
  })

  it('DATA-1 reads the count from the body alone: a success without comments costs as much, a text is no success', async () => {
    const live = await makeCustomer(pool, { key: { mode: 'live' } })
    let body = ''
    const upstream = await startUpstream(({ socket }) => socket.write(okay(body, 'content-type: application/json')))
    const seal = createSeal({ current: masterKey })
    const address = { slot: 'comments', mode: 'live', kind: 'native', baseUrl: upstream.url } as const
    await saveUpstream({ pool, ids, seal }, address)
    for (const [answer, cost] of [
      ['{"success":true,"comments":[]}', '0.001880000'],
      [`{"success":true,"comments":[${Array.from({ length: 5_000 }, () => '{}')}]}`, '0.001880000'],
      ['{"success":"true","comments":[{}]}', FREE],
      ['{"success":1}', FREE],
      ['[{"success":true}]', FREE],
      ['null', FREE],
    ] as const) {
      body = answer
      const told = await call(url, live.secret, 'post_comments')
      assert.deepEqual([told.status, told.text, told.costUsd], [200, answer, cost])
    }
  })

  it('DATA-1 DATA-3 refuses include_replies by name with 400, whatever its value and spelling, and asks nobody', async () => {
    const before = await traceOf({ pool, sandbox })
    for (const query of [
      ...['include_replies=true', 'include_replies=false', 'include_replies', 'include%5Freplies=1'],
      ...['include.replies=true', 'include-replies=true', 'include+replies=true', 'Include_Replies=true'],
      ...['include_replies[]=true', 'include_replies%5B0%5D=true', 'a=1;include_replies=true', 'a=1%3binclude.replies'],
    ]) {
      const told = await ask(url, customer.secret, `${COMMENTS}?url=a&${query}`)
      assertRefused(told, 400, 'invalid_request')
      assert.match(String(errorOf(told).message), /include_replies/)
    }
    assert.deepEqual(await traceOf({ pool, sandbox }), before)
  })
})

const RATIOS =
  'market_cap enterprise_value price_to_earnings_ratio price_to_book_ratio price_to_sales_ratio ' +
  'enterprise_value_to_ebitda_ratio enterprise_value_to_revenue_ratio free_cash_flow_yield peg_ratio gross_margin ' +
  'operating_margin net_margin return_on_equity return_on_assets return_on_invested_capital asset_turnover ' +
  'inventory_turnover receivables_turnover days_sales_outstanding operating_cycle working_capital_turnover ' +
  'current_ratio quick_ratio cash_ratio operating_cash_flow_ratio debt_to_equity debt_to_assets interest_coverage ' +
  'revenue_growth earnings_growth book_value_growth earnings_per_share_growth free_cash_flow_growth ' +
  'operating_income_growth ebitda_growth payout_ratio earnings_per_share book_value_per_share free_cash_flow_per_share'

describe('GET financial/financial-metrics/snapshot', () => {
  it('DATA-4 answers by ticker, by cik and by both, with every metric', async () => {
    for (const query of [{ ticker: 'ACME' }, { cik: '0000320193' }, { ticker: 'ACME', cik: '0000320193' }]) {
      const { status, json, costUsd } = await get(SNAPSHOT, query)
      assert.deepEqual([status, costUsd], [200, '0.010000000'])
      assertShape(json.snapshot, { ticker: 'string', ...named('number', RATIOS) })
    }
  })

  it('DATA-4 with neither is 400, costs nothing and asks nobody', async () => {
    const before = await traceOf({ pool, sandbox })
    for (const query of ['', '?ticker=', '?cik=', '?ticker=&cik=', '?symbol=ACME', '?ticker=A&ticker=B'])
      assertRefused(await ask(url, customer.secret, SNAPSHOT + query), 400, 'invalid_request')
    assert.deepEqual(await traceOf({ pool, sandbox }), before)
  })

  it('costs nothing where there is no snapshot in the answer', async () => {
    for (const directive of ['status=404', 'garbage', 'empty', 'html', 'status=503'])
      assert.equal((await get(SNAPSHOT, { ticker: `sandbox:${directive}` })).costUsd, FREE, directive)
  })
})

describe('GET {social_a}/tweet/quotes', () => {
  it('DATA-5 needs tweetId: 400 without, and nobody is asked', async () => {
    const before = await traceOf({ pool, sandbox })
    for (const query of ['', '?tweetId=', '?tweetid=1', '?cursor=abc'])
      assertRefused(await ask(url, customer.secret, TWEETS + query), 400, 'invalid_request')
    assert.deepEqual(await traceOf({ pool, sandbox }), before)
  })

  it('DATA-5 answers with the envelope, its tweets, their authors and entities', async () => {
    const { status, json, costUsd } = await get(TWEETS, { tweetId: '1234567890' })
    assert.deepEqual([status, costUsd], [200, '0.003000000'])
    assertShape(json, { tweets: 'array', has_next_page: 'boolean', ...named('string', 'next_cursor status message') })
    for (const tweet of json.tweets as Record<string, unknown>[]) {
      assertShape(tweet, named('string', 'type id url text source createdAt lang inReplyToId conversationId'))
      assertShape(tweet, named('string', 'inReplyToUserId inReplyToUsername'))
      assertShape(tweet, named('integer', 'retweetCount replyCount likeCount quoteCount viewCount bookmarkCount'))
      assertShape(tweet, { ...named('boolean', 'isReply isLimitedReply'), displayTextRange: 'array' })
      assertShape(tweet.author, named('string', 'type userName url id name verifiedType profilePicture coverPicture'))
      assertShape(tweet.author, named('string', 'description location createdAt automatedBy message unavailableReason'))
      assertShape(tweet.author, named('boolean', 'isBlueVerified canDm hasCustomTimelines isTranslator isAutomated'))
      assertShape(tweet.author, named('boolean', 'possiblySensitive unavailable'))
      assertShape(tweet.author, named('integer', 'followers following favouritesCount mediaCount statusesCount'))
      assertShape(tweet.author, named('array', 'withheldInCountries pinnedTweetIds'))
      assertShape(tweet.entities, named('array', 'hashtags urls user_mentions'))
    }
  })

  it('DATA-5 passes the cursor through as it came, from page to page', async () => {
    const first = await get(TWEETS, { tweetId: '42' })
    assert.equal(first.json.has_next_page, true)
    const query = `tweetId=42&cursor=${String(first.json.next_cursor)}`
    const second = await ask(url, customer.secret, `${TWEETS}?${query}`)
    assert.equal(second.status, 200)
    assert.notDeepEqual(second.json.tweets, first.json.tweets)
    assert.equal((await sandbox.journal()).at(-1)?.query, query)
    for (const cursor of ['%2B%2f%3D==', 'a+b', 'a%20b;c', '']) {
      const odd = `cursor=${cursor}&tweetId=42&other=%F0%9F%98%80`
      await ask(url, customer.secret, `${TWEETS}?${odd}`)
      assert.equal((await sandbox.journal()).at(-1)?.query, odd)
    }
  })

  it('costs nothing where the answer is no success', async () => {
    for (const directive of ['success=false', 'status=400', 'status=500', 'garbage'])
      assert.equal((await get(TWEETS, { tweetId: `sandbox:${directive}` })).costUsd, FREE, directive)
  })
})

describe('GET {traffic_analytics}/website/traffic-engagement', () => {
  it('AUTH-4 without a credential is 404, with a wrong one 401, and with a right one it works', async () => {
    assertRefused(await ask(url, '', `${TRAFFIC}?domain=example.com`), 404, 'route_not_found')
    assertRefused(await ask(url, 'nonsense', `${TRAFFIC}?domain=example.com`), 401, 'invalid_credential')
    const { status, json } = await get(TRAFFIC, { domain: 'example.com' })
    assert.equal(status, 200)
    assertShape(json, { meta: 'object', data: 'array' })
  })

  it('AUTH-4 without a credential can not be told from a route that does not exist anywhere', async () => {
    const one = await ask(url, '', `${TRAFFIC}?domain=example.com`)
    // One that is near nothing: who is known would be told what it may have meant.
    const none = await get('/apis/v1/qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq')
    assert.deepEqual(Object.keys(one.json), Object.keys(none.json))
    assert.equal(errorOf(one).message, errorOf(none).message)
  })

  it('DATA-9 passes on the 409 of its upstream with its body, told apart from a conflict of ours by its code', async () => {
    const headers = { 'idempotency-key': 'compatible' }
    const query = { domain: 'example.com' }
    await sandbox.fault('traffic', ['status=409'], 2)
    const first = await get(TRAFFIC, query, headers)
    assert.deepEqual([first.status, first.costUsd], [409, FREE])
    assert.deepEqual(first.json, { meta: { status: 'Error', error_code: 409, error_message: 'Conflict' } })
    // It was not charged, so that its key is free: this is the upstream's answer again.
    assert.deepEqual((await get(TRAFFIC, query, headers)).json, first.json)
    assert.equal((await get(TRAFFIC, query, headers)).status, 200)
    const ours = await get(TRAFFIC, query, headers)
    assertRefused(ours, 409, 'idempotency_completed')
    assert.equal(errorOf(ours).type, 'conflict_error')
  })

  /** So many credits as decimal USD. */
  const credits = (count: number) => `0.${String(count * 2_000_000).padStart(9, '0')}`

  it('costs 0.002 USD for each metric of each month that was delivered, exactly', async () => {
    for (const [query, count] of [
      [{}, 3],
      [{ metrics: 'visits' }, 3],
      [{ metrics: 'visits,page_views', start_date: '2025-01', end_date: '2025-06' }, 12],
      [{ metrics: 'visits,page_views,bounce_rate', start_date: '2024-12-01', end_date: '2025-02-28' }, 9],
      [{ metrics: 'visits', start_date: '2026-03', end_date: '2026-03' }, 1],
    ] as const) {
      const { status, json, costUsd } = await get(TRAFFIC, { domain: 'example.com', ...query })
      assert.equal(status, 200)
      const delivered = (json.data as object[]).reduce((sum, row) => sum + Object.keys(row).length - 1, 0)
      assert.deepEqual([delivered, costUsd], [count, credits(count)], JSON.stringify(query))
    }
  })

  it('is quoted by what is asked for: all metrics of all months where that is not said', async () => {
    const quoted = async (query: Record<string, string>) =>
      Object((await get(TRAFFIC, { domain: 'example.com', ...query }, { 'x-farebox-cost-mode': 'quote' })).json.max).usd
    assert.equal(await quoted({}), credits(12 * 37))
    assert.equal(
      await quoted({ metrics: 'visits,page_views', start_date: '2025-01', end_date: '2025-06' }),
      credits(12),
    )
    assert.equal(await quoted({ metrics: 'visits', start_date: '2025-06', end_date: '2025-01' }), credits(37))
    assert.equal(await quoted({ metrics: 'visits', start_date: 'soon', end_date: '2025-01' }), credits(37))
    assert.equal(await quoted({ metrics: ' , ', start_date: '2025-01', end_date: '2025-01' }), credits(12))
  })

  it('is refused where it asks for more than can be priced', async () => {
    const query = { domain: 'example.com', metrics: 'visits', start_date: '2021-04', end_date: '2026-03' }
    assert.equal((await get(TRAFFIC, query)).status, 400)
    for (const name of ['granularity', 'format', 'Granularity', 'granularity[]'])
      assert.equal((await get(TRAFFIC, { domain: 'example.com', [name]: 'daily' })).status, 400, name)
  })

  it('DATA-3 refuses other spellings of what its price is computed from with 400, and says how to write it', async () => {
    const before = await traceOf({ pool, sandbox })
    const many = Array.from({ length: 12 }, (_, at) => `m${at}`).join(',')
    const month = 'start_date=2026-01&end_date=2026-03'
    for (const [query, name] of [
      [`metrics=visits&metrics[]=${many}&${month}`, 'metrics'],
      [`metrics=visits&metrics=${many}&${month}`, 'metrics'],
      [`metrics=visits&Metrics=${many}&${month}`, 'metrics'],
      [`metrics=visits&${month};metrics=${many}`, 'metrics'],
      [`metrics[0]=visits&${month}`, 'metrics'],
      [`metrics=visits&start.date=2020-01&${month}`, 'start_date'],
      [`metrics=visits&start_date=2026-01&End-Date=2026-03`, 'end_date'],
    ] as const) {
      const told = await ask(url, customer.secret, `${TRAFFIC}?domain=example.com&${query}`)
      assertRefused(told, 400, 'invalid_request')
      assert.match(String(errorOf(told).message), new RegExp(`"${name}".* Give it once, written as in ${name}=`))
    }
    assert.deepEqual(await traceOf({ pool, sandbox }), before)
  })

  it('DATA-6 DATA-3 passes on every other name byte for byte, in brackets and repeated too', async () => {
    const query = 'domain=example.com&filter[]=a&filter[]=b&Country=us&country=us&x.y=1&x_y=2;z=3&metrics=visits'
    const told = await ask(url, customer.secret, `${TRAFFIC}?${query}`)
    assert.equal(told.status, 200, told.text)
    assert.equal((await sandbox.journal()).at(-1)?.query, query)
  })

  it('DATA-7 withholds JSON that does not say what was delivered, as the price is computed from that', async () => {
    const live = await makeCustomer(pool, { key: { mode: 'live' } })
    let body = ''
    const upstream = await startUpstream(({ socket }) => socket.write(okay(body, 'content-type: application/json')))
    const seal = createSeal({ current: masterKey })
    const address = { slot: 'traffic', mode: 'live', kind: 'native', baseUrl: upstream.url } as const
    await saveUpstream({ pool, ids, seal }, address)
    for (const answer of [
      '{}',
      'null',
      '{"data":{"visits":9}}',
      '{"data":["2026-01",1]}',
      '{"data":[[1]]}',
      'visits\n9',
    ]) {
      body = answer
      const told = await call(url, live.secret, 'website_traffic_engagement')
      assertRefused(told, 502, 'upstream_unreadable')
      assert.deepEqual([told.costUsd, told.headers.get('x-should-retry')], [FREE, 'false'])
      assert.equal((await chargesOf(pool, live.accountId)).get(told.id), 0n)
    }
    body = '{"data":[]}'
    const told = await call(url, live.secret, 'website_traffic_engagement')
    assert.deepEqual([told.status, told.text, told.costUsd], [200, body, FREE])
  })

  it('costs nothing where the answer is an error or delivers nothing', async () => {
    for (const directive of ['status=404', 'status=500', 'garbage', 'empty', 'html'])
      assert.equal((await get(TRAFFIC, { domain: `sandbox:${directive}` })).costUsd, FREE, directive)
    assert.equal((await get(TRAFFIC, { domain: 'a', metrics: 'nonsense' })).costUsd, FREE)
  })
})

/** Every status that such an endpoint answers with, and how it comes about. */
const ENDPOINTS = [
  { operation: 'post_comments', upstream: 'comments' },
  { operation: 'tweet_quotes', upstream: 'quotes' },
  { operation: 'financial_metrics_snapshot', upstream: 'financial' },
  { operation: 'website_traffic_engagement', upstream: 'traffic' },
] as const

for (const { operation, upstream } of ENDPOINTS)
  describe(`${operation} answers`, () => {
    const mine = (headers: Record<string, string> = {}, word = '') =>
      call(url, customer.secret, operation, word, { headers })
    const headersOf = (key: string) => ({ 'idempotency-key': `${operation}-${key}` })

    it('200 with its cost, its balance, its price version and its id, and is in the ledger once', async () => {
      const told = await mine()
      assert.equal(told.status, 200)
      assert.match(String(told.costUsd), /^0\.\d{9}$/)
      assert.equal(told.headers.get('x-farebox-price-version'), '0')
      const charged = (await chargesOf(pool, customer.accountId)).get(told.id)
      assert.equal(charged, BigInt(String(told.costUsd).replace('.', '')))
    })

    it('400 for a parameter that is given in a way that nobody can read', async () => {
      const told = await mine({ 'x-farebox-max-cost-usd': 'much' })
      assertRefused(told, 400, 'invalid_request')
      assert.equal(told.json.request_id, told.id)
    })

    it('401 with a credential that is none, and without one unless nobody is to know of it', async () => {
      assertRefused(await call(url, 'nonsense', operation), 401, 'invalid_credential')
      const isHidden = operation === 'website_traffic_engagement'
      const code = isHidden ? 'route_not_found' : 'missing_credential'
      assertRefused(await call(url, '', operation), isHidden ? 404 : 401, code)
    })

    it('402 where cap, budget or balance do not cover the most', async () => {
      assertRefused(await mine({ 'x-farebox-max-cost-usd': '0.000000001' }), 402, 'cost_cap_exceeded')
      const budget = { period: 'day', amount: nanos(1_000n) } as const
      const { secret } = await makeKey(pool, customer.workspaceId, { budget })
      assertRefused(await call(url, secret, operation), 402, 'budget_exceeded')
      const poor = await makeCustomer(pool, { money: 1_000n })
      assertRefused(await call(url, poor.secret, operation), 402, 'insufficient_balance')
    })

    it('403 where the key has no scope for it', async () => {
      const { secret } = await makeKey(pool, customer.workspaceId, { scopes: ['rerank'] })
      assertRefused(await call(url, secret, operation), 403, 'forbidden')
    })

    it('404 and 418 as its upstream does, with its body', async () => {
      for (const status of [404, 418]) {
        const told = await mine({}, `sandbox:status=${status}`)
        assert.deepEqual([told.status, told.costUsd], [status, FREE])
        assert.equal(told.json.request_id, undefined)
      }
    })

    it('409 and 422 for an idempotency key that was used', async () => {
      assert.equal((await mine(headersOf('used'))).status, 200)
      assertRefused(await mine(headersOf('used')), 409, 'idempotency_completed')
      assertRefused(await mine(headersOf('used'), 'other'), 422, 'idempotency_mismatch')
    })

    it('429 where requests are spent, and where its upstream limits us', async () => {
      const slow = await makeCustomer(pool, { requestsPerMinute: 1 })
      assert.equal((await call(url, slow.secret, operation)).status, 200)
      assertRefused(await call(url, slow.secret, operation), 429, 'rate_limit_exceeded')
      const told = await mine({}, 'sandbox:status=429 sandbox:retry-after=9')
      assertRefused(told, 429, 'upstream_rate_limit')
      assert.equal(told.headers.get('retry-after'), '9')
    })

    it('500 as its upstream does', async () => {
      assert.deepEqual([(await mine({}, 'sandbox:status=500')).status], [500])
    })

    it('502 where its upstream breaks off', async () => {
      await sandbox.fault(upstream, ['reset=in-body'])
      const told = await mine()
      assertRefused(told, 502, 'upstream_transport')
      assert.deepEqual([told.costUsd, told.headers.get('x-should-retry')], [FREE, 'false'])
    })

    it('502 where it is a success by its status, and nobody can read whether it is one to be paid for', async () => {
      for (const word of ['garbage', 'html', 'empty', 'status=203 sandbox:garbage']) {
        const told = await mine({}, `sandbox:${word}`)
        assertRefused(told, 502, 'upstream_unreadable')
        assert.deepEqual([told.costUsd, told.headers.get('x-should-retry')], [FREE, 'false'], word)
      }
      for (const status of [404, 500]) {
        const told = await mine({}, `sandbox:status=${status} sandbox:html`)
        assert.deepEqual([told.status, told.costUsd], [status, FREE])
        assert.match(told.text, /<html|<!doctype/i)
      }
    })

    it('503 where its upstream refuses our own account', async () => {
      for (const status of [401, 402]) {
        const told = await mine({}, `sandbox:status=${status}`)
        assertRefused(told, 503, 'upstream_account')
        assert.equal(told.costUsd, FREE)
      }
    })
  })

it('leaves a ledger that adds up', async () => {
  assert.deepEqual(await verifyLedger(pool), [])
})

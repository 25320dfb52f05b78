import assert from 'node:assert/strict'
import { usd } from '../../server/src/kernel/money.ts'
import { DATA, type Endpoint } from './endpoints.ts'
import { type Probe, requireError, sendsNothing } from './probe.ts'
import { type Request, type Stack, sentTo } from './stack.ts'

/** Data endpoints and reranking. */
const at = (operation: string): Endpoint => DATA.find((one) => one.operation === operation) as Endpoint
const RESELLER = DATA.filter(({ upstream }) => upstream === 'reseller')
/** The same request with a word for the sandbox behind its last value. */
const telling = ({ path }: Endpoint, words: string) => ({ path: `${path}${encodeURIComponent(` ${words}`)}` })

const ENVELOPE = [
  ...['code', 'request_id', 'message', 'message_zh', 'support', 'time', 'time_stamp', 'time_zone', 'docs'],
  ...['cache_message', 'cache_message_zh', 'cache_url', 'router', 'params', 'data'],
]
const SNAPSHOT = [
  ...['market_cap', 'enterprise_value', 'price_to_earnings_ratio', 'price_to_book_ratio', 'price_to_sales_ratio'],
  ...['enterprise_value_to_ebitda_ratio', 'enterprise_value_to_revenue_ratio', 'free_cash_flow_yield', 'peg_ratio'],
  ...['gross_margin', 'operating_margin', 'net_margin', 'return_on_equity', 'return_on_assets'],
  ...['return_on_invested_capital', 'asset_turnover', 'inventory_turnover', 'receivables_turnover'],
  ...['days_sales_outstanding', 'operating_cycle', 'working_capital_turnover', 'current_ratio', 'quick_ratio'],
  ...['cash_ratio', 'operating_cash_flow_ratio', 'debt_to_equity', 'debt_to_assets', 'interest_coverage'],
  ...['revenue_growth', 'earnings_growth', 'book_value_growth', 'earnings_per_share_growth', 'free_cash_flow_growth'],
  ...['operating_income_growth', 'ebitda_growth', 'payout_ratio', 'earnings_per_share', 'book_value_per_share'],
  'free_cash_flow_per_share',
]
const TWEET: Readonly<Record<string, readonly string[]>> = {
  string: ['type', 'id', 'url', 'text', 'source', 'createdAt', 'lang', 'inReplyToId', 'conversationId'],
  number: ['retweetCount', 'replyCount', 'likeCount', 'quoteCount', 'viewCount', 'bookmarkCount'],
  boolean: ['isReply', 'isLimitedReply'],
}

async function got(stack: Stack, endpoint: Endpoint) {
  const customer = await stack.customer()
  const told = await stack.send(customer.secret, { path: endpoint.path })
  assert.equal(told.status, 200, told.text)
  return told.json
}

const DATA_PROBES: readonly Probe[] = [
  ...RESELLER.flatMap((endpoint): Probe[] => [
    [
      `DATA-2 the reseller’s envelope has its fifteen members: ${endpoint.name}`,
      async (stack) => {
        const json = await got(stack, endpoint)
        for (const member of ENVELOPE) assert.ok(member in json, member)
        assert.equal(json.code, 200)
        assert.ok(Number.isInteger(json.time_stamp))
        assert.match(String(json.message_zh), /\p{Script=Han}/u)
      },
    ],
    [
      `DATA-2 a body whose code is not 200 costs nothing, whatever the HTTP status: ${endpoint.name}`,
      async (stack) => {
        const customer = await stack.customer()
        const told = await stack.send(customer.secret, telling(endpoint, 'sandbox:code=404'))
        assert.equal(told.json.code, 404, told.text)
        assert.equal(await stack.chargedOf(customer), 0n)
      },
    ],
    [
      `DATA-3 a parameter whose name is not shown passes through as it came: ${endpoint.name}`,
      async (stack) => {
        const { secret } = await stack.customer()
        const { json, status, text } = await stack.send(secret, { path: `${endpoint.path}&page_cursor=a%2Bb%20c` })
        assert.equal(status, 200, text)
        assert.equal(Object(json.params).page_cursor, 'a+b c')
      },
    ],
    [
      `ERR-3 a reseller’s 5xx is not charged, even where its body says 200: ${endpoint.name}`,
      async (stack) => {
        const customer = await stack.customer()
        const told = await stack.send(customer.secret, telling(endpoint, 'sandbox:code=200 sandbox:status=500'))
        assert.ok(told.status >= 500, told.text)
        assert.equal(await stack.chargedOf(customer), 0n)
      },
    ],
    [
      `DATA-8 cache_url and the cache messages are passed on: ${endpoint.name}`,
      async (stack) => {
        const json = await got(stack, endpoint)
        assert.match(String(json.cache_url), /^https?:\/\//)
      },
    ],
  ]),
  [
    'DATA-1 comments come as success, credits_remaining, comments and cursor',
    async (stack) => {
      const json = await got(stack, at('post_comments'))
      assert.equal(json.success, true)
      assert.ok(Number.isInteger(json.credits_remaining))
      assert.equal(typeof json.cursor, 'string')
      const [comment] = [json.comments].flat().map(Object)
      for (const member of ['id', 'text', 'created_at']) assert.equal(typeof comment?.[member], 'string', member)
      for (const member of ['comment_like_count', 'child_comment_count'])
        assert.ok(Number.isInteger(comment?.[member]), member)
      const user = Object(comment?.user)
      for (const member of ['id', 'pk', 'profile_pic_url', 'username', 'fbid_v2'])
        assert.equal(typeof user[member], 'string', member)
      assert.equal(typeof user.is_verified, 'boolean')
      assert.ok('is_unpublished' in user)
    },
  ],
  [
    'DATA-1 comments do not need url: the request goes upstream, which answers for itself',
    async (stack) => {
      const { secret } = await stack.customer()
      const before = await sentTo(stack.sandbox)
      await stack.send(secret, { path: '/apis/v1/social_b/post/comments' })
      assert.equal(await sentTo(stack.sandbox), before + 1)
    },
  ],
  [
    'DATA-1 comments without success cost nothing',
    async (stack) => {
      const customer = await stack.customer()
      await stack.send(customer.secret, telling(at('post_comments'), 'sandbox:success=false'))
      assert.equal(await stack.chargedOf(customer), 0n)
    },
  ],
  [
    'DATA-3 a parameter that changes what comments cost is refused by its name',
    async (stack) => {
      const { secret } = await stack.customer()
      const path = `${at('post_comments').path}&include_replies=true`
      const told = await sendsNothing(stack, () => stack.send(secret, { path }))
      requireError(told, 'data', 400)
      assert.match(told.text, /include_replies/)
    },
  ],
  [
    'DATA-4 a snapshot has its ticker and its 39 figures',
    async (stack) => {
      const { snapshot } = await got(stack, at('financial_metrics_snapshot'))
      assert.equal(Object(snapshot).ticker, 'ABC')
      for (const figure of SNAPSHOT) assert.equal(typeof Object(snapshot)[figure], 'number', figure)
      assert.equal(SNAPSHOT.length, 39)
    },
  ],
  [
    'DATA-4 a snapshot by cik works too',
    async (stack) => {
      const { secret } = await stack.customer()
      const path = '/apis/v1/financial/financial-metrics/snapshot?cik=0000320193'
      assert.equal((await stack.send(secret, { path })).status, 200)
    },
  ],
  [
    'DATA-4 a snapshot by neither is 400, and costs nothing',
    async (stack) => {
      const { secret } = await stack.customer()
      const path = '/apis/v1/financial/financial-metrics/snapshot'
      requireError(await sendsNothing(stack, () => stack.send(secret, { path })), 'data', 400)
    },
  ],
  [
    'DATA-5 quotes come as tweets, has_next_page, next_cursor, status and message',
    async (stack) => {
      const json = await got(stack, at('tweet_quotes'))
      assert.equal(typeof json.has_next_page, 'boolean')
      for (const member of ['next_cursor', 'status', 'message']) assert.equal(typeof json[member], 'string', member)
      const [tweet] = [json.tweets].flat().map(Object)
      for (const [type, members] of Object.entries(TWEET))
        for (const member of members) assert.equal(typeof tweet?.[member], type, member)
      assert.equal(typeof Object(tweet?.author).userName, 'string')
      assert.ok(Array.isArray(Object(tweet?.entities).hashtags))
    },
  ],
  [
    'DATA-5 quotes need tweetId',
    async (stack) => {
      const { secret } = await stack.customer()
      const told = await sendsNothing(stack, () => stack.send(secret, { path: '/apis/v1/social_a/tweet/quotes' }))
      requireError(told, 'data', 400)
      assert.match(told.text, /tweetId/)
    },
  ],
  [
    'DATA-5 the cursor of quotes passes through',
    async (stack) => {
      const { secret } = await stack.customer()
      const path = at('tweet_quotes').path
      const first = await stack.send(secret, { path })
      const next = encodeURIComponent(String(first.json.next_cursor))
      const second = await stack.send(secret, { path: `${path}&cursor=${next}` })
      assert.equal(second.status, 200)
      assert.notDeepEqual(second.json.tweets, first.json.tweets)
    },
  ],
  ...['tweetId=1&tweetId=2', 'tweetId='].map(
    (query): Probe => [
      `ERR-7 a tweetId that is twice or empty is 400: ${query}`,
      async (stack) => {
        const { secret } = await stack.customer()
        const path = `/apis/v1/social_a/tweet/quotes?${query}`
        requireError(await sendsNothing(stack, () => stack.send(secret, { path })), 'data', 400)
      },
    ],
  ),
  ...DATA.map(
    (endpoint): Probe => [
      `DATA-7 an upstream’s own 404 keeps its status, and is free: ${endpoint.name}`,
      async (stack) => {
        const customer = await stack.customer()
        const told = await stack.send(customer.secret, telling(endpoint, 'sandbox:status=404'))
        assert.equal(told.status, 404, told.text)
        assert.equal(await stack.chargedOf(customer), 0n)
      },
    ],
  ),
  ...DATA.map(
    (endpoint): Probe => [
      `DATA-7 an answer that is no JSON keeps its body and content type, or is withheld where its price can’t be read: ${endpoint.name}`,
      async (stack) => {
        const customer = await stack.customer()
        const told = await stack.send(customer.secret, telling(endpoint, 'sandbox:html'))
        if (told.status === 200) assert.match(told.headers.get('content-type') ?? '', /^text\/html/)
        else {
          requireError(told, 'data', 502, 'upstream_unreadable')
          assert.equal(await stack.chargedOf(customer), 0n)
        }
      },
    ],
  ),
  [
    'DATA-9 the web-traffic provider’s 409 is passed on, told apart from an idempotency conflict',
    async (stack) => {
      const { secret } = await stack.customer()
      const told = await stack.send(secret, telling(at('website_traffic_engagement'), 'sandbox:status=409'))
      assert.equal(told.status, 409, told.text)
      assert.doesNotMatch(told.text, /idempotency/)
    },
  ],
]

const rerank = (body: object) => ({ path: '/v1/rerank', body })
const DOCUMENTS = ['a snail', 'a quick fox', 'a stone', 'an animal that is quick']
const WRONG_RERANKS: Readonly<Record<string, object>> = {
  'without a query': { documents: DOCUMENTS },
  'with an empty query': { query: '', documents: DOCUMENTS },
  'without documents': { query: 'fox' },
  'with no document': { query: 'fox', documents: [] },
  'whose documents are no list': { query: 'fox', documents: 'fox' },
  'whose document is a number': { query: 'fox', documents: [1] },
  'whose query is a number': { query: 5, documents: DOCUMENTS },
  'with top_n of zero': { query: 'fox', documents: DOCUMENTS, top_n: 0 },
  'with a negative top_n': { query: 'fox', documents: DOCUMENTS, top_n: -1 },
  'with a fractional top_n': { query: 'fox', documents: DOCUMENTS, top_n: 1.5 },
  'whose body is a list': [],
}

/** A refusal says how many would fit; so many do, and one more does not. */
async function fitsAtMost(stack: Stack, requestOf: (units: number) => Request, units: number, cap: string) {
  const { secret } = await stack.customer()
  const asked = (count: number) =>
    stack.send(secret, { ...requestOf(count), headers: { 'x-farebox-max-cost-usd': cap } })
  const told = await sendsNothing(stack, () => asked(units))
  assert.equal(told.status, 402, told.text)
  const [, fitting = ''] = /This call fits with at most (\d+)\./.exec(told.text) ?? assert.fail(told.text)
  assert.equal((await asked(Number(fitting))).status, 200)
  assert.equal((await asked(Number(fitting) + 1)).status, 402)
  return told.text
}

const COSTLY: readonly Probe[] = [
  [
    'ERR-2 a reranking that costs too much is told how many documents fit',
    async (stack) => {
      const asked = (units: number) => rerank({ query: 'quick', documents: Array(units).fill('a quick fox') })
      assert.match(await fitsAtMost(stack, asked, 40, '0.00002'), /the number of documents: 40/)
    },
  ],
  [
    'ERR-2 a web-traffic call that costs too much is told how many months fit',
    async (stack) => {
      const path = at('website_traffic_engagement').path
      const asked = (units: number) => ({
        path: `${path}&metrics=visits&start_date=2026-01&end_date=2026-${String(units).padStart(2, '0')}`,
      })
      assert.match(await fitsAtMost(stack, asked, 9, '0.01'), /from start_date to end_date: 9/)
    },
  ],
  [
    'ERR-2 a web-traffic call of one month that costs too much is told how many metrics fit',
    async (stack) => {
      const path = `${at('website_traffic_engagement').path}&start_date=2026-01&end_date=2026-01`
      const names = ['visits', 'unique_visitors', 'bounce_rate', 'pages_per_visit', 'visit_duration', 'page_views']
      const asked = (units: number) => ({ path: `${path}&metrics=${names.slice(0, units).join()}` })
      assert.match(await fitsAtMost(stack, asked, 6, '0.006'), /the number of metrics: 6/)
    },
  ],
]

const RERANK_PROBES: readonly Probe[] = [
  ...Object.entries(WRONG_RERANKS).map(
    ([wrong, body]): Probe => [
      `RERANK-1 a request ${wrong} is 400, and reaches no upstream`,
      async (stack) => {
        const { secret } = await stack.customer()
        requireError(await sendsNothing(stack, () => stack.send(secret, rerank(body))), 'openai', 400)
      },
    ],
  ),
  [
    'RERANK-2 results come with the best first, index into the input, and its text',
    async (stack) => {
      const { secret } = await stack.customer()
      const { json } = await stack.send(secret, rerank({ query: 'a quick animal', documents: DOCUMENTS }))
      const results = [json.results].flat().map(Object)
      assert.equal(results.length, DOCUMENTS.length)
      for (const [place, { index, relevance_score, document }] of results.entries()) {
        assert.equal(document.text, DOCUMENTS[index])
        if (place > 0) assert.ok(relevance_score <= results[place - 1]?.relevance_score)
      }
      assert.equal(typeof json.model, 'string')
    },
  ],
  [
    'RERANK-2 results are sorted where the upstream’s are not',
    async (stack) => {
      const { secret } = await stack.customer()
      const { json } = await stack.send(secret, rerank({ query: 'a quick sandbox:unsorted', documents: DOCUMENTS }))
      const scores = [json.results].flat().map((one) => Object(one).relevance_score)
      assert.deepEqual(
        scores,
        scores.toSorted((a, b) => b - a),
      )
    },
  ],
  ...[1, 2, 9].map(
    (top): Probe => [
      `RERANK-2 top_n returns at most so many: ${top}`,
      async (stack) => {
        const { secret } = await stack.customer()
        const { json } = await stack.send(secret, rerank({ query: 'quick', documents: DOCUMENTS, top_n: top }))
        assert.equal([json.results].flat().length, Math.min(top, DOCUMENTS.length))
      },
    ],
  ),
  ...[1, 7, 40, 333, 1_001].map(
    (tokens): Probe => [
      `RERANK-3 ${tokens} tokens cost exactly 50 nano-dollars each`,
      async (stack) => {
        const { secret } = await stack.customer()
        const told = await stack.send(
          secret,
          rerank({ query: `sandbox:tokens=${tokens}`, documents: ['x'.repeat(8_000)] }),
        )
        assert.equal(told.status, 200, told.text)
        const billed = Object(told.json.usage).total_tokens
        assert.equal(usd(told.costUsd ?? ''), BigInt(billed) * 50n)
      },
    ],
  ),
  [
    'RERANK-3 total_tokens is the billed count, also where the upstream reports none',
    async (stack) => {
      const { secret } = await stack.customer()
      const told = await stack.send(secret, rerank({ query: 'quick sandbox:no-usage', documents: DOCUMENTS }))
      assert.equal(usd(told.costUsd ?? ''), BigInt(Object(told.json.usage).total_tokens) * 50n)
    },
  ],
]

export const DATA_AND_RERANK_PROBES: readonly Probe[] = [...DATA_PROBES, ...RERANK_PROBES, ...COSTLY]

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { askAnybody, type Told } from '../acceptance/installation.ts'
import { ENDPOINTS } from './endpoints.ts'
import type { Probe } from './probe.ts'
import type { Stack } from './stack.ts'

/** The public documents at the website. */
const site = (stack: Stack, path: string, method = 'GET') => askAnybody(stack.siteUrl, '', path, { method })

async function versionOf(stack: Stack): Promise<string> {
  return String((await site(stack, '/api/contracts/version')).json.contentHash)
}

async function contractOf(stack: Stack): Promise<Told> {
  return site(stack, `/api/contracts/source?hash=${await versionOf(stack)}&bundled=1`)
}

/** Every endpoint that the specification lists at base_url. */
const LISTED = [
  ...['get /v1/usage', 'post /apis/v1/social_a/auth_social_a', 'post /apis/v1/social_a/follow_social_a'],
  ...['get /apis/v1/social_a/oauth_callback', 'post /apis/v1/services/aigc/video-generation/video-synthesis'],
  ...['get /apis/v1/services/aigc/tasks/{task_id}', 'post /v1/rerank', 'get /apis/v1/social_b/post/comments'],
  'get /apis/v1/reseller/social_c/app/v3/fetch_creator_search_insights_videos',
  'get /apis/v1/reseller/social_c/shop/web/fetch_search_word_suggestion_v2',
  'get /apis/v1/reseller/social_c/web/fetch_tag_detail',
  'get /apis/v1/reseller/social_b/v2/fetch_user_stories',
  'get /apis/v1/financial/financial-metrics/snapshot',
  ...['get /apis/v1/social_a/tweet/quotes', 'get /apis/v1/traffic_analytics/website/traffic-engagement'],
  ...['post /v1/chat/completions', 'post /v1/messages', 'post /v1beta/models/{model}:generateContent'],
]

export const SITE_PROBES: readonly Probe[] = [
  [
    'SITE-1 the version has contentHash and docsRevision, also as headers',
    async (stack) => {
      const { status, json, headers } = await site(stack, '/api/contracts/version')
      assert.equal(status, 200)
      assert.match(String(json.contentHash), /^[0-9a-f]{64}$/)
      assert.equal(headers.get('x-farebox-contract-hash'), json.contentHash)
      assert.equal(headers.get('x-farebox-docs-revision'), json.docsRevision)
    },
  ],
  [
    'SITE-1 the SHA-256 of the bundled bytes is contentHash',
    async (stack) => {
      const { text, headers } = await contractOf(stack)
      const hash = createHash('sha256').update(text).digest('hex')
      assert.equal(hash, await versionOf(stack))
      assert.equal(headers.get('x-farebox-contract-hash'), hash)
    },
  ],
  [
    'SITE-5 the contract is OpenAPI 3.0.3 with interface version 1.0.0',
    async (stack) => {
      const { json } = await contractOf(stack)
      assert.deepEqual([json.openapi, Object(json.info).version], ['3.0.3', '1.0.0'])
    },
  ],
  ...LISTED.map(
    (one): Probe => [
      `SITE-4 the contract has the endpoint of the specification: ${one}`,
      async (stack) => {
        const [method = '', path = ''] = one.split(' ')
        const { json } = await contractOf(stack)
        assert.ok(Object(Object(json.paths)[path])[method], one)
      },
    ],
  ),
  ...ENDPOINTS.map(
    ({ operation, name }): Probe => [
      `SITE-1 one operation’s contract is told by its id: ${name}`,
      async (stack) => {
        const path = `/api/contracts/source?hash=${await versionOf(stack)}&operation_id=${operation}`
        const { status, json } = await site(stack, path)
        assert.equal(status, 200)
        assert.match(JSON.stringify(json), new RegExp(`"operationId":"${operation}"`))
      },
    ],
  ),
  [
    'SITE-2 a hash that nobody has is 409',
    async (stack) => {
      const { status, headers } = await site(stack, `/api/contracts/source?hash=${'0'.repeat(64)}&bundled=1`)
      assert.equal(status, 409)
      assert.notEqual(headers.get('x-farebox-contract-hash'), null)
      assert.notEqual(headers.get('x-farebox-docs-revision'), null)
    },
  ],
  [
    'SITE-2 a hash that nobody has is 409 for one operation too',
    async (stack) => {
      const path = `/api/contracts/source?hash=${'0'.repeat(64)}&operation_id=rerank`
      assert.equal((await site(stack, path)).status, 409)
    },
  ],
  ...['', 'bundled=1', 'hash=abc'].map(
    (query): Probe => [
      `SITE-1 a source that says not enough is refused: ?${query}`,
      async (stack) => {
        const { status } = await site(stack, `/api/contracts/source?${query}`)
        assert.ok(status === 400 || status === 409, String(status))
      },
    ],
  ),
  [
    'SITE-1 an operation that is not there is 404',
    async (stack) => {
      const path = `/api/contracts/source?hash=${await versionOf(stack)}&operation_id=nothing`
      assert.equal((await site(stack, path)).status, 404)
    },
  ],
  [
    'SITE-5 a definition marked pending says so, and names only what the specification shows',
    async (stack) => {
      const { json } = await contractOf(stack)
      const stories = Object(Object(json.paths)['/apis/v1/reseller/social_b/v2/fetch_user_stories']).get
      assert.match(JSON.stringify(stories), /pending/)
    },
  ],
  [
    'SITE-4 the contract documents the 39 figures of a snapshot',
    async (stack) => {
      const { text } = await contractOf(stack)
      for (const figure of ['market_cap', 'peg_ratio', 'payout_ratio', 'free_cash_flow_per_share'])
        assert.match(text, new RegExp(`"${figure}"`))
    },
  ],
  [
    'SITE-4 the contract documents a quote’s author, counts and entities',
    async (stack) => {
      const { text } = await contractOf(stack)
      for (const member of ['pinnedTweetIds', 'bookmarkCount', 'user_mentions', 'withheldInCountries', 'quoted_tweet'])
        assert.match(text, new RegExp(`"${member}"`))
    },
  ],
  [
    'SITE-3 what is sold is a verified snapshot with its time and freshness, or 503 without one',
    async (stack) => {
      let told: Told | undefined
      await until(
        async () => {
          told = await site(stack, '/api/sales-api-data')
          if (told.status === 200) return true
          assert.deepEqual(
            [told.status, told.json.freshness, told.json.reason_code],
            [503, 'unavailable', 'verified_sales_source_unavailable'],
          )
          return false
        },
        PATIENCE_MS,
        'a snapshot',
      )
      assert.equal(told?.json.freshness, 'fresh')
      assert.ok(Date.parse(String(told?.json.observed_at)) > 0)
      assert.notEqual(told?.headers.get('x-farebox-contract-hash'), null)
      assert.notEqual(told?.headers.get('x-farebox-docs-revision'), null)
    },
  ],
  ...['/api/contracts/version', '/api/sales-api-data'].map(
    (path): Probe => [
      `SITE-1 HEAD answers as GET: ${path}`,
      async (stack) => {
        const [got, headed] = [await site(stack, path), await site(stack, path, 'HEAD')]
        assert.deepEqual([headed.status, headed.text], [got.status, ''])
      },
    ],
  ),
  ...['POST', 'DELETE', 'PUT'].map(
    (method): Probe => [
      `SITE-1 the version is read alone: ${method} is refused`,
      async (stack) => {
        const { status } = await site(stack, '/api/contracts/version', method)
        assert.ok(status === 405 || status === 404, String(status))
      },
    ],
  ),
  ...['/', '/docs', '/guides', '/favicon.ico', '/status', '/sign-in', '/models', '/reference'].map(
    (path): Probe => [
      `SITE-1 the public website answers: ${path}`,
      async (stack) => {
        const { status } = await site(stack, path)
        assert.ok(status === 200 || status === 301 || status === 308 || status === 303, `${path} ${status}`)
      },
    ],
  ),
]

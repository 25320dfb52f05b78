import assert from 'node:assert/strict'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { costsIn, priceOf, saying, tokensIn } from './conversations.ts'
import { type Endpoint, MODELS } from './endpoints.ts'
import { type Probe, requireError, sendsNothing } from './probe.ts'
import type { Stack } from './stack.ts'

/** Models that answer in one piece, and what is told of them. */
type Rule = { readonly says: string; readonly check: (stack: Stack, endpoint: Endpoint) => Promise<void> }

const RULES: readonly Rule[] = [
  {
    says: 'MODEL-3 an answer costs the tokens that it reports, at the price of the model',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const told = await stack.send(customer.secret, saying(endpoint, 'sandbox/text', 'a story'))
      assert.equal(told.status, 200, told.text)
      assert.equal(usd(told.costUsd ?? ''), priceOf(tokensIn(told.json)))
      assert.equal(costsIn(told.text)[0], told.costUsd)
    },
  },
  {
    says: 'MODEL-3 tokens in and out are in the usage report',
    async check(stack, endpoint) {
      const { secret } = await stack.customer()
      const told = await stack.send(secret, saying(endpoint, 'sandbox/text', 'a story'))
      const totals = async () => Object((await stack.send(secret, { path: '/v1/usage?start_time=1' })).json.totals)
      await until(async () => (await totals()).requests === 1, PATIENCE_MS, 'usage')
      const { input_tokens, output_tokens } = await totals()
      assert.deepEqual([input_tokens, output_tokens], tokensIn(told.json))
    },
  },
  {
    says: 'MODEL-3 cache reads are metered at their own price',
    async check(stack, endpoint) {
      const { secret } = await stack.customer()
      const request = saying(endpoint, 'sandbox/echo', 'sandbox:input-tokens=1000 sandbox:cache-read=400')
      const told = await stack.send(secret, request)
      assert.equal(told.status, 200, told.text)
      const totals = async () => Object((await stack.send(secret, { path: '/v1/usage?start_time=1' })).json.totals)
      await until(async () => (await totals()).requests === 1, PATIENCE_MS, 'usage')
      assert.equal((await totals()).cache_read_tokens, 400)
      const [, output] = tokensIn(told.json)
      const plain = endpoint.dialect === 'anthropic' ? 1_000n : 600n
      assert.equal(usd(told.costUsd ?? ''), plain * 500n + 400n * 50n + BigInt(output) * 2_000n)
    },
  },
  {
    says: 'MODEL-5 a request without an output limit gets the model’s default, told in a header',
    async check(stack, endpoint) {
      const { secret } = await stack.customer()
      const { path, body } = saying(endpoint, 'sandbox/echo', 'Hello', undefined)
      const told = await stack.send(secret, { path, body: without(body) })
      assert.equal(told.status, 200, told.text)
      assert.equal(told.headers.get('x-farebox-output-cap'), '4096')
    },
  },
  {
    says: 'MODEL-5 an output limit that the balance does not cover is refused, not shrunk',
    async check(stack, endpoint) {
      const { secret } = await stack.customer({ money: 1_000_000n })
      const told = await sendsNothing(stack, () => stack.send(secret, saying(endpoint, 'sandbox/echo', 'Hello', 4_000)))
      requireError(told, endpoint.dialect, 402, 'insufficient_balance')
      assert.match(told.text, /"?fitting_output_limit"?:/)
    },
  },
  {
    says: 'MODEL-6 a member that nobody knows is refused by its name',
    async check(stack, endpoint) {
      const { secret } = await stack.customer()
      const { path, body } = saying(endpoint, 'sandbox/echo', 'Hello')
      const told = await sendsNothing(stack, () =>
        stack.send(secret, { path, body: { ...Object(body), premium_depth: 3 } }),
      )
      requireError(told, endpoint.dialect, 400)
      assert.match(told.text, /premium_depth/)
    },
  },
  {
    says: 'MODEL-2 a model that nobody sells is 404 in the shape of the protocol',
    async check(stack, endpoint) {
      const { secret } = await stack.customer()
      const told = await sendsNothing(stack, () => stack.send(secret, saying(endpoint, 'sandbox/ecko', 'Hello')))
      requireError(told, endpoint.dialect, 404, 'model_not_found')
      assert.match(told.text, /sandbox\/echo/, 'it suggests the name that is meant')
    },
  },
  {
    says: 'MODEL-2 a model without a price is not executed',
    async check(stack, endpoint) {
      const { secret } = await stack.customer()
      const told = await sendsNothing(stack, () => stack.send(secret, saying(endpoint, 'sandbox/unpriced', 'Hello')))
      assert.ok(told.status === 404 || told.status === 503, told.text)
      requireError(told, endpoint.dialect, told.status)
    },
  },
  {
    says: 'MODEL-2 an upstream’s own error keeps its status and costs nothing',
    async check(stack, endpoint) {
      const customer = await stack.customer()
      const told = await stack.send(customer.secret, saying(endpoint, 'sandbox/500', 'Hello'))
      assert.equal(told.status, 500, told.text)
      assert.equal(await stack.chargedOf(customer), 0n)
    },
  },
  {
    says: 'LIMIT-1 tokens of a minute: the answer tells limit and remaining',
    async check(stack, endpoint) {
      const { secret } = await stack.customer({ key: { rates: { requestsPerMinute: 100, tokensPerMinute: 10_000 } } })
      const told = await stack.send(secret, saying(endpoint, 'sandbox/echo', 'Hello'))
      assert.equal(told.headers.get('x-ratelimit-limit-tokens'), '10000')
      const [input, output] = tokensIn(told.json)
      assert.equal(Number(told.headers.get('x-ratelimit-remaining-tokens')), 10_000 - input - output)
    },
  },
  {
    says: 'LIMIT-1 a call that alone exceeds the tokens of a minute is 429 quota_exceeded',
    async check(stack, endpoint) {
      const { secret } = await stack.customer({ key: { rates: { requestsPerMinute: 100, tokensPerMinute: 1_000 } } })
      const told = await sendsNothing(stack, () => stack.send(secret, saying(endpoint, 'sandbox/echo', 'Hello', 2_000)))
      requireError(told, endpoint.dialect, 429, 'quota_exceeded')
      assert.notEqual(told.headers.get('retry-after'), null)
    },
  },
  {
    says: 'LIMIT-1 a call that the tokens of this minute do not cover any more is 429 rate_limit_exceeded',
    async check(stack, endpoint) {
      const { secret } = await stack.customer({ key: { rates: { requestsPerMinute: 100, tokensPerMinute: 2_500 } } })
      const first = await stack.send(secret, saying(endpoint, 'sandbox/long', 'Hello', 2_000))
      assert.equal(first.status, 200, first.text)
      const told = await sendsNothing(stack, () => stack.send(secret, saying(endpoint, 'sandbox/echo', 'Hello', 1_900)))
      requireError(told, endpoint.dialect, 429, 'rate_limit_exceeded')
      assert.ok(Number(told.headers.get('retry-after')) <= 60)
    },
  },
]

function without(body: unknown): unknown {
  const { max_tokens: _, max_output_tokens: __, generationConfig: ___, ...rest } = Object(body)
  return rest
}

const LISTS: readonly Probe[] = [
  [
    'MODEL-4 the models are listed for nothing, with their prices',
    async (stack) => {
      const customer = await stack.customer()
      const { status, json } = await stack.send(customer.secret, { path: '/v1/models' })
      assert.equal(status, 200)
      const models = [json.data].flat().map(Object)
      const echo = models.find(({ id }) => id === 'sandbox/echo')
      assert.equal(echo?.object, 'model')
      assert.ok(echo?.pricing)
      assert.equal(await stack.chargedOf(customer), 0n)
    },
  ],
  [
    'MODEL-4 one model is told by its name',
    async (stack) => {
      const { secret } = await stack.customer()
      const { status, json } = await stack.send(secret, { path: '/v1/models/sandbox/echo' })
      assert.deepEqual([status, json.id], [200, 'sandbox/echo'])
    },
  ],
  [
    'MODEL-4 a model that is not there is 404',
    async (stack) => {
      const { secret } = await stack.customer()
      requireError(await stack.send(secret, { path: '/v1/models/sandbox/ecko' }), 'openai', 404)
    },
  ],
  [
    'MODEL-4 Gemini’s list of models stands below /v1beta',
    async (stack) => {
      const { secret } = await stack.customer()
      const { status, json } = await stack.send(secret, { path: '/v1beta/models' })
      assert.equal(status, 200)
      assert.ok(Array.isArray(json.models))
    },
  ],
  [
    'MODEL-4 Anthropic’s list of models comes with its version header',
    async (stack) => {
      const { secret } = await stack.customer()
      const headers = { 'anthropic-version': '2023-06-01' }
      const { status, json } = await stack.send(secret, { path: '/v1/models', headers })
      assert.equal(status, 200)
      assert.equal(Object([json.data].flat()[0]).type, 'model')
    },
  ],
  [
    'AUTH-1 the list of models without a credential is 401',
    async (stack) => {
      requireError(await stack.send('', { path: '/v1/models' }), 'openai', 401)
    },
  ],
  [
    'MODEL-1 a key in x-api-key is a credential, as Anthropic’s SDK sends it',
    async (stack) => {
      const { secret } = await stack.customer()
      const request = saying(MODELS[2] as Endpoint, 'sandbox/echo', 'Hello')
      assert.equal((await stack.send('', { ...request, headers: { 'x-api-key': secret } })).status, 200)
    },
  ],
  [
    'MODEL-1 a key in x-goog-api-key is a credential, as Google’s SDK sends it',
    async (stack) => {
      const { secret } = await stack.customer()
      const request = saying(MODELS[3] as Endpoint, 'sandbox/echo', 'Hello')
      assert.equal((await stack.send('', { ...request, headers: { 'x-goog-api-key': secret } })).status, 200)
    },
  ],
  [
    'LIMIT-3 generateContent is limited to 30 requests a minute and key',
    async (stack) => {
      const { secret } = await stack.customer()
      const request = saying(MODELS[3] as Endpoint, 'sandbox/echo', 'Hello')
      const told = await Promise.all(Array.from({ length: 31 }, () => stack.send(secret, request)))
      assert.equal(told.filter(({ status }) => status === 200).length, 30)
      const refused = told.filter(({ status }) => status !== 200)
      for (const one of refused) requireError(one, 'gemini', 429, 'rate_limit_exceeded')
    },
  ],
  [
    'LIMIT-3 images are limited to 30 requests a minute and key',
    async (stack) => {
      const { secret } = await stack.customer()
      const request = {
        path: '/v1/images/generations',
        body: { model: 'sandbox/image', prompt: 'a fox', quality: 'low', size: '1024x1024' },
      }
      const told = await Promise.all(Array.from({ length: 31 }, () => stack.send(secret, request)))
      assert.equal(told.filter(({ status }) => status === 200).length, 30)
    },
  ],
  [
    'LIMIT-3 deep research is limited to 5 requests a minute and key',
    async (stack) => {
      const { secret } = await stack.customer()
      const request = { path: '/v1/deep-research/search', body: { query: 'why is the sea salty' } }
      const told = await Promise.all(Array.from({ length: 6 }, () => stack.send(secret, request)))
      assert.equal(told.filter(({ status }) => status === 200).length, 5)
      assert.equal(told.find(({ status }) => status === 429)?.headers.get('x-ratelimit-limit-requests'), '5')
    },
  ],
]

export const MODEL_PROBES: readonly Probe[] = [
  ...RULES.flatMap(({ says, check }) =>
    MODELS.map((endpoint): Probe => [`${says}: ${endpoint.name}`, (stack) => check(stack, endpoint)]),
  ),
  ...LISTS,
]

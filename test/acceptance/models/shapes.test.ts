import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import {
  EMBEDDING_MODEL,
  IMAGE_MODEL,
  IMAGE_TOKENS_MODEL,
  OPENAI_ONLY_MODEL,
  SANDBOX_LIMITS,
  SANDBOX_MODELS,
  seedModel,
  UNPRICED_MODEL,
  VIDEO_MODEL,
} from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { createSeal } from '../../../server/src/kernel/seal.ts'
import { saveRoute } from '../../../server/src/pricing/configure-models.ts'
import { saveUpstream } from '../../../server/src/upstreams/configure.ts'
import { ask, chargesOf, errorOf, ids, makeCustomer, startInstallation, type Told } from '../installation.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox, masterKey } = installation
after(installation.stop)
const customer = await makeCustomer(pool)

const CHAT = '/v1/chat/completions'
const RESPONSES = '/v1/responses'
const MESSAGES = '/v1/messages'
const COUNT = '/v1/messages/count_tokens'
const ANTHROPIC = { 'anthropic-version': '2023-06-01' }
const CAP_HEADER = 'x-farebox-output-cap'

/** What somebody says, in the protocol of a path. */
const saying = (path: string, text: string) =>
  path === RESPONSES ? { input: text } : { messages: [{ role: 'user', content: text }] }
/** A short question that is like any other. */
const asking = (path: string, model: string) => ({
  model,
  ...saying(path, 'a short story'),
  ...(path === RESPONSES ? { max_output_tokens: 10 } : { max_tokens: 10 }),
})

const post = (path: string, body: object, headers: Record<string, string> = {}, secret = customer.secret) =>
  ask(url, secret, path, { body, headers })
const askedFor = async ({ id }: Told) => (await sandbox.journal()).filter(({ request_id }) => request_id === id)

/** That an answer is a refusal in the shape of its protocol and nothing else, and that nobody was asked. */
async function assertRefused(told: Told, path: string, status: number, code: string): Promise<string> {
  assert.equal(told.status, status, told.text)
  assert.match(told.headers.get('content-type') ?? '', /^application\/json/)
  const { error, ...beside } = told.json
  const { message, type, ...rest } = Object(error)
  assert.equal(typeof message, 'string')
  assert.match(type, /_error$/)
  if (path === CHAT || path === RESPONSES) {
    assert.deepEqual(beside, { request_id: told.id })
    assert.equal(rest.code, code)
    // What is about a parameter names it.
    assert.equal(
      typeof rest.param === 'string',
      status === 404 || (status === 400 && /^("|Unknown)/.test(message)),
      message,
    )
  } else {
    assert.deepEqual(beside, { type: 'error', request_id: told.id })
    assert.deepEqual([rest.code, rest.details.error_code], [code, code])
  }
  assert.deepEqual(await askedFor(told), [])
  assert.equal((await chargesOf(pool, customer.accountId)).has(told.id), false)
  return message
}

describe('MODEL-4 GET /v1/models', () => {
  const OTHERS = [OPENAI_ONLY_MODEL, EMBEDDING_MODEL, IMAGE_MODEL, IMAGE_TOKENS_MODEL, VIDEO_MODEL]
  const TEST_MODELS = [...SANDBOX_MODELS, ...OTHERS].toSorted()
  const list = (headers = {}, query = '', secret = customer.secret) =>
    ask(url, secret, `/v1/models${query}`, { headers })
  const idsIn = ({ json }: Told): string[] => (Array.isArray(json.data) ? json.data.map(({ id }) => id) : [])

  it('has the shape of whoever asks, and all models that can be asked for', async () => {
    const openai = await list()
    assert.deepEqual(Object.keys(openai.json), ['object', 'data'])
    assert.deepEqual(idsIn(openai), TEST_MODELS)
    const anthropic = await list(ANTHROPIC, '?limit=100')
    assert.deepEqual(idsIn(anthropic), TEST_MODELS)
    const { data, ...page } = anthropic.json
    assert.deepEqual(page, { has_more: false, first_id: TEST_MODELS[0], last_id: TEST_MODELS.at(-1) })
    const [first] = Array.isArray(data) ? data : []
    assert.deepEqual(Object.keys(first), ['type', 'id', 'display_name', 'created_at'])
    assert.equal(new Date(first.created_at).toISOString(), first.created_at)
  })

  it('gives one by its name, whether its slash is encoded or not, and in both shapes', async () => {
    for (const name of ['sandbox/echo', 'sandbox%2Fecho']) {
      const openai = await list({}, `/${name}`)
      const { id, object, owned_by, created: _, ...beside } = openai.json
      assert.deepEqual({ id, object, owned_by }, { id: 'sandbox/echo', object: 'model', owned_by: 'sandbox' })
      assert.deepEqual(beside, {
        context_length: SANDBOX_LIMITS.contextWindow,
        max_output_tokens: SANDBOX_LIMITS.outputMost,
        default_output_tokens: SANDBOX_LIMITS.outputCap,
        protocols: ['openai', 'openai_responses', 'anthropic', 'gemini'],
        input_modalities: ['text', ...Object.keys(Object(SANDBOX_LIMITS).partTokens ?? {})],
        output_modalities: ['text'],
        pricing: {
          currency: 'USD',
          version: '1',
          per_million_tokens: { input: '0.5', output: '2', cache_read: '0.05', cache_write: '0.625' },
        },
      })
      assert.ok(Number.isInteger(openai.json.created))
      const { json } = await list(ANTHROPIC, `/${name}`)
      assert.deepEqual([json.type, json.id, json.display_name], ['model', 'sandbox/echo', 'sandbox/echo'])
    }
    for (const name of ['sandbox/nobody', UNPRICED_MODEL, 'sandbox', 'sandbox/echo/more']) {
      await assertRefused(await list({}, `/${name}`), CHAT, 404, 'model_not_found')
      await assertRefused(await list(ANTHROPIC, `/${name}`), MESSAGES, 404, 'model_not_found')
    }
  })

  it('says of pictures, vectors and videos what they are sold by', async () => {
    const { json } = await list()
    const models = new Map((Array.isArray(json.data) ? json.data : []).map((one) => [one.id, one]))
    const [image, video, vector] = [IMAGE_MODEL, VIDEO_MODEL, EMBEDDING_MODEL].map((id) => models.get(id))
    assert.deepEqual(
      [image.output_modalities, video.output_modalities, vector.output_modalities],
      [['image'], ['video'], ['embedding']],
    )
    assert.match(image.pricing.per_image['auto/auto'], /^0\.\d+$/)
    assert.match(video.pricing.per_second['720P'], /^0\.\d+$/)
    assert.equal(vector.max_output_tokens, undefined)
    assert.ok(
      [...models.values()].every(({ pricing, protocols }) => pricing.currency === 'USD' && protocols.length > 0),
    )
  })

  it('is read page by page in the one shape that has pages', async () => {
    const pageOf = async (query: string) => {
      const told = await list(ANTHROPIC, query)
      return [idsIn(told), told.json.has_more] as const
    }
    assert.deepEqual(await pageOf('?limit=2'), [TEST_MODELS.slice(0, 2), true])
    assert.deepEqual(await pageOf(`?limit=2&after_id=${TEST_MODELS[1]}`), [TEST_MODELS.slice(2, 4), true])
    assert.deepEqual(await pageOf(`?limit=2&before_id=${TEST_MODELS[4]}`), [TEST_MODELS.slice(2, 4), true])
    assert.deepEqual(await pageOf(`?limit=1000&after_id=${TEST_MODELS.at(-2)}`), [TEST_MODELS.slice(-1), false])
    assert.deepEqual(await pageOf(`?before_id=${TEST_MODELS[0]}`), [[], false])
    // One that was there a page ago, and is gone.
    assert.deepEqual(await pageOf(`?limit=2&after_id=${TEST_MODELS[1]}-`), [TEST_MODELS.slice(2, 4), true])
    assert.deepEqual(await pageOf(`?limit=2&before_id=${TEST_MODELS[3]}-`), [TEST_MODELS.slice(2, 4), true])
    for (const query of ['?limit=0', '?limit=1001', '?limit=x', '?after_id=a&before_id=b'])
      await assertRefused(await list(ANTHROPIC, query), MESSAGES, 400, 'invalid_request')
  })

  it('costs nothing, and counts as a request', async () => {
    const { secret, accountId } = await makeCustomer(pool, { requestsPerMinute: 100 })
    for (const [place, query] of ['', '/sandbox/echo', '/sandbox/nobody'].entries()) {
      const { headers } = await list({}, query, secret)
      assert.equal(headers.get('x-ratelimit-remaining-requests'), String(99 - place))
    }
    assert.equal((await chargesOf(pool, accountId)).size, 0)
    const told = await ask(url, secret, '/v1/balance')
    assert.equal(Object(told.json.available).usd, '10.000000000')
    assert.equal(told.headers.get('x-ratelimit-remaining-requests'), '96')
  })

  it('shows the models of one mode to the keys of that mode', async () => {
    const live = await makeCustomer(pool, { key: { mode: 'live' } })
    assert.deepEqual(idsIn(await list({}, '', live.secret)), [])
    const seal = createSeal({ current: masterKey })
    const upstream = {
      slot: 'live_only',
      mode: 'live',
      baseUrl: 'https://upstream.invalid/v1',
      kind: 'native',
    } as const
    await saveUpstream({ pool, ids, seal }, { ...upstream, credential: null })
    await seedModel(pool, { id: 'maker/live', protocols: [] })
    await saveRoute({ pool, ids }, { model: 'maker/live', slot: 'live_only', protocol: 'openai', upstreamModel: 'x' })
    await until(async () => idsIn(await list({}, '', live.secret)).length > 0, PATIENCE_MS, 'a model in live mode')
    assert.deepEqual(idsIn(await list({}, '', live.secret)), ['maker/live'])
    assert.deepEqual(idsIn(await list()), TEST_MODELS)
    await assertRefused(await list({}, '/maker/live'), CHAT, 404, 'model_not_found')
  })
})

describe('MODEL-5 the output limit', () => {
  const { outputCap, outputMost } = SANDBOX_LIMITS
  const PROTOCOLS = [
    {
      path: CHAT,
      limit: 'max_completion_tokens',
      finish: ({ choices }: Json) => Object(choices)[0].finish_reason,
      cut: 'length',
    },
    { path: CHAT, limit: 'max_tokens', finish: ({ choices }: Json) => Object(choices)[0].finish_reason, cut: 'length' },
    {
      path: RESPONSES,
      limit: 'max_output_tokens',
      finish: ({ incomplete_details }: Json) => Object(incomplete_details).reason,
      cut: 'max_output_tokens',
    },
    { path: MESSAGES, limit: 'max_tokens', finish: ({ stop_reason }: Json) => stop_reason, cut: 'max_tokens' },
  ]
  type Json = Told['json']

  for (const { path, limit, finish, cut } of PROTOCOLS) {
    const LONG = { model: 'sandbox/long', ...saying(path, 'sandbox:output-tokens=5000') }

    it(`${path}, ${limit}: without one the model's cap is sent upstream, and shown`, async () => {
      for (const none of [{}, { [limit]: null }]) {
        const told = await post(path, { ...LONG, ...none })
        assert.equal(told.status, 200, told.text)
        assert.equal(told.headers.get(CAP_HEADER), String(outputCap))
        assert.equal(finish(told.json), cut)
        assert.equal((await askedFor(told))[0]?.tokens, outputCap)
      }
      const streamed = await post(path, { ...LONG, stream: true })
      assert.equal(streamed.headers.get(CAP_HEADER), String(outputCap))
      assert.equal((await askedFor(streamed))[0]?.tokens, outputCap)
    })

    it(`${path}, ${limit}: one that is given is taken as it is, and no other is shown`, async () => {
      const told = await post(path, { ...LONG, [limit]: 17 })
      assert.deepEqual([told.status, told.headers.get(CAP_HEADER), finish(told.json)], [200, null, cut])
      assert.equal((await askedFor(told))[0]?.tokens, 17)
      const most = await post(path, { ...LONG, [limit]: outputMost })
      assert.deepEqual([most.status, (await askedFor(most))[0]?.tokens], [200, 5_000])
    })

    it(`${path}, ${limit}: one beyond the model's is refused, and so is what is no limit`, async () => {
      for (const wrong of [outputMost + 1, 0, -1, 1.5, '100', 1e300])
        for (const stream of [false, true]) {
          const told = await post(path, { ...LONG, [limit]: wrong, stream })
          const message = await assertRefused(told, path, 400, 'invalid_request')
          assert.match(message, new RegExp(`"${limit}"`))
        }
    })

    it(`trap: ${path}, ${limit}: none is shrunk to what a balance covers`, async () => {
      // Enough for 2,000 tokens of output and a short question.
      const { secret, accountId } = await makeCustomer(pool, { money: 5_000_000n })
      for (const much of [{ [limit]: 3_000 }, {}]) {
        const told = await post(path, { ...LONG, ...much }, {}, secret)
        await assertRefused(told, path, 402, 'insufficient_balance')
      }
      const told = await post(path, { ...LONG, [limit]: 1_500 }, {}, secret)
      assert.deepEqual([told.status, (await askedFor(told))[0]?.tokens], [200, 1_500])
      assert.equal((await chargesOf(pool, accountId)).size, 1)
    })
  }
})

describe('MODEL-6 what costs money beyond tokens is refused by its name', () => {
  type Refused = Readonly<Record<string, object>>
  const chat: Refused = {
    service_tier: { service_tier: 'priority' },
    web_search_options: { web_search_options: {} },
    tools: { tools: [{ type: 'web_search' }] },
    audio: { audio: { voice: 'a', format: 'wav' } },
    modalities: { modalities: ['text', 'audio'] },
    prediction: { prediction: { type: 'content', content: 'a' } },
    prompt_cache_retention: { prompt_cache_retention: '24h' },
    moderation: { moderation: {} },
  }
  const responses: Refused = {
    service_tier: { service_tier: 'priority' },
    'prompt_cache_options.ttl': { prompt_cache_options: { ttl: '12h' } },
    prompt_cache_retention: { prompt_cache_retention: '24h' },
    'reasoning.mode': { reasoning: { mode: 'pro' } },
    context_management: { context_management: [{ type: 'compaction' }] },
    moderation: { moderation: { model: 'a' } },
    store: { store: true },
    background: { background: true },
    previous_response_id: { previous_response_id: 'resp_1' },
    conversation: { conversation: 'conv_1' },
    prompt: { prompt: { id: 'pmpt_1' } },
    'input[0].type': { input: [{ type: 'item_reference', id: 'msg_1' }] },
    'tools[0].type': { tools: [{ type: 'web_search' }] },
    'tools[0].tools[0].type': { tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'web_search' }] }] },
    ...Object.fromEntries(
      [
        'file_search',
        'code_interpreter',
        'image_generation',
        'mcp',
        'computer_use_preview',
        'shell',
        'local_shell',
      ].map((type) => [type, { tools: [{ type }] }]),
    ),
  }
  const messages: Refused = {
    service_tier: { service_tier: 'priority' },
    container: { container: 'a' },
    mcp_servers: { mcp_servers: [{ type: 'url', url: 'https://tools.invalid', name: 'a' }] },
    web_search_20250305: { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
    'cache_control.ttl': {
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: '1h' } }] },
      ],
    },
    speed: { speed: 'fast' },
    inference_geo: { inference_geo: 'us' },
  }

  for (const [path, refused] of [
    [CHAT, chat],
    [RESPONSES, responses],
    [MESSAGES, messages],
    [COUNT, messages],
  ] as const)
    it(path, async () => {
      for (const [name, members] of Object.entries(refused))
        for (const stream of [false, true]) {
          const body = { ...asking(path, 'sandbox/text'), ...members, stream }
          const message = await assertRefused(await post(path, body), path, 400, 'invalid_request')
          // By where it stands: `"messages[0].content[0].cache_control.ttl"`.
          assert.match(message, new RegExp(`"([^"]*\\.)?${name.replaceAll(/[.[\]]/g, '\\$&')}["[]`))
        }
    })

  it('headers too', async () => {
    const headers = { 'anthropic-beta': 'interleaved-thinking-2025-05-14, context-1m-2025-08-07' }
    const told = await post(MESSAGES, asking(MESSAGES, 'sandbox/text'), headers)
    assert.match(await assertRefused(told, MESSAGES, 400, 'invalid_request'), /anthropic-beta.*"context-1m-2025-08-07"/)
  })
})

describe('a model that can not be asked', () => {
  it('trap: one without a price is refused, and nobody works for nothing', async () => {
    for (const path of [CHAT, RESPONSES, MESSAGES, COUNT])
      for (const stream of [false, true]) {
        const told = await post(path, { ...asking(path, UNPRICED_MODEL), stream })
        await assertRefused(told, path, 503, 'invalid_billing_configuration')
      }
  })

  it('one whose upstreams speak another protocol is refused with the path that works', async () => {
    for (const path of [RESPONSES, MESSAGES, COUNT]) {
      const told = await post(path, asking(path, OPENAI_ONLY_MODEL))
      const message = await assertRefused(told, path, 404, 'resource_not_found')
      assert.ok(message.includes(CHAT), message)
    }
    assert.equal((await post(CHAT, asking(CHAT, OPENAI_ONLY_MODEL))).status, 200)
  })

  it('one that nobody has is refused in the shape of each protocol', async () => {
    for (const path of [CHAT, RESPONSES, MESSAGES, COUNT]) {
      const told = await post(path, asking(path, 'sandbox/nobody'))
      assert.match(await assertRefused(told, path, 404, 'model_not_found'), /"sandbox\/nobody"/)
      assert.equal(
        errorOf(told).type,
        path === CHAT || path === RESPONSES ? 'invalid_request_error' : 'not_found_error',
      )
    }
  })
})

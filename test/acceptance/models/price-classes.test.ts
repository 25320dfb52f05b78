import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { seedModel } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { until } from '../../../harness/until.ts'
import type { ClassPricesText } from '../../../server/src/pricing/class-prices.ts'
import { ask, type Customer, errorOf, makeCustomer, startInstallation, type Told } from '../installation.ts'
import { rowOf, usdOf } from './kept.ts'
import { hear, limited, type Protocol, question, streamed } from './streams.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool } = installation
after(installation.stop)

const DEAR = 'vendor/dear'
const UNBOUNDED = 'vendor/unbounded'
const PLAIN = 'sandbox/text'
const STEP = 1_000
const RATES = { input: '3', output: '15', cache_read: '0.3', cache_write: '3.75' } as const
const PARTS = { cache_write_1h: '6', input_audio: '40', output_audio: '80', cache_read_audio: '1' } as const
const doubled = (rates: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(rates).map(([name, usd]) => [name, String(2 * Number(usd))]))
const CLASSES: ClassPricesText = {
  rates: PARTS,
  above: [{ tokens: STEP, rates: doubled({ ...RATES, ...PARTS }) }],
  tiers: { flex: { times: '0.5' }, priority: { times: '2' } },
  tools: { web_search: '0.01', web_fetch: '0', file_search: '0.0025' },
  tool_calls: 3,
  tool_input: 2_000,
}
const PLAIN_PRICE = { input: '3', output: '15', cacheRead: '0.3', cacheWrite: '3.75' }
/** Nano-dollars for a token, and for a call. */
const NANOS = {
  input: 3_000n,
  output: 15_000n,
  read: 300n,
  write: 3_750n,
  write1h: 6_000n,
  audio: 40_000n,
  speech: 80_000n,
}
const SEARCH = 10_000_000n
const FILE_SEARCH = 2_500_000n

before(async () => {
  await seedModel(pool, { id: DEAR, upstreamModel: PLAIN, price: { ...PLAIN_PRICE, classes: CLASSES } })
  const classes = { tools: { web_search: '0.01' } }
  await seedModel(pool, { id: UNBOUNDED, upstreamModel: PLAIN, price: { ...PLAIN_PRICE, classes } })
})

const buyer = () => makeCustomer(pool, { money: 1_000_000_000_000n })

/** Directives for the sandbox, and words that are none. */
const directed = (words: string) =>
  words
    .split(' ')
    .map((word) => (/^x+$/.test(word) ? word : `sandbox:${word}`))
    .join(' ')

type Asking = { readonly words: string; readonly more?: Readonly<Record<string, unknown>> }

/** The same request whole and as a stream, and what each was charged. */
async function charges({ secret }: Customer, protocol: Protocol, { words, more = {} }: Asking) {
  const text = directed(words)
  const members = { ...limited(protocol, 100), ...more }
  const { path, body } = question(protocol, DEAR, text, members)
  const whole = await ask(url, secret, path, { body })
  assert.equal(whole.status, 200, whole.text)
  const heard = await hear(url, secret, streamed(protocol, DEAR, text, members))
  assert.deepEqual([heard.status, heard.end], [200, 'clean'])
  const rows = [await rowOf(pool, whole.id), await rowOf(pool, heard.id)]
  assert.equal(whole.costUsd, usdOf(rows[0]?.amount ?? -1n))
  return rows.map((row) => row?.amount)
}

const AUDIO = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }
const withAudio = (words: string) => ({
  messages: [{ role: 'user', content: [{ type: 'text', text: `a story ${words}` }, AUDIO] }],
})
const HOURLY = { system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral', ttl: '1h' } }] }

describe('MODEL-6 a call at a price with further classes', { concurrency: 4 }, () => {
  it('costs what was written for an hour at the price of that (Anthropic)', async () => {
    const words = 'input-tokens=100 cache-read=50 cache-write=20 cache-write-1h=30 output-tokens=40'
    const cost = 100n * NANOS.input + 50n * NANOS.read + 20n * NANOS.write + 30n * NANOS.write1h + 40n * NANOS.output
    const more = { ...HOURLY, service_tier: 'standard_only' }
    assert.deepEqual(await charges(await buyer(), 'anthropic', { words, more }), [cost, cost])
  })

  it('costs all of it at the price of long input, from the first token beyond the step on, caches counted', async () => {
    const customer = await buyer()
    const more = { service_tier: 'default' }
    const at = (tokens: number) => `input-tokens=${tokens} cache-read=100 output-tokens=40 ${'x'.repeat(STEP)}`
    const [step, beyond] = [
      await charges(customer, 'openai', { words: at(STEP), more }),
      await charges(customer, 'openai', { words: at(STEP + 1), more }),
    ]
    const cost = (input: bigint) => input * NANOS.input + 100n * NANOS.read + 40n * NANOS.output
    assert.deepEqual(
      [step, beyond],
      [
        [cost(900n), cost(900n)],
        [2n * cost(901n), 2n * cost(901n)],
      ],
    )
  })

  it('costs the tier that the upstream says it was answered in, of those that were asked for', async () => {
    const customer = await buyer()
    const cost = 100n * NANOS.input + 40n * NANOS.output
    const words = 'input-tokens=100 output-tokens=40'
    const inTier = (protocol: Protocol, tier: object, said = '') =>
      charges(customer, protocol, { words: `${words}${said}`, more: { ...tier } as Readonly<Record<string, unknown>> })
    assert.deepEqual(await inTier('openai', { service_tier: 'flex' }), [cost / 2n, cost / 2n])
    assert.deepEqual(await inTier('openai', { service_tier: 'priority' }), [2n * cost, 2n * cost])
    assert.deepEqual(await inTier('openai', { service_tier: 'priority' }, ' service-tier=default'), [cost, cost])
    assert.deepEqual(await inTier('openai_responses', {}, ' service-tier=priority'), [2n * cost, 2n * cost])
    assert.deepEqual(await inTier('anthropic', {}, ' service-tier=priority'), [2n * cost, 2n * cost])
    const inText = { generationConfig: { maxOutputTokens: 100, responseModalities: ['TEXT'] } }
    assert.deepEqual(await inTier('gemini', { serviceTier: 'flex', ...inText }), [cost / 2n, cost / 2n])
  })

  it('costs what was heard at the price of audio', async () => {
    const customer = await buyer()
    const told = 'sandbox:input-tokens=100 sandbox:audio-tokens=60 sandbox:output-tokens=40'
    const cost = 40n * NANOS.input + 60n * NANOS.audio + 40n * NANOS.output
    const chat = { model: DEAR, service_tier: 'default', max_tokens: 100, ...withAudio(told) }
    const spoken = await ask(url, customer.secret, '/v1/chat/completions', { body: chat })
    assert.deepEqual([spoken.status, spoken.costUsd], [200, usdOf(cost)], spoken.text)
    const parts = [{ text: `a story ${told}` }, { inlineData: { mimeType: 'audio/wav', data: 'AAAA' } }]
    const contents = { contents: [{ role: 'user', parts }], generationConfig: { maxOutputTokens: 100 } }
    const gemini = await ask(url, customer.secret, `/v1beta/models/${DEAR}:generateContent`, { body: contents })
    assert.deepEqual([gemini.status, gemini.costUsd], [200, usdOf(cost)], gemini.text)
  })

  it('costs what it says itself at the price of speech, and is not streamed then', async () => {
    const customer = await buyer()
    const spoken = { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' }, service_tier: 'default' }
    const words = 'sandbox:input-tokens=100 sandbox:output-tokens=40 sandbox:output-audio=30'
    const { path, body } = question('openai', DEAR, words, { max_tokens: 100, ...spoken })
    const told = await ask(url, customer.secret, path, { body })
    assert.equal(told.costUsd, usdOf(100n * NANOS.input + 10n * NANOS.output + 30n * NANOS.speech), told.text)
    const refused = await ask(url, customer.secret, path, { body: { ...body, stream: true } })
    assert.match(String(errorOf(refused).message), /Only text can be streamed/)
  })

  it('costs each call of a tool that the upstream ran, and is bounded by what is sent (Responses)', async () => {
    const customer = await buyer()
    const tools = [{ type: 'web_search' }, { type: 'file_search', vector_store_ids: ['vs_1'] }]
    const words = 'input-tokens=100 output-tokens=40 calls=web_search:2+file_search:1'
    const cost = 100n * NANOS.input + 40n * NANOS.output + 2n * SEARCH + FILE_SEARCH
    const more = { tools, service_tier: 'default' }
    assert.deepEqual(await charges(customer, 'openai_responses', { words, more }), [cost, cost])
    const { path, body } = question('openai_responses', DEAR, '', more)
    // An answer repeats what it was asked with.
    assert.equal((await ask(url, customer.secret, path, { body })).json.max_tool_calls, 3)
    assert.equal(
      (await ask(url, customer.secret, path, { body: { ...body, max_tool_calls: 1 } })).json.max_tool_calls,
      1,
    )
  })

  it('costs each search (Anthropic)', async () => {
    const tools = [{ type: 'web_search_20250305', name: 'web_search', max_uses: 2 }]
    const words = 'input-tokens=100 output-tokens=40 calls=web_search:2'
    const cost = 100n * NANOS.input + 40n * NANOS.output + 2n * SEARCH
    assert.deepEqual(await charges(await buyer(), 'anthropic', { words, more: { tools } }), [cost, cost])
  })
})

describe('what is held at such a price', { concurrency: 4 }, () => {
  const quoteOf = async ({ secret }: Customer, protocol: Protocol, more: Readonly<Record<string, unknown>>) => {
    const { path, body } = question(protocol, DEAR, '', { ...limited(protocol, 100), ...more })
    const told = await ask(url, secret, path, { body, headers: { 'x-farebox-cost-mode': 'quote' } })
    assert.equal(told.status, 200, told.text)
    const quoted = told.json.prices as readonly { unit: string; usd: string }[]
    return { quoted, micros: Number(Object(told.json.max).micros_usd), id: String(told.json.quote_id), path, body }
  }

  it('is dearer for an hour, for a tier, for audio and for tools, and no dearer where none of them is asked for', async () => {
    const customer = await buyer()
    const held = async (protocol: Protocol, more: Readonly<Record<string, unknown>>) =>
      (await quoteOf(customer, protocol, more)).micros
    const plain = await held('openai', { service_tier: 'default' })
    // The name of a tier is in the bound too.
    const isAbout = (micros: number, expected: number) => assert.ok(Math.abs(micros / expected - 1) < 0.05, `${micros}`)
    isAbout(await held('openai', { service_tier: 'flex' }), plain)
    for (const tier of [{}, { service_tier: 'auto' }, { service_tier: 'priority' }])
      isAbout(await held('openai', tier), 2 * plain)
    assert.ok((await held('openai', { service_tier: 'default', ...withAudio('') })) > 10 * plain)
    const five = await held('anthropic', { service_tier: 'standard_only', system: 'Be brief.' })
    assert.ok((await held('anthropic', { service_tier: 'standard_only', ...HOURLY })) > five)
    const search = await held('openai_responses', { service_tier: 'default', tools: [{ type: 'web_search' }] })
    assert.ok(search >= plain + 30_000)
  })

  it('is what was quoted, and the call costs the quoted price of its class', async () => {
    const customer = await buyer()
    const { id, path, body, quoted } = await quoteOf(customer, 'anthropic', HOURLY)
    const told = await ask(url, customer.secret, path, { body, headers: { 'x-farebox-quote-id': id } })
    assert.equal(told.status, 200, told.text)
    const prices = new Map(quoted.map(({ unit, usd }) => [unit, usd]))
    assert.equal(prices.get('one-hour cache-write token'), '0.000006')
    assert.equal(prices.get('priority above-1000 input token'), '0.000012')
    assert.equal(prices.get('web_search call'), '0.01')
  })
})

describe('MODEL-6 what a model has no price of', { concurrency: 4 }, () => {
  const refusals: readonly (readonly [string, Protocol, Readonly<Record<string, unknown>>, RegExp])[] = [
    [PLAIN, 'openai_responses', { tools: [{ type: 'web_search' }] }, /web_search = "disabled"/],
    [
      DEAR,
      'openai_responses',
      { tools: [{ type: 'image_generation' }] },
      /"tools\[0\]\.type" may not be "image_generation"/,
    ],
    [DEAR, 'openai_responses', { tools: [{ type: 'mcp' }] }, /"tools\[0\]\.type" may not be "mcp"/],
    [PLAIN, 'anthropic', HOURLY, /"system\[0\]\.cache_control\.ttl" must be "5m"/],
    [PLAIN, 'openai', { service_tier: 'flex' }, /"service_tier" must be "auto" or "default"/],
    [DEAR, 'openai', { service_tier: 'scale' }, /"service_tier" must be/],
    [PLAIN, 'openai', withAudio(''), /input_audio/],
    [
      UNBOUNDED,
      'anthropic',
      { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
      /"tools\[0\]\.max_uses" is required/,
    ],
    [UNBOUNDED, 'openai_responses', { tools: [{ type: 'web_search' }] }, /"max_tool_calls" is required/],
  ]
  for (const [model, protocol, more, says] of refusals)
    it(`is refused by name, with nothing held: ${protocol} ${JSON.stringify(more).slice(0, 60)}`, async () => {
      const { secret } = await buyer()
      const { path, body } = question(protocol, model, '', more)
      const told = await ask(url, secret, path, { body })
      assert.equal(told.status, 400, told.text)
      assert.match(String(errorOf(told).message), says)
    })
})

describe('an upstream that reports what nobody asked for', { concurrency: 4 }, () => {
  const losses = async (customer: Customer) => {
    const { rows } = await pool.query<{ nanos: bigint }>('select nanos from losses where account_id = $1', [
      customer.accountId,
    ])
    return rows.map(({ nanos }) => nanos)
  }
  const heldFor = async (customer: Customer, told: { readonly path: string; readonly body: object }) => {
    const quote = await ask(url, customer.secret, told.path, {
      body: told.body,
      headers: { 'x-farebox-cost-mode': 'quote' },
    })
    return BigInt(String(Object(quote.json.max).usd).replace('.', ''))
  }
  const CASES: readonly (readonly [Protocol, string])[] = [
    ['openai', 'service-tier=priority output-audio=100 output-tokens=100 audio-tokens=9000 input-tokens=9000'],
    ['openai_responses', 'calls=web_search:90'],
    ['anthropic', 'calls=web_search:90 cache-write-1h=90000'],
    ['gemini', 'service-tier=priority audio-tokens=90000 input-tokens=90000'],
  ]
  for (const [protocol, words] of CASES)
    it(`is paid up to the hold, and the rest is a loss that counts: ${protocol} ${words}`, async () => {
      const customer = await buyer()
      const text = directed(words)
      const tier = { openai: 'default', openai_responses: 'default', anthropic: 'standard_only', gemini: 'standard' }[
        protocol
      ]
      const asked = question(protocol, DEAR, text, {
        ...limited(protocol, 100),
        ...(protocol === 'gemini' ? { serviceTier: tier } : { service_tier: tier }),
      })
      const held = await heldFor(customer, asked)
      const told: Told = await ask(url, customer.secret, asked.path, { body: asked.body })
      assert.equal(told.status, 200, told.text)
      const row = await rowOf(pool, told.id)
      assert.equal(row?.amount, held)
      assert.ok((row?.overrun ?? 0n) > 0n)
      await until(async () => (await losses(customer)).length > 0, 60_000, 'the loss')
      assert.deepEqual(await losses(customer), [row?.overrun])
    })
})

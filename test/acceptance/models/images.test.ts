import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import OpenAI from 'openai'
import { IMAGE_MODEL, IMAGE_PRICES, IMAGE_TOKENS_MODEL } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { pictureTokens } from '../../../sandbox/src/upstreams/models/openai-images.ts'
import { usd } from '../../../server/src/kernel/money.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { saveModel, saveRoute, setModelPrice } from '../../../server/src/pricing/configure-models.ts'
import { ask, type Customer, errorOf, ids, makeCustomer, startInstallation, type Told } from '../installation.ts'
import { recordOf, rowOf, usageOf, usdOf } from './kept.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 2 })
const { url, pool, sandbox, gateways } = installation
after(installation.stop)

const PATH = '/v1/images/generations'
const MODE = { 'x-farebox-cost-mode': 'quote' }
const PROMPT = 'a fox in the snow'

/** Pictures are few for a key, so that each test brings its own. */
const buyer = (money = 1_000_000_000_000n) => makeCustomer(pool, { money })

function draw(
  { secret }: Pick<Customer, 'secret'>,
  members: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Promise<Told> {
  return ask(url, secret, PATH, { body: { model: IMAGE_MODEL, prompt: PROMPT, ...members }, headers })
}

const picturesIn = ({ json }: Told) => (Array.isArray(json.data) ? json.data.length : 0)

function kindOf(kind: string): { size?: string; quality?: string } {
  const [size = '', quality = ''] = kind.split('/')
  return { ...(size !== 'auto' && { size }), ...(quality !== 'auto' && { quality }) }
}

describe('POST /v1/images/generations', () => {
  it('MODEL-1 gives the official SDK pictures, of either kind of model, whole or by their address', async () => {
    const customer = await buyer()
    const client = new OpenAI({ apiKey: customer.secret, baseURL: `${url}/v1`, maxRetries: 0 })
    for (const model of [IMAGE_MODEL, IMAGE_TOKENS_MODEL]) {
      const { data } = await client.images.generate({ model, prompt: PROMPT, n: 2, size: '1024x1024', quality: 'low' })
      assert.equal(data?.length, 2)
      for (const { b64_json } of data ?? [])
        assert.equal(
          Buffer.from(b64_json ?? '', 'base64')
            .subarray(1, 4)
            .toString(),
          'PNG',
        )
    }
    const linked = await client.images.generate({ model: IMAGE_MODEL, prompt: PROMPT, response_format: 'url' })
    assert.match(linked.data?.[0]?.url ?? '', /^https:/)
    await assert.rejects(
      client.images.generate({ model: IMAGE_MODEL, prompt: PROMPT, stream: true, partial_images: 2 }),
      (error) => error instanceof OpenAI.BadRequestError && /"stream" is not supported/.test(error.message),
    )
  })

  it('passes the request on byte for byte', async () => {
    const customer = await buyer()
    const body = `{ "prompt":"\\u0061", "model" : "${IMAGE_MODEL}", "background":"opaque", "n": 1 }`
    const told = await ask(url, customer.secret, PATH, { body })
    assert.equal(told.status, 200)
    const [entry] = (await sandbox.journal()).filter(({ request_id }) => request_id === told.id)
    assert.deepEqual([entry?.path, entry?.body_bytes], ['/openai/v1/images/generations', body.length])
  })

  it('MODEL-2 MODEL-6 refuses by name what it can not price, and asks nobody', async () => {
    const customer = await buyer()
    const before = (await sandbox.journal()).length
    for (const [members, says] of [
      [{ stream: true }, /"stream" is not supported/],
      [{ partial_images: 1 }, /"partial_images" is not supported/],
      [{ steps: 50 }, /"steps" is not supported: it may change the price of an image/],
      [{ N: 2 }, /"N" is not supported in this spelling. Write it "n"/],
      [{ n: 11 }, /"n" must be a whole number from 1 to 10/],
      [{ prompt: '' }, /"prompt"/],
      [{ size: 1_024 }, /"size"/],
      [
        { size: '4096x4096', quality: 'high' },
        /"4096x4096\/high" .* has no price. Use one of these: .*1024x1024\/high/,
      ],
      [{ quality: 'high' }, /"auto\/high" .* has no price/],
      [{ size: '1024x1024/high' }, /"1024x1024\/high\/auto" .* has no price/],
    ] as const) {
      const told = await draw(customer, members)
      assert.deepEqual([told.status, errorOf(told).type], [400, 'invalid_request_error'], told.text)
      assert.match(String(errorOf(told).message), says)
    }
    assert.equal((await sandbox.journal()).length, before)
  })

  it('says where a model is served instead', async () => {
    const customer = await buyer()
    const body = { model: IMAGE_MODEL, messages: [{ role: 'user', content: 'a' }] }
    const told = await ask(url, customer.secret, '/v1/chat/completions', { body })
    assert.equal(told.status, 404)
    assert.match(String(errorOf(told).message), /It is served at \/v1\/images\/generations\./)
  })

  it('LIMIT-3 is 30 requests a minute for a key, over all processes; what else the key calls is not concerned', async () => {
    const customer = await buyer()
    const told = await Promise.all(
      Array.from({ length: 40 }, (_, at) =>
        ask(gateways[at % 2]?.url ?? '', customer.secret, PATH, { body: { model: IMAGE_MODEL, prompt: PROMPT } }),
      ),
    )
    assert.equal(told.filter(({ status }) => status === 200).length, 30)
    const refused = told.filter(({ status }) => status === 429)
    assert.equal(refused.length, 10)
    for (const one of refused) {
      assert.deepEqual([errorOf(one).type, errorOf(one).code], ['rate_limit_error', 'rate_limit_exceeded'])
      assert.match(String(errorOf(one).message), /endpoint: 30 requests per 60 seconds/)
      assert.match(String(one.headers.get('retry-after')), /^[1-9]\d?$/)
      assert.equal(one.costUsd, null)
    }
    assert.equal((await usageOf(url, customer.secret)).requests, 30)
    const text = { model: 'sandbox/text', messages: [{ role: 'user', content: 'a' }] }
    assert.equal((await ask(url, customer.secret, '/v1/chat/completions', { body: text })).status, 200)
    assert.equal((await draw(await buyer())).status, 200)
  })
})

describe('pictures by the piece', () => {
  for (const [kind, price] of Object.entries(IMAGE_PRICES))
    it(`cost ${price} USD each as ${kind}, as many as come`, async () => {
      const customer = await buyer()
      let charged = 0n
      for (const n of [undefined, 1, 2, 7, 10]) {
        const told = await draw(customer, { ...kindOf(kind), ...(n !== undefined && { n }) })
        const count = n ?? 1
        const cost = usd(price) * BigInt(count)
        charged += cost
        assert.deepEqual([told.status, picturesIn(told), told.costUsd], [200, count, usdOf(cost)])
        const { tokens, formula, evidence, costUsd } = await recordOf(url, customer.secret, told.id)
        assert.equal(costUsd, told.costUsd)
        assert.equal(formula, `${count} ${kind} image${count === 1 ? '' : 's'} × ${price} USD`)
        assert.deepEqual(evidence, { units: String(count) })
        assert.deepEqual(tokens, { input: 0, output: 0, cache_read: 0, cache_write: 0 })
      }
      const { requests, charged_micros_usd, usage_value_micros_usd } = await usageOf(url, customer.secret)
      assert.deepEqual([requests, charged_micros_usd], [5, Number(charged / 1_000n)])
      assert.equal(usage_value_micros_usd, charged_micros_usd)
    })

  it('say auto where the request does, or where it says nothing', async () => {
    const customer = await buyer()
    for (const members of [{}, { size: 'auto' }, { quality: 'auto', size: null }, { size: 'auto', quality: 'auto' }])
      assert.equal((await draw(customer, members)).costUsd, '0.042000000')
  })

  it('are charged as many as were asked for where more come, and the rest is our loss; where fewer come, those', async () => {
    const customer = await buyer()
    const price = usd(IMAGE_PRICES['auto/auto'])
    for (const [asked, came] of [
      [2, 5],
      [1, 100],
      [3, 1],
      [3, 0],
    ] as const) {
      const told = await draw(customer, { n: asked, prompt: `sandbox:images=${came}` })
      assert.deepEqual([told.status, picturesIn(told)], [200, came])
      const charged = price * BigInt(Math.min(asked, came))
      assert.equal(told.costUsd, usdOf(charged))
      const row = await rowOf(pool, told.id)
      assert.deepEqual([row?.amount, row?.overrun], [charged, price * BigInt(Math.max(0, came - asked))])
    }
  })

  it('cost nothing where none come: errors, and nothing at all', async () => {
    const customer = await buyer()
    for (const [directive, status] of [
      ['status=500', 500],
      ['status=400', 400],
      ['empty', 200],
      ['images=0', 200],
      ['reset=in-body', 502],
    ] as const) {
      const told = await draw(customer, { prompt: `sandbox:${directive}` })
      assert.deepEqual([told.status, told.costUsd], [status, '0.000000000'], directive)
    }
  })

  it('cost the hold where the answer can not be read: all that were asked for may be in it', async () => {
    const customer = await buyer()
    const told = await draw(customer, { n: 2, prompt: 'sandbox:garbage' })
    assert.deepEqual([told.status, told.costUsd], [200, '0.084000000'])
    assert.equal((await rowOf(pool, told.id))?.overrun, 0n)
  })

  it('are the same whatever usage the upstream reports', async () => {
    const customer = await buyer()
    for (const directive of ['no-usage', 'usage=null', 'output-tokens=999999', 'usage=-5'])
      assert.equal((await draw(customer, { prompt: `sandbox:${directive}` })).costUsd, '0.042000000', directive)
  })

  it('can be quoted: the most is what all of them cost, and a quote is kept when prices rise', async () => {
    const model = 'maker/rising'
    await saveModel({ pool }, { id: model, contextWindow: 1_000, outputCap: 1, outputMost: 1 })
    await saveRoute({ pool, ids }, { model, slot: 'openai', protocol: 'openai_images' })
    await setModelPrice({ pool }, { model, images: { 'auto/auto': '0.01', '1024x1024/high': '0.0333333333333' } })
    const customer = await buyer()
    const quote = await draw(customer, { model, n: 3, ...kindOf('1024x1024/high') }, MODE)
    assert.equal(quote.status, 200, quote.text)
    // Rounded once: what is expected to the nearest, the most upwards.
    assert.deepEqual([Object(quote.json.expected).usd, Object(quote.json.max).usd], ['0.100000000', '0.100000000'])
    assert.deepEqual([quote.json.exact, quote.json.price_version], [false, '1'])
    await setModelPrice({ pool }, { model, images: { '1024x1024/high': '9' } })
    await until(async () => (await draw(customer, { model })).status === 400, PATIENCE_MS, 'the new price')
    const headers = { 'x-farebox-quote-id': String(quote.json.quote_id) }
    const told = await draw(customer, { model, n: 3, ...kindOf('1024x1024/high') }, headers)
    assert.deepEqual([told.status, told.costUsd], [200, '0.100000000'], told.text)
    assert.equal(told.headers.get('x-farebox-price-version'), '1')
    assert.equal((await draw(customer, { model, ...kindOf('1024x1024/high') })).costUsd, '9.000000000')
  })

  it('hold what all that are asked for cost: an account that has less is refused', async () => {
    const customer = await buyer(100_000_000n)
    const told = await draw(customer, { n: 3 })
    assert.deepEqual([told.status, errorOf(told).code], [402, 'insufficient_balance'])
    assert.deepEqual([errorOf(told).needed_usd, errorOf(told).left_usd], ['0.126000000', '0.100000000'])
    assert.match(String(errorOf(told).message), /What costs is n: 3\. This call fits with at most 2\./)
    assert.equal((await draw(customer, { n: 2 })).status, 200)
  })

  it('trap: a model without a known price is served free: one that is sold by the piece can not be asked for words', async () => {
    const model = 'maker/both'
    await saveModel({ pool }, { id: model, contextWindow: 1_000, outputCap: 10, outputMost: 10 })
    await saveRoute({ pool, ids }, { model, slot: 'openai', protocol: 'openai', upstreamModel: 'sandbox/text' })
    await setModelPrice({ pool }, { model, images: { 'auto/auto': '0.01' } })
    const before = (await sandbox.journal()).length
    const { secret } = await buyer()
    const body = { model, messages: [{ role: 'user', content: 'a' }] }
    const told = await ask(url, secret, '/v1/chat/completions', { body })
    assert.deepEqual([told.status, errorOf(told).code], [503, 'invalid_billing_configuration'], told.text)
    assert.equal((await sandbox.journal()).length, before)
  })
})

describe('pictures by the token', () => {
  const INPUT = 5_000n
  const OUTPUT = 40_000n
  const inputTokens = Math.ceil(PROMPT.length / 3)

  for (const size of ['1024x1024', '1536x1024', 'auto'])
    for (const quality of ['low', 'medium', 'high', 'auto'])
      it(`cost what the upstream reports: ${size}, ${quality}`, async () => {
        const customer = await buyer()
        for (const n of [1, 3]) {
          const told = await draw(customer, { model: IMAGE_TOKENS_MODEL, size, quality, n })
          const outputTokens = n * pictureTokens(size, quality)
          const cost = BigInt(inputTokens) * INPUT + BigInt(outputTokens) * OUTPUT
          assert.deepEqual([told.status, picturesIn(told), told.costUsd], [200, n, usdOf(cost)])
          const { tokens, formula, evidence, costUsd } = await recordOf(url, customer.secret, told.id)
          assert.equal(costUsd, told.costUsd)
          assert.deepEqual(tokens, { input: inputTokens, output: outputTokens, cache_read: 0, cache_write: 0 })
          assert.equal(
            formula,
            `${inputTokens} input tokens × 0.000005 USD + ${outputTokens} output tokens × 0.00004 USD`,
          )
          assert.equal(evidence.usage_source, 'provider')
        }
        const { input_tokens, output_tokens } = await usageOf(url, customer.secret)
        assert.deepEqual([input_tokens, output_tokens], [2 * inputTokens, 4 * pictureTokens(size, quality)])
      })

  it('hold as many tokens for each as the model declares, and no cap is sent or told', async () => {
    const customer = await buyer()
    const quote = await draw(customer, { model: IMAGE_TOKENS_MODEL, n: 4 }, MODE)
    const most = usd(Object(quote.json.max).usd)
    const output = 4n * 6_240n * OUTPUT
    assert.ok(most > output && most < output + 1_000n * INPUT, `${most}`)
    assert.ok(usd(Object(quote.json.expected).usd) > output)
    const told = await draw(customer, { model: IMAGE_TOKENS_MODEL, n: 4 })
    assert.equal(told.headers.get('x-farebox-output-cap'), null)
    const more = await draw(customer, { model: IMAGE_TOKENS_MODEL, prompt: 'sandbox:output-tokens=100000' })
    const row = await rowOf(pool, more.id)
    const held = usd(
      Object(
        (await draw(customer, { model: IMAGE_TOKENS_MODEL, prompt: 'sandbox:output-tokens=100000' }, MODE)).json.max,
      ).usd,
    )
    assert.equal(row?.amount, held)
    assert.ok((row?.overrun ?? 0n) > 90_000n * OUTPUT)
  })

  it('cost the hold where the upstream reports nothing, or can not be read: nobody can count a picture', async () => {
    const customer = await buyer()
    for (const directive of ['no-usage', 'usage=null', 'usage=string', 'garbage']) {
      const members = { model: IMAGE_TOKENS_MODEL, prompt: `sandbox:${directive}` }
      const quote = await draw(customer, members, MODE)
      const told = await draw(customer, members)
      const row = await rowOf(pool, told.id)
      assert.deepEqual([told.status, told.costUsd], [200, Object(quote.json.max).usd], directive)
      assert.deepEqual([row?.outcome, row?.overrun], ['posted', 0n])
    }
  })

  it('may have any size and quality that the upstream takes', async () => {
    const customer = await buyer()
    const told = await draw(customer, { model: IMAGE_TOKENS_MODEL, size: '9x9', quality: 'odd' })
    assert.equal(told.status, 200)
  })

  it('leave a ledger that adds up', async () => {
    assert.deepEqual(await verifyLedger(pool), [])
  })
})

import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import OpenAI from 'openai'
import { EMBEDDING_MODEL } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { embeddingTokens } from '../../../sandbox/src/upstreams/models/openai-embeddings.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { ask, errorOf, makeCustomer, startInstallation } from '../installation.ts'
import { recordOf, rowOf, usageOf, usdOf } from './kept.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)
const customer = await makeCustomer(pool)

const PRICE = 100n
/** Around each input. */
const OVERHEAD = 16n
const client = new OpenAI({ apiKey: customer.secret, baseURL: `${url}/v1`, maxRetries: 0 })
const embed = (members: Record<string, unknown>, headers: Record<string, string> = {}, secret = customer.secret) =>
  ask(url, secret, '/v1/embeddings', { body: { model: EMBEDDING_MODEL, ...members }, headers })

type Input = string | string[] | number[] | number[][]
/** Every form that the protocol has, with its inputs. */
const FORMS: Readonly<Record<string, readonly [input: Input, inputs: readonly (string | readonly number[])[]]>> = {
  'a text': ['a short story', ['a short story']],
  'several texts': [
    ['a', 'short', 'story — ünd more'],
    ['a', 'short', 'story — ünd more'],
  ],
  'the tokens of a text': [[5, 60, 700], [[5, 60, 700]]],
  'the tokens of several': [
    [[5, 60], [7]],
    [[5, 60], [7]],
  ],
}

async function asked(id: string) {
  return (await sandbox.journal()).filter(({ request_id }) => request_id === id)
}

describe('POST /v1/embeddings', () => {
  for (const [form, [input, inputs]] of Object.entries(FORMS)) {
    it(`MODEL-1 gives the official SDK a vector for each input: ${form}`, async () => {
      const { data: answer, response } = await client.embeddings
        .create({ model: EMBEDDING_MODEL, input, dimensions: 5 })
        .withResponse()
      assert.deepEqual(
        answer.data.map(({ index, embedding }) => [index, embedding.length]),
        inputs.map((_, index) => [index, 5]),
      )
      const tokens = embeddingTokens(inputs)
      assert.equal(answer.usage.prompt_tokens, tokens)
      assert.equal(response.headers.get('x-farebox-cost-usd'), usdOf(BigInt(tokens) * PRICE))
      // By itself the SDK asks for base64 and decodes it; where told, it takes the numbers as they are.
      const plain = await client.embeddings.create({
        model: EMBEDDING_MODEL,
        input,
        dimensions: 5,
        encoding_format: 'float',
      })
      assert.deepEqual(
        plain.data.map(({ embedding }) => embedding),
        answer.data.map(({ embedding }) => embedding),
      )
    })

    it(`MODEL-3 costs the tokens that the upstream reports, wherever it is looked up: ${form}`, async () => {
      const { secret } = await makeCustomer(pool)
      const tokens = embeddingTokens(inputs)
      const told = await embed({ input }, {}, secret)
      assert.deepEqual([told.status, told.costUsd], [200, usdOf(BigInt(tokens) * PRICE)])
      assert.deepEqual(await recordOf(url, secret, told.id), {
        costUsd: told.costUsd,
        failed: false,
        tokens: { input: tokens, output: 0, cache_read: 0, cache_write: 0 },
        formula: `${tokens} input token${tokens === 1 ? '' : 's'} × 0.0000001 USD`,
        evidence: {
          inputTokens: tokens,
          outputTokens: 0,
          cacheReadTokens: 0,
          cacheWriteTokens: 0,
          usage_source: 'provider',
        },
      })
      const { requests, input_tokens, output_tokens } = await usageOf(url, secret)
      assert.deepEqual([requests, input_tokens, output_tokens], [1, tokens, 0])
    })

    it(`MODEL-3 costs what is counted where the upstream reports nothing: ${form}`, async () => {
      // By the model's tokenizer: a byte in three of the texts, with a line between them; one for each id.
      const text = inputs.every((one) => typeof one === 'string') ? inputs.join('\n') : undefined
      const tokens = text === undefined ? inputs.flat().length : Math.ceil(Buffer.byteLength(text) / 3)
      await sandbox.fault('openai', ['no-usage'])
      const told = await embed({ input })
      assert.deepEqual([told.status, told.json.usage], [200, undefined])
      assert.equal(told.costUsd, usdOf(BigInt(tokens) * PRICE))
      const { evidence } = await recordOf(url, customer.secret, told.id)
      assert.deepEqual([evidence.inputTokens, evidence.usage_source], [tokens, 'counted'])
    })
  }

  it('MODEL-1 shows the official SDK the models that it can ask', async () => {
    const ids: string[] = []
    for await (const { id } of client.models.list()) ids.push(id)
    assert.ok(ids.includes(EMBEDDING_MODEL))
  })

  it('passes the request on byte for byte', async () => {
    const body = `{ "input":["\\u0061"], "model" : "${EMBEDDING_MODEL}", "user":"u", "dimensions": null }`
    const told = await ask(url, customer.secret, '/v1/embeddings', { body })
    assert.equal(told.status, 200)
    const [entry] = await asked(told.id)
    assert.deepEqual([entry?.path, entry?.body_bytes], ['/openai/v1/embeddings', body.length])
  })

  it('holds for each input its bytes within the context window, which is what a quote and a cap go by', async () => {
    for (const [input, most] of [
      ['abc', 3n + OVERHEAD],
      [['abc', 'é'], 5n + 2n * OVERHEAD],
      [[1, 2, 3], 3n + OVERHEAD],
      [['a'.repeat(20_000), 'b'.repeat(20_000), 'c'], 2n * 8_192n + 1n + OVERHEAD],
    ] as const) {
      const quote = await embed({ input }, { 'x-farebox-cost-mode': 'quote' })
      assert.equal(quote.status, 200)
      assert.deepEqual([Object(quote.json.max).usd, quote.json.exact], [usdOf(most * PRICE), false])
      const below = { 'x-farebox-max-cost-usd': usdOf(most * PRICE - 1n) }
      assert.equal(errorOf(await embed({ input }, below)).code, 'cost_cap_exceeded')
      const at = await embed(
        { input },
        { 'x-farebox-max-cost-usd': usdOf(most * PRICE), 'x-farebox-quote-id': String(quote.json.quote_id) },
      )
      assert.equal(at.status, 200, at.text)
    }
  })

  it('counts tokens against the minute of its key', async () => {
    const told = await embed({ input: 'a'.repeat(300) })
    const left = Number(told.headers.get('x-ratelimit-remaining-tokens'))
    assert.ok(left < 1_000_000_000, `${left}`)
  })

  it('charges what was sent, as counted, for an answer that can not be read: it was handed over', async () => {
    const input = 'sandbox:garbage'
    const told = await embed({ input })
    const counted = BigInt(Math.ceil(input.length / 3)) * PRICE
    const row = await rowOf(pool, told.id)
    assert.deepEqual([told.status, told.costUsd], [200, usdOf(counted)])
    assert.deepEqual([row?.outcome, row?.amount, row?.overrun], ['posted', counted, 0n])
  })

  it('charges nothing for an empty answer, and our loss is the most that it can have cost', async () => {
    const told = await embed({ input: 'sandbox:empty' })
    const row = await rowOf(pool, told.id)
    assert.deepEqual([told.costUsd, row?.outcome, row?.amount], ['0.000000000', 'voided', 0n])
    assert.ok((row?.overrun ?? 0n) > 0n)
  })

  it('charges the hold and no more where the upstream claims more than the input can have', async () => {
    const input = 'sandbox:input-tokens=500'
    const told = await embed({ input })
    const most = (BigInt(input.length) + OVERHEAD) * PRICE
    assert.equal(told.costUsd, usdOf(most))
    assert.equal((await rowOf(pool, told.id))?.overrun, 500n * PRICE - most)
  })

  it('passes on what the upstream refuses, unpaid', async () => {
    const told = await embed({ input: '' })
    assert.deepEqual([told.status, told.costUsd, errorOf(told).param], [400, '0.000000000', 'input'])
  })

  it('MODEL-2 MODEL-6 refuses by name what it can not take, and asks nobody', async () => {
    const before = (await sandbox.journal()).length
    for (const [members, says] of [
      [{}, /"input" must be/],
      [{ input: [] }, /"input" must be/],
      [{ input: ['a', 1] }, /"input" must have/],
      [{ input: Array.from({ length: 2_049 }, () => 'a') }, /2049 inputs; the limit is 2048/],
      [{ input: 'a', stream: true }, /"stream"/],
      [{ input: 'a', service_tier: 'priority' }, /"service_tier"/],
      [{ input: 'a', model: 5 }, /"model"/],
    ] as const) {
      const told = await embed(members)
      assert.deepEqual([told.status, errorOf(told).type], [400, 'invalid_request_error'], told.text)
      assert.match(String(errorOf(told).message), says)
    }
    assert.equal((await sandbox.journal()).length, before)
  })

  it('says where a model is served instead', async () => {
    const talker = await embed({ input: 'a', model: 'sandbox/text' })
    assert.equal(talker.status, 404)
    assert.match(String(errorOf(talker).message), /is not served at \/v1\/embeddings\. It is served at .*\/v1\/chat/)
    const messages = [{ role: 'user', content: 'a' }]
    const asTalker = await ask(url, customer.secret, '/v1/chat/completions', {
      body: { model: EMBEDDING_MODEL, messages },
    })
    assert.equal(asTalker.status, 404)
    assert.match(String(errorOf(asTalker).message), /It is served at \/v1\/embeddings and \/v1beta/)
  })

  it('leaves a ledger that adds up', async () => {
    assert.deepEqual(await verifyLedger(pool), [])
  })
})

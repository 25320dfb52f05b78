import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { embedMany, embed as embedOne } from 'ai'
import { EMBEDDING_MODEL, SANDBOX_PRICE } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { inputTokens } from '../../../sandbox/src/upstreams/models/tokens.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { saveModel, saveRoute, setModelPrice } from '../../../server/src/pricing/configure-models.ts'
import { ask, errorOf, ids, makeCustomer, startInstallation } from '../installation.ts'
import { recordOf, rowOf, usageOf, usdOf } from './kept.ts'
import { connectGemini } from './sdk-gemini.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)
const customer = await makeCustomer(pool)

const PRICE = 100n
/** Around each request, and around each of its texts. */
const OVERHEAD = 36n
const ONE = `/v1beta/models/${EMBEDDING_MODEL}:embedContent`
const MANY = `/v1beta/models/${EMBEDDING_MODEL}:batchEmbedContents`
const saying = (text: string) => ({ content: { parts: [{ text }] } })
const tell = (path: string, body: unknown, headers: Record<string, string> = {}, secret = customer.secret) =>
  ask(url, secret, path, { body, headers })

const FORMS: Readonly<Record<string, readonly [path: string, body: object, texts: readonly string[]]>> = {
  embedContent: [ONE, saying('a short story — ünd more'), ['a short story — ünd more']],
  batchEmbedContents: [MANY, { requests: [saying('a'), saying('short story')] }, ['a', 'short story']],
  'a name of the model in each request': [
    MANY,
    { requests: [{ model: `models/${EMBEDDING_MODEL}`, ...saying('a') }] },
    ['a'],
  ],
}

async function asked(id: string) {
  return (await sandbox.journal()).filter(({ request_id }) => request_id === id)
}

describe('MODEL-1 vectors by the libraries of the protocol', () => {
  it('gives the official SDK one for each content', async () => {
    const { embeddings = [] } = await connectGemini({ url, secret: customer.secret }).models.embedContent({
      model: EMBEDDING_MODEL,
      contents: ['one', 'two'],
      config: { outputDimensionality: 5, taskType: 'CLUSTERING' },
    })
    assert.deepEqual(
      embeddings.map(({ values }) => values?.length),
      [5, 5],
    )
  })

  it('gives the AI SDK one, or several', async () => {
    const google = createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey: customer.secret })
    const model = google.embedding(EMBEDDING_MODEL)
    const { embedding } = await embedOne({ model, value: 'one' })
    const { embeddings } = await embedMany({ model, values: ['one', 'two'] })
    assert.deepEqual(embeddings[0], embedding)
    assert.equal(embeddings.length, 2)
  })
})

describe('POST /v1beta/models/{model}:embedContent and :batchEmbedContents', () => {
  for (const [form, [path, body, texts]] of Object.entries(FORMS)) {
    it(`MODEL-3 costs the tokens that the upstream reports, wherever it is looked up: ${form}`, async () => {
      const { secret } = await makeCustomer(pool)
      const tokens = inputTokens(texts)
      const told = await tell(path, body, {}, secret)
      assert.deepEqual([told.status, told.costUsd], [200, usdOf(BigInt(tokens) * PRICE)])
      const { costUsd, evidence } = await recordOf(url, secret, told.id)
      assert.deepEqual(
        [costUsd, evidence.inputTokens, evidence.outputTokens, evidence.usage_source],
        [told.costUsd, tokens, 0, 'provider'],
      )
      const { requests, input_tokens, output_tokens } = await usageOf(url, secret)
      assert.deepEqual([requests, input_tokens, output_tokens], [1, tokens, 0])
    })

    it(`MODEL-3 costs what is counted where the upstream reports nothing, as older models do: ${form}`, async () => {
      const tokens = Math.ceil(Buffer.byteLength(texts.join('\n')) / 3)
      await sandbox.fault('gemini', ['no-usage'])
      const told = await tell(path, body)
      assert.deepEqual([told.status, told.json.usageMetadata], [200, undefined])
      assert.equal(told.costUsd, usdOf(BigInt(tokens) * PRICE))
      const { evidence } = await recordOf(url, customer.secret, told.id)
      assert.deepEqual([evidence.inputTokens, evidence.usage_source], [tokens, 'counted'])
    })
  }

  it('MODEL-3 costs what the upstream reports, however large the vectors are', async () => {
    const requests = Array.from({ length: 100 }, () => ({ ...saying('abc'), outputDimensionality: 768 }))
    const told = await tell(MANY, { requests })
    assert.ok(told.text.length > 1_048_576, 'more than is parsed as a whole')
    assert.deepEqual([told.status, told.costUsd], [200, usdOf(BigInt(inputTokens(requests.map(() => 'abc'))) * PRICE)])
  })

  it('MODEL-3 counts of each text no more than the context window, which it has for itself, and loses nothing', async () => {
    await sandbox.fault('gemini', ['no-usage'])
    const told = await tell(MANY, { requests: [saying('a '.repeat(45_000)), saying('b'.repeat(6_000)), saying('c')] })
    const tokens = 8_192 + Math.ceil((6_000 + 1 + 1) / 3)
    assert.deepEqual([told.status, told.costUsd], [200, usdOf(BigInt(tokens) * PRICE)])
    assert.equal((await rowOf(pool, told.id))?.overrun, 0n)
  })

  it('takes the slash of a model’s name encoded or not, and knows no other action', async () => {
    for (const name of [EMBEDDING_MODEL, encodeURIComponent(EMBEDDING_MODEL)]) {
      for (const [action, body] of [
        ['embedContent', saying('a')],
        ['batchEmbedContents', { requests: [saying('a')] }],
      ] as const) {
        const told = await tell(`/v1beta/models/${name}:${action}`, body)
        assert.equal(told.status, 200, told.text)
        const [entry] = await asked(told.id)
        assert.equal(entry?.path, `/gemini/v1beta/models/${EMBEDDING_MODEL}:${action}`)
      }
    }
    assert.equal((await tell(`/v1beta/models/${EMBEDDING_MODEL}:asyncBatchEmbedContent`, {})).status, 404)
  })

  it('asks an upstream for the name that it has for the model, in the path and in every request', async () => {
    const model = 'maker/vectors'
    await saveModel({ pool }, { id: model, contextWindow: 8_192, outputCap: 1, outputMost: 1, tokenizer: 'bytes_3' })
    const route = { slot: 'gemini', protocol: 'gemini_embeddings', upstreamModel: 'sandbox/embedding' } as const
    await saveRoute({ pool, ids }, { model, ...route })
    await setModelPrice({ pool }, { model, ...SANDBOX_PRICE })
    for (const named of [`models/${model}`, 'models/another']) {
      // The sandbox refuses a request for another model than that of the path, as the vendor does.
      const requests = [{ model: named, ...saying('a') }, saying('b')]
      const told = await tell(`/v1beta/models/${model}:batchEmbedContents`, { requests })
      assert.equal(told.status, 200, told.text)
      assert.equal((await asked(told.id))[0]?.model, 'sandbox/embedding')
      const one = await tell(`/v1beta/models/${model}:embedContent`, { model: named, ...saying('a') })
      assert.equal(one.status, 200, one.text)
    }
  })

  it('holds for each request its bytes within the context window, which is what a quote and a cap go by', async () => {
    for (const [path, body, most] of [
      [ONE, saying('abc'), 3n + OVERHEAD],
      [MANY, { requests: [saying('abc'), saying('é')] }, 5n + 2n * OVERHEAD],
      [MANY, { requests: [saying('a'.repeat(20_000)), saying('c')] }, 8_192n + 1n + OVERHEAD],
    ] as const) {
      const quote = await tell(path, body, { 'x-farebox-cost-mode': 'quote' })
      assert.deepEqual([quote.status, Object(quote.json.max).usd], [200, usdOf(most * PRICE)], quote.text)
      const below = await tell(path, body, { 'x-farebox-max-cost-usd': usdOf(most * PRICE - 1n) })
      assert.equal(below.status, 402, below.text)
      const at = await tell(path, body, { 'x-farebox-max-cost-usd': usdOf(most * PRICE) })
      assert.equal(at.status, 200, at.text)
    }
  })

  it('charges the hold and no more where the upstream claims more than the input can have', async () => {
    const text = 'sandbox:input-tokens=500'
    const told = await tell(ONE, saying(text))
    const most = (BigInt(text.length) + OVERHEAD) * PRICE
    assert.equal(told.costUsd, usdOf(most))
    assert.equal((await rowOf(pool, told.id))?.overrun, 500n * PRICE - most)
  })

  it('charges what was sent, as counted, for an answer that can not be read, and nothing for an empty one', async () => {
    const text = 'sandbox:garbage'
    const garbled = await tell(ONE, saying(text))
    const counted = BigInt(Math.ceil(text.length / 3)) * PRICE
    assert.deepEqual([garbled.status, garbled.costUsd], [200, usdOf(counted)])
    const empty = await tell(ONE, saying('sandbox:empty'))
    const row = await rowOf(pool, empty.id)
    assert.deepEqual([empty.costUsd, row?.outcome, row?.amount], ['0.000000000', 'voided', 0n])
  })

  it('passes on what the upstream refuses, unpaid', async () => {
    const told = await tell(ONE, saying(''))
    assert.deepEqual([told.status, told.costUsd, errorOf(told).status], [400, '0.000000000', 'INVALID_ARGUMENT'])
  })

  it('MODEL-2 MODEL-6 refuses by name what it can not take, and asks nobody', async () => {
    const before = (await sandbox.journal()).length
    for (const [path, body, says] of [
      [ONE, {}, /"content" must be/],
      [MANY, { requests: [] }, /"requests" must be/],
      [MANY, saying('a'), /"requests" must be/],
      [MANY, { model: 'models/another', requests: [saying('a')] }, /"model"/],
      [ONE, { content: { parts: [{ inlineData: { mimeType: 'image/png', data: 'AA' } }] } }, /only texts/],
      [ONE, { ...saying('a'), serviceTier: 'priority' }, /serviceTier/],
    ] as const) {
      const told = await tell(path, body)
      assert.equal(told.status, 400, told.text)
      assert.match(String(errorOf(told).message), says)
    }
    assert.equal((await sandbox.journal()).length, before)
  })

  it('says where a model is served instead', async () => {
    const talker = await tell('/v1beta/models/sandbox/text:embedContent', saying('a'))
    assert.equal(talker.status, 404)
    assert.match(String(errorOf(talker).message), /is not served at .*:embedContent\. It is served at /)
    const asTalker = await tell(`/v1beta/models/${EMBEDDING_MODEL}:generateContent`, {
      contents: [saying('a').content],
    })
    assert.equal(asTalker.status, 404)
    assert.match(String(errorOf(asTalker).message), /It is served at .*:embedContent/)
  })

  it('is in the list of models with its actions', async () => {
    const told = await ask(url, customer.secret, `/v1beta/models/${EMBEDDING_MODEL}`)
    assert.deepEqual(told.json.supportedGenerationMethods, ['embedContent', 'batchEmbedContents'])
  })

  it('leaves a ledger that adds up', async () => {
    assert.deepEqual(await verifyLedger(pool), [])
  })
})

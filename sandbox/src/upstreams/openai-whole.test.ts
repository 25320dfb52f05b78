import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { ASK, startTestSandbox, type TestSandbox } from '../test-sandbox.ts'
import { embeddingTokens } from './models/openai-embeddings.ts'
import { pictureTokens } from './models/openai-images.ts'

let sandbox: TestSandbox
before(async () => {
  sandbox = await startTestSandbox()
})
after(() => sandbox.stop())

const { headers } = ASK.openai
const embed = (body: unknown) => sandbox.ask({ path: '/openai/v1/embeddings', headers, body })
const draw = (body: unknown) => sandbox.ask({ path: '/openai/v1/images/generations', headers, body })

describe('embeddings of the sandbox', () => {
  it('are a vector of length 1 for each input, the same in both encodings, by the input alone', async () => {
    const input = ['a', 'b']
    const plain = (await embed({ model: 'm', input, dimensions: 6 })).json()
    const encoded = (await embed({ model: 'm', input, dimensions: 6, encoding_format: 'base64' })).json()
    for (const [at, { index, embedding }] of plain.data.entries()) {
      assert.equal(index, at)
      assert.ok(Math.abs(Math.hypot(...embedding) - 1) < 1e-6)
      const bytes = Buffer.from(encoded.data[at].embedding, 'base64')
      assert.deepEqual(
        Array.from({ length: 6 }, (_, place) => bytes.readFloatLE(place * 4)),
        embedding,
      )
    }
    const [alone] = (await embed({ model: 'm', input: 'b', dimensions: 6 })).json().data
    assert.deepEqual(alone.embedding, plain.data[1].embedding)
    assert.notDeepEqual(plain.data[0].embedding, plain.data[1].embedding)
  })

  it('count a byte in three of all texts together, and one for each id', async () => {
    for (const [input, tokens] of [
      ['abcd', 2],
      [['abcd', 'é'], 2],
      [[1, 2, 3], 3],
      [[[1, 2], [3]], 3],
    ] as const) {
      assert.deepEqual((await embed({ model: 'm', input })).json().usage, {
        prompt_tokens: tokens,
        total_tokens: tokens,
      })
      const inputs = typeof input === 'string' || typeof input[0] === 'number' ? [input] : input
      assert.equal(embeddingTokens(inputs as string[]), tokens)
    }
  })

  it('take the directives of models, and names that decide how it goes', async () => {
    assert.equal((await embed({ model: 'm', input: 'sandbox:no-usage' })).json().usage, undefined)
    assert.equal((await embed({ model: 'm', input: 'sandbox:input-tokens=9' })).json().usage.prompt_tokens, 9)
    assert.equal((await embed({ model: 'sandbox/429', input: 'a' })).status, 429)
    assert.equal((await embed({ model: 'sandbox/zero-usage', input: 'a' })).json().usage.prompt_tokens, 0)
    const { model, input_tokens, billed, tokens } = (await sandbox.journal()).at(-4) ?? assert.fail()
    assert.deepEqual([model, input_tokens, billed, tokens], ['m', 6, true, 0])
  })

  it('refuse what the vendor does', async () => {
    for (const [members, param] of [
      [{ input: '' }, 'input'],
      [{ input: [] }, 'input'],
      [{ input: ['a', 1] }, 'input'],
      [{ input: 'a', dimensions: 0 }, 'dimensions'],
      [{ input: 'a', encoding_format: 'x' }, 'encoding_format'],
      [{ input: 'a', model: '' }, 'model'],
    ] as const) {
      const refused = await embed({ model: 'm', ...members })
      assert.deepEqual([refused.status, refused.json().error.param], [400, param])
    }
  })
})

describe('pictures of the sandbox', () => {
  it('are as many as are asked for, each a PNG of its own, or an address', async () => {
    const { data } = (await draw({ model: 'm', prompt: 'a fox', n: 3 })).json()
    const pictures = data.map(({ b64_json }: { b64_json: string }) => b64_json)
    assert.equal(new Set(pictures).size, 3)
    for (const picture of pictures) {
      const bytes = Buffer.from(picture, 'base64')
      assert.equal(bytes.subarray(0, 8).toString('hex'), '89504e470d0a1a0a')
      assert.equal(bytes.subarray(-8, -4).toString(), 'IEND')
    }
    const linked = (await draw({ model: 'm', prompt: 'a fox', response_format: 'url' })).json()
    assert.match(linked.data[0].url, /^https:\/\/pictures\.invalid\/[0-9a-f]{32}\.png$/)
  })

  it('count by quality, half as much again where they are no square of 1024, and the prompt a byte in three', async () => {
    for (const [members, tokens] of [
      [{}, 1_056],
      [{ quality: 'low' }, 272],
      [{ quality: 'high', n: 2 }, 8_320],
      [{ quality: 'high', size: '1024x1024' }, 4_160],
      [{ quality: 'low', size: '1536x1024' }, 408],
    ] as const) {
      const { usage } = (await draw({ model: 'm', prompt: 'abcd', ...members })).json()
      assert.deepEqual(usage, {
        input_tokens: 2,
        output_tokens: tokens,
        total_tokens: tokens + 2,
        input_tokens_details: { text_tokens: 2, image_tokens: 0 },
      })
    }
    assert.equal(pictureTokens('1536x1024', 'medium'), 1_584)
  })

  it('are as many as a directive says', async () => {
    for (const count of [0, 5]) {
      const { data, usage } = (await draw({ model: 'm', prompt: `sandbox:images=${count}`, n: 2 })).json()
      assert.deepEqual([data.length, usage.output_tokens], [count, count * 1_056])
    }
    assert.equal((await draw({ model: 'm', prompt: 'sandbox:output-tokens=7' })).json().usage.output_tokens, 7)
    assert.equal((await draw({ model: 'm', prompt: 'sandbox:no-usage' })).json().usage, undefined)
  })

  it('refuse what the vendor does', async () => {
    for (const [members, param] of [
      [{ prompt: '' }, 'prompt'],
      [{ prompt: 'a', n: 11 }, 'n'],
      [{ prompt: 'a', size: 5 }, 'size'],
    ] as const) {
      const refused = await draw({ model: 'm', ...members })
      assert.deepEqual([refused.status, refused.json().error.param], [400, param])
    }
  })
})

describe('a search in depth of the sandbox', () => {
  it('takes a moment, and answers with sources; without a query it is refused', async () => {
    const startedMs = performance.now()
    const { status, json } = await sandbox.ask(ASK.deep_research)
    assert.equal(status, 200)
    assert.ok(performance.now() - startedMs >= 49)
    const { answer, sources } = json()
    assert.ok(answer.length > 50)
    for (const { url, title } of sources) assert.ok(url.startsWith('https://') && title.length > 5)
    assert.equal((await sandbox.ask({ ...ASK.deep_research, body: {} })).status, 400)
    const broken = { query: 'a sandbox:status=503 sandbox:retry-after=2' }
    assert.equal((await sandbox.ask({ ...ASK.deep_research, body: broken })).status, 503)
  })
})

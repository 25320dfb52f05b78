import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { countTokens as countCl100k } from 'gpt-tokenizer/encoding/cl100k_base'
import { countTokens as countO200k } from 'gpt-tokenizer/encoding/o200k_base'
import { count, seed } from '../../../harness/proof.ts'
import { geminiEmbeddingsFor } from '../../../sandbox/src/upstreams/models/gemini-embeddings.ts'
import { TEXTS_BY_SCRIPT } from '../../../test/upstreams/texts.ts'
import { Fault } from '../kernel/fault.ts'
import { geminiBatchEmbeddings, geminiEmbeddings } from './gemini-embeddings.ts'
import type { ModelAsk, ModelLimits, Protocol } from './protocol.ts'

const CASES = count({ full: 5_000, reduced: 300 })
const LIMITS: ModelLimits = { contextWindow: 8_192, outputCap: 1, outputMost: 1, partTokens: {} }
const AS_TEXT = { disallowedSpecial: new Set<string>() }

type Body = Readonly<Record<string, unknown>>
const saying = (...texts: readonly string[]) => ({ content: { parts: texts.map((text) => ({ text })) } })

function asked(body: unknown, protocol: Protocol = geminiEmbeddings): ModelAsk {
  const text = JSON.stringify(body)
  return protocol.ask({ body: JSON.parse(text), rawBody: Buffer.from(text), headers: {} }, LIMITS)
}
const askedForMany = (...requests: readonly unknown[]) => asked({ requests }, geminiBatchEmbeddings)

function refuses(body: unknown, expected: RegExp, protocol: Protocol = geminiEmbeddings): void {
  assert.throws(
    () => asked(body, protocol),
    (error) => error instanceof Fault && error.code === 'invalid_request' && expected.test(error.message),
    JSON.stringify(body)?.slice(0, 100),
  )
}

describe('what a request for vectors of this protocol asks for', () => {
  it('is a content, or a list of requests with one each, and nothing else', () => {
    asked(saying('a'))
    asked({ ...saying('a'), task_type: 'CLUSTERING', output_dimensionality: 8, title: 'b' })
    asked({ ...saying('a'), embedContentConfig: { taskType: 'CLUSTERING', autoTruncate: false } })
    for (const body of [{}, { content: 'a' }, { content: null }, { content: [saying('a')] }, { contents: [] }])
      refuses(body, /"content"/)
    for (const requests of [undefined, null, [], {}, saying('a'), ['a'], [null]])
      refuses({ requests }, /"requests(\[0\])?"/, geminiBatchEmbeddings)
    refuses({ requests: [saying('a'), {}] }, /"requests\[1\]\.content"/, geminiBatchEmbeddings)
  })

  it('has 2,048 requests at the most', () => {
    const many = (length: number) => ({ requests: Array.from({ length }, () => saying('a')) })
    asked(many(2_048), geminiBatchEmbeddings)
    refuses(many(2_049), /"requests" has 2049 requests; the limit is 2048/, geminiBatchEmbeddings)
  })

  it('MODEL-6 is refused by the name of what is no text, or costs money beyond its tokens', () => {
    const parts = [
      { inlineData: { mimeType: 'image/png', data: 'AAAA' } },
      { inline_data: { mime_type: 'audio/wav', data: 'AAAA' } },
      { fileData: { fileUri: 'https://a.example/b', mimeType: 'video/mp4' } },
      { text: 'a', functionCall: { name: 'f' } },
      { ofTomorrow: 1 },
    ]
    for (const part of parts) {
      refuses({ content: { parts: [part] } }, /only texts are embedded/)
      refuses({ requests: [{ content: { parts: [part] } }] }, /only texts are embedded/, geminiBatchEmbeddings)
    }
    for (const name of ['documentOcr', 'audioTrackExtraction', 'mimeType'])
      refuses({ ...saying('a'), embedContentConfig: { [name]: true } }, new RegExp(`"embedContentConfig\\.${name}"`))
    for (const name of ['models', 'fallbacks', 'extra_body', 'num_retries'])
      refuses({ ...saying('a'), [name]: ['b'] }, new RegExp(`"${name}"`))
    refuses({ ...saying('a'), embed_content_config: { document_ocr: true } }, /documentOcr/)
    refuses({ ...saying('a'), Content: {} }, /"Content" is not supported in this spelling/)
    refuses({ ...saying('a'), taskType: 'A', task_type: 'B' }, /task/)
  })

  it('has no output, no cap and no stream', () => {
    const { isStream, choices, outputLimit, isDefaultLimit } = asked(saying('a'))
    assert.deepEqual([isStream, choices, outputLimit, isDefaultLimit], [false, 1, 0, false])
    assert.equal(geminiEmbeddings.stream, undefined)
  })

  it('goes to the upstream byte for byte, but for the name of the model where it has one', () => {
    const read = (text: string, protocol: Protocol) =>
      protocol.ask({ body: JSON.parse(text), rawBody: Buffer.from(text), headers: {} }, LIMITS)
    const plain = '{ "content":{"parts":[{"text":"\\u00e9"}]}, "outputDimensionality": 8.0 }'
    assert.equal(read(plain, geminiEmbeddings).bodyFor('up').toString(), plain)
    const named = '{ "model" : "models/m", "content":{"parts":[{"text":"a"}]} }'
    assert.equal(read(named, geminiEmbeddings).bodyFor('m').toString(), named)
    assert.equal(read(named, geminiEmbeddings).bodyFor('up').toString(), named.replace('models/m', 'models/up'))
    const list = `{ "requests" : [ ${named} ,${plain}, ${named.replace('models/m', 'models/dearer')}] }`
    assert.equal(read(list, geminiBatchEmbeddings).bodyFor('m').toString(), list.replace('models/dearer', 'models/m'))
    assert.equal(
      read(list, geminiBatchEmbeddings).bodyFor('a/b').toString(),
      list.replace('models/m', 'models/a/b').replace('models/dearer', 'models/a/b'),
    )
  })

  it('is asked for under the name that the upstream has for the model', () => {
    assert.equal(geminiEmbeddings.target('maker/m'), '/v1beta/models/maker/m:embedContent')
    assert.equal(geminiBatchEmbeddings.target('maker/m'), '/v1beta/models/maker/m:batchEmbedContents')
  })
})

describe('the bound of what is embedded in this protocol', () => {
  const [FRAME, TEXT] = [32, 4]

  it('is the bytes of each text and a share for each, within the context window of each request', () => {
    assert.equal(asked(saying('é'.repeat(100))).inputMost, 200 + FRAME + TEXT)
    assert.equal(asked(saying('a', 'bc')).inputMost, 3 + FRAME + 2 * TEXT)
    assert.equal(asked({ ...saying('a'), title: 'bc' }).inputMost, 3 + FRAME + 2 * TEXT)
    assert.equal(asked({ ...saying('a'), embedContentConfig: { title: 'bc' } }).inputMost, 3 + FRAME + 2 * TEXT)
    assert.equal(asked(saying('a'.repeat(100_000))).inputMost, 8_192)
    assert.equal(askedForMany(saying('a'.repeat(100_000)), saying('b')).inputMost, 8_192 + 1 + FRAME + TEXT)
  })

  it('has what may be written before a text once for each, and nothing for the length of its vector', () => {
    const most = (more: Body) => asked({ ...saying('a'), ...more }).inputMost - asked(saying('a')).inputMost
    assert.ok(most({ taskType: 'T'.repeat(500) }) >= 500)
    assert.ok(most({ something: 'i'.repeat(500) }) >= 500)
    assert.ok(most({ embedContentConfig: { something: 'i'.repeat(500) } }) >= 500)
    assert.equal(most({ outputDimensionality: 8, model: 'models/m' }), 0)
  })

  const prose = Object.values(TEXTS_BY_SCRIPT).flat()
  const text = fc.oneof(
    fc.constantFrom(...prose).chain((one) => fc.nat(one.length).map((from) => one.slice(from, from + 300))),
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.string({ unit: 'grapheme', maxLength: 200 }),
  )
  const request = fc.record(
    {
      content: fc.record({
        parts: fc.array(
          text.map((one) => ({ text: `a${one}` })),
          { minLength: 1, maxLength: 3 },
        ),
      }),
      title: text,
    },
    { requiredKeys: ['content'] },
  )

  it('is never below what the sandbox or a vocabulary counts, nor below the estimate or what is counted afterwards', () => {
    fc.assert(
      fc.property(fc.array(request, { minLength: 1, maxLength: 5 }), (requests) => {
        const { inputMost, inputEstimate, inputText } = askedForMany(...requests)
        const made = geminiEmbeddingsFor({ body: { requests }, seed: 1 }, 'm', true)
        assert.ok('inputTokens' in made && made.inputTokens <= inputMost)
        for (const counted of [countO200k, countCl100k]) assert.ok(counted(inputText(), AS_TEXT) <= inputMost)
        assert.ok(inputEstimate <= inputMost)
      }),
      { numRuns: CASES, seed },
    )
  })
})

describe('what was used for vectors of this protocol', () => {
  const embedding = { values: [0.1, 0.2] }

  it('is what the upstream reports as the prompt, and no output', () => {
    const usageMetadata = { promptTokenCount: 7, promptTokenDetails: [{ modality: 'TEXT', tokenCount: 7 }] }
    assert.deepEqual(geminiEmbeddings.usageOf({ embedding, usageMetadata }), { input: 7, output: 0 })
    assert.deepEqual(geminiBatchEmbeddings.usageOf({ embeddings: [embedding, embedding], usageMetadata }), {
      input: 7,
      output: 0,
    })
    const total = { promptTokenCount: 2, totalTokenCount: 9 }
    assert.deepEqual(geminiEmbeddings.usageOf({ embedding, usageMetadata: total }), { input: 2, output: 0 })
  })

  it('is to be counted where vectors came and nothing was reported, as older models do', () => {
    for (const usageMetadata of [undefined, null, {}, { promptTokenCount: '7' }, { promptTokenCount: -1 }])
      assert.deepEqual(geminiEmbeddings.usageOf({ embedding, usageMetadata }), { output: 0 })
    assert.equal(geminiEmbeddings.textOf({ embedding }), '')
    assert.equal(askedForMany(saying('a', 'b'), saying('c')).inputText(), 'a\nb\nc')
    const { inputText, longInputs } = askedForMany(saying('a'.repeat(9_000)), saying('b'))
    assert.deepEqual([inputText(), longInputs], ['b', { texts: ['a'.repeat(9_000)], mostOfEach: 8_192 }])
  })

  it('is not known where no vectors came, so that nobody pays for them', () => {
    const usageMetadata = { promptTokenCount: 7 }
    for (const nothing of [{}, { embedding: {} }, { embedding: { values: [] } }, { embeddings: [] }]) {
      assert.deepEqual(geminiEmbeddings.usageOf({ ...nothing, usageMetadata }), {})
    }
  })

  it('has the form of an answer where a vector came, of nothing where it is empty, and else none that can be read', () => {
    const forms: readonly (readonly [unknown, string])[] = [
      [{ embedding }, 'answer'],
      [{ embeddings: [{}, embedding] }, 'answer'],
      [{ embedding: { values: [] } }, 'nothing'],
      [{ embeddings: [] }, 'nothing'],
      [{ error: { code: 500 } }, 'nothing'],
      [{ data: [1] }, 'unreadable'],
      ['text', 'unreadable'],
    ]
    for (const [json, form] of forms) assert.equal(geminiEmbeddings.formOf(json), form, JSON.stringify(json))
  })
})

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { after, beforeEach, describe, it } from 'node:test'
import type { JsonObject } from '../json.ts'
import { ASK, askRaw, assertMembers, type Question, startTestSandbox } from '../test-sandbox.ts'
import { MODEL_NAMES } from './models/magic-models.ts'
import { inputTokens, outputTokens } from './models/tokens.ts'

const sandbox = await startTestSandbox()
after(() => sandbox.stop())
beforeEach(async () => {
  await sandbox.ask({ path: '/journal', method: 'DELETE' })
})

type Change = JsonObject & { readonly model?: string }

function question({ model = 'sandbox/echo', ...change }: Change, action = 'generateContent'): Question {
  const path = `/gemini/v1beta/models/${model}:${action}`
  return { ...ASK.gemini, path, body: { ...ASK.gemini.body, ...change } }
}

const STREAM = 'streamGenerateContent?alt=sse'
const user = (...parts: readonly unknown[]) => ({ role: 'user', parts })
const says = (text: string) => ({ contents: [user({ text })] })
const ask = (change: Change = {}) => sandbox.ask(question(change))
const generate = async (change: Change = {}) => (await ask(change)).json()
const lastEntry = async () => (await sandbox.journal()).at(-1)
const TOOL = {
  functionDeclarations: [
    {
      name: 'weather',
      parameters: {
        type: 'OBJECT',
        properties: { city: { type: 'STRING' }, days: { type: 'INTEGER' }, exact: { type: 'BOOLEAN' } },
      },
    },
    { name: 'other' },
  ],
}

type Chunk = {
  candidates: {
    index: number
    content: { role: string; parts: { text?: string; thought?: boolean; functionCall?: JsonObject }[] }
    finishReason?: string
  }[]
  usageMetadata?: JsonObject
  error?: JsonObject
}

/** Every frame starts with its data and ends with an empty line, as the vendor's library wants it. */
function chunksIn(text: string): Chunk[] {
  const frames = text.split('\r\n\r\n')
  assert.equal(frames.pop(), '', 'a frame ends with an empty line')
  return frames.map((frame) => {
    const [, data = ''] = /^data: (.*)$/.exec(frame) ?? assert.fail(frame)
    return JSON.parse(data)
  })
}

async function stream(change: Change = {}) {
  const answer = await sandbox.ask(question(change, STREAM))
  return { ...answer, chunks: chunksIn(answer.text) }
}

function textOf(chunks: readonly Chunk[], index = 0): string {
  const candidates = chunks.flatMap((chunk) => chunk.candidates.filter((one) => one.index === index))
  return candidates.flatMap(({ content }) => content.parts.map(({ text = '' }) => text)).join('')
}

describe('gemini, in one piece', () => {
  it('answers candidates with reason and figures', async () => {
    const body = await generate()
    assertMembers(body, {
      candidates: 'array',
      usageMetadata: 'object',
      modelVersion: 'string',
      responseId: 'string',
    })
    assert.deepEqual(body.candidates, [
      { content: { parts: [{ text: 'Echo: Hello' }], role: 'model' }, finishReason: 'STOP', index: 0 },
    ])
    assert.deepEqual(body.usageMetadata, { promptTokenCount: 2, candidatesTokenCount: 4, totalTokenCount: 6 })
    assert.equal(body.modelVersion, 'sandbox/echo')
    assert.deepEqual((await lastEntry())?.usage, body.usageMetadata)
  })

  it('takes the model from the path, with slashes as they are or encoded', async () => {
    assert.equal((await generate({ model: 'sandbox%2Fecho' })).modelVersion, 'sandbox/echo')
    assert.equal((await generate({ model: 'a:b' })).modelVersion, 'a:b')
    assert.equal((await lastEntry())?.model, 'a:b')
  })

  it('counts a token for every 3 bytes of all texts and tools together, and 256 for an image', async () => {
    const change = {
      systemInstruction: { parts: [{ text: 'ab' }] },
      contents: [
        user({ text: '请求' }, { inlineData: { mimeType: 'image/png', data: 'AAAAAAAA' } }),
        { role: 'model', parts: [{ functionCall: { name: 'abc', args: {} } }] },
        user({ functionResponse: { name: 'abc', response: { x: 1 } } }),
      ],
      tools: [TOOL],
    }
    const texts = [JSON.stringify(TOOL), 'ab', '请求', 'abc{}', '{"x":1}']
    const { usageMetadata } = await generate(change)
    assert.equal(usageMetadata.promptTokenCount, inputTokens(texts, 1))
    const counted = await sandbox.ask(question(change, 'countTokens'))
    assert.equal(counted.json().totalTokens, inputTokens(texts, 1))
    const whole = { generateContentRequest: { model: 'models/x', ...change } }
    assert.equal((await sandbox.ask(question(whole, 'countTokens'))).json().totalTokens, inputTokens(texts, 1))
  })

  it('takes both spellings, and single items where a list is meant', async () => {
    const { candidates, usageMetadata } = await generate({
      system_instruction: { parts: { text: 'abc' } },
      contents: { parts: { text: '请求成功请求成功' } },
      generation_config: { max_output_tokens: 4 },
    })
    assert.deepEqual(candidates[0].content.parts, [{ text: 'Echo: 请求' }])
    assert.equal(candidates[0].finishReason, 'MAX_TOKENS')
    assert.deepEqual([usageMetadata.promptTokenCount, usageMetadata.candidatesTokenCount], [9, 4])
  })

  it('gives several candidates and counts them all', async () => {
    const { candidates, usageMetadata } = await generate({
      model: 'sandbox/text',
      generationConfig: { candidateCount: 3 },
    })
    const texts = candidates.map(({ content }: Chunk['candidates'][number]) => content.parts[0]?.text)
    assert.equal(new Set(texts).size, 3)
    assert.equal(usageMetadata.candidatesTokenCount, outputTokens(...texts))
  })

  it('calls the first function, or the one that is named, with arguments of its schema', async () => {
    const { candidates, usageMetadata } = await generate({ model: 'any', tools: [TOOL] })
    const { functionCall } = candidates[0].content.parts[0]
    assert.equal(functionCall.name, 'weather')
    assertMembers(functionCall.args, { city: 'string', days: 'integer', exact: 'boolean' })
    assert.equal(usageMetadata.candidatesTokenCount, outputTokens('weather', JSON.stringify(functionCall.args)))
    const named = { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['other'] } }
    const other = await generate({ model: 'any', tools: [TOOL], toolConfig: named })
    assert.equal(other.candidates[0].content.parts[0].functionCall.name, 'other')
    const none = await generate({
      model: 'any',
      tools: [TOOL],
      toolConfig: { functionCallingConfig: { mode: 'NONE' } },
    })
    assert.equal(none.candidates[0].content.parts[0].text, 'Echo: Hello')
  })

  it('goes on with a text that mentions what the function returned', async () => {
    const result = user({ functionResponse: { name: 'weather', response: { sky: 'blue' } } })
    const { candidates } = await generate({ contents: [user({ text: 'a' }), result], tools: [TOOL] })
    assert.match(candidates[0].content.parts[0].text, /"blue"/)
  })

  it('answers JSON where that is asked for', async () => {
    const responseSchema = TOOL.functionDeclarations[0]?.parameters
    const fitting = await generate({ generationConfig: { responseMimeType: 'application/json', responseSchema } })
    assertMembers(JSON.parse(fitting.candidates[0].content.parts[0].text), {
      city: 'string',
      days: 'integer',
      exact: 'boolean',
    })
    const any = await generate({ generationConfig: { responseMimeType: 'application/json' } })
    assert.equal(typeof JSON.parse(any.candidates[0].content.parts[0].text).answer, 'string')
  })

  it('counts thoughts, and shows them where that is asked for', async () => {
    const thinking = (includeThoughts: boolean) => ({
      generationConfig: { thinkingConfig: { thinkingBudget: 20, includeThoughts } },
    })
    const hidden = await generate(thinking(false))
    assert.equal(hidden.candidates[0].content.parts.length, 1)
    assert.deepEqual(hidden.usageMetadata, {
      promptTokenCount: 2,
      candidatesTokenCount: 4,
      thoughtsTokenCount: 20,
      totalTokenCount: 26,
    })
    const shown = await generate(thinking(true))
    const [thought, text] = shown.candidates[0].content.parts
    assert.deepEqual([thought.thought, outputTokens(thought.text), text.text], [true, 20, 'Echo: Hello'])
    assert.deepEqual(shown.usageMetadata, hidden.usageMetadata)
    const all = await generate({
      generationConfig: { maxOutputTokens: 5, thinkingConfig: { thinkingBudget: -1 } },
    })
    assert.deepEqual(all.usageMetadata, { promptTokenCount: 2, thoughtsTokenCount: 5, totalTokenCount: 7 })
    assert.deepEqual(all.candidates[0].content.parts, [])
  })

  it('refuses what the vendor refuses, in its shape', async () => {
    for (const change of [
      { contents: [] },
      { contents: [{ role: 'assistant', parts: [] }] },
      { generationConfig: { maxOutputTokens: 0 } },
      { generationConfig: { candidateCount: 9 } },
    ]) {
      const { status, json } = await ask(change)
      assert.equal(status, 400)
      assert.deepEqual([json().error.code, json().error.status], [400, 'INVALID_ARGUMENT'])
    }
    assert.equal((await sandbox.ask({ ...ASK.gemini, body: 'no json' })).status, 400)
    assert.equal((await sandbox.ask(question({}, 'streamGenerateContent'))).status, 400)
  })

  it('lists its models', async () => {
    const { json } = await sandbox.ask({ path: '/gemini/v1beta/models', headers: ASK.gemini.headers })
    const names = json().models.map(({ name }: { name: string }) => name)
    assert.deepEqual(
      names,
      MODEL_NAMES.map((name) => `models/${name}`),
    )
  })

  it('answers by the magic models', async () => {
    const failing = { 'sandbox/429': [429, 'RESOURCE_EXHAUSTED'], 'sandbox/500': [500, 'INTERNAL'] } as const
    for (const [model, [status, name]] of Object.entries(failing)) {
      const answer = await ask({ model })
      assert.deepEqual([answer.status, answer.json().error.code, answer.json().error.status], [status, status, name])
      assert.equal(answer.headers['content-type'], 'application/json')
    }
    assert.equal((await ask({ model: 'sandbox/429' })).headers['retry-after'], '7')
    assert.equal((await ask({ model: 'sandbox/overloaded' })).json().error.status, 'UNAVAILABLE')
    assert.equal('usageMetadata' in (await generate({ model: 'sandbox/no-usage' })), false)
    assert.deepEqual((await generate({ model: 'sandbox/zero-usage' })).usageMetadata, {
      promptTokenCount: 0,
      candidatesTokenCount: 0,
      totalTokenCount: 0,
    })
    const called = await generate({ model: 'sandbox/tools' })
    assert.equal(called.candidates[0].content.parts[0].functionCall.name, 'lookup')
  })
})

describe('gemini, as a stream', () => {
  it('sends the same text in frames that start with their data, each with what was used so far', async () => {
    const { headers, chunks } = await stream(says('Hello world'))
    assert.match(String(headers['content-type']), /^text\/event-stream/)
    assert.equal(textOf(chunks), 'Echo: Hello world')
    const reasons = chunks.map(({ candidates }) => candidates[0]?.finishReason)
    assert.deepEqual(reasons, [undefined, undefined, undefined, 'STOP'])
    assert.deepEqual(
      chunks.map(({ usageMetadata }) => usageMetadata),
      [3, 6, 6, 6].map((tokens) => ({
        promptTokenCount: 4,
        candidatesTokenCount: tokens,
        totalTokenCount: 4 + tokens,
      })),
    )
    const entry = await lastEntry()
    assert.deepEqual([entry?.tokens, entry?.stream, entry?.input_tokens], [6, true, 4])
    assert.deepEqual(entry?.usage, chunks.at(-1)?.usageMetadata)
  })

  it('sends candidates in turn, each with a reason at the end', async () => {
    const { chunks } = await stream({ model: 'sandbox/text', generationConfig: { candidateCount: 2 } })
    const whole = await generate({ model: 'sandbox/text', generationConfig: { candidateCount: 2 } })
    for (const index of [0, 1]) assert.equal(textOf(chunks, index), whole.candidates[index].content.parts[0].text)
    assert.deepEqual(
      chunks.slice(-2).map(({ candidates }) => [candidates[0]?.index, candidates[0]?.finishReason]),
      [
        [0, 'STOP'],
        [1, 'STOP'],
      ],
    )
    assert.deepEqual(chunks.at(-1)?.usageMetadata, whole.usageMetadata)
  })

  it('sends calls whole, and thoughts as parts that say so', async () => {
    const { chunks } = await stream({ model: 'any', tools: [TOOL] })
    assert.equal(chunks.length, 2)
    assert.equal(chunks[0]?.candidates[0]?.content.parts[0]?.functionCall?.name, 'weather')
    const generationConfig = { thinkingConfig: { thinkingBudget: 20, includeThoughts: true } }
    const thought = await stream({ generationConfig })
    const parts = thought.chunks.flatMap(({ candidates }) => candidates[0]?.content.parts ?? [])
    assert.equal(outputTokens(...parts.filter((part) => part.thought).map(({ text = '' }) => text)), 20)
    const whole = await generate({ generationConfig })
    assert.deepEqual(thought.chunks.at(-1)?.usageMetadata, whole.usageMetadata)
    const hidden = await stream({ generationConfig: { thinkingConfig: { thinkingBudget: 20 } } })
    assert.deepEqual(hidden.chunks.at(-1)?.usageMetadata, whole.usageMetadata)
    assert.equal((await lastEntry())?.tokens, 24)
  })

  it('goes wrong as its model says', async () => {
    const broken = await stream({ model: 'sandbox/error-mid-stream' })
    assert.deepEqual(broken.chunks.at(-1)?.error, {
      code: 503,
      message: 'The model is overloaded.',
      status: 'UNAVAILABLE',
    })
    const { chunks } = await stream({ model: 'sandbox/no-end' })
    assert.ok(chunks.every(({ candidates }) => candidates[0]?.finishReason === undefined))
    const garbage = await sandbox.ask(question({ model: 'sandbox/garbage-frame' }, STREAM))
    assert.match(garbage.text, /data: \{"candidates": oops\r\n\r\n/)
    const cut = await askRaw(sandbox.port, question({ model: 'sandbox/cut-mid-stream' }, STREAM))
    assert.equal(cut.end, 'reset')
    assert.equal((await ask({ model: 'sandbox/error-mid-stream' })).status, 500)
    const silent = await stream({ model: 'sandbox/no-usage' })
    assert.ok(silent.chunks.every((chunk) => !('usageMetadata' in chunk)))
    const zero = await stream({ model: 'sandbox/zero-usage' })
    assert.ok(zero.chunks.every(({ usageMetadata }) => usageMetadata?.totalTokenCount === 0))
  })

  it('has a checksum that is right', async () => {
    const { chunks } = await stream({ model: 'sandbox/checksum', ...says('sandbox:delta-ms=0') })
    const [, text = '', sum] = /^(.*) sha256:(\w+)$/.exec(textOf(chunks)) ?? []
    assert.equal(sum, hash('sha256', text))
  })
})

describe('gemini and directives', () => {
  it('reports what directives say', async () => {
    const { usageMetadata } = await generate(
      says('sandbox:input-tokens=100 sandbox:cache-read=60 sandbox:output-tokens=9'),
    )
    assert.deepEqual(usageMetadata, {
      promptTokenCount: 100,
      cachedContentTokenCount: 60,
      candidatesTokenCount: 9,
      totalTokenCount: 109,
    })
    assert.equal((await lastEntry())?.input_tokens, 100)
    const { chunks } = await stream(says('sandbox:input-tokens=100 sandbox:cache-read=60 sandbox:output-tokens=9'))
    assert.deepEqual(chunks.at(-1)?.usageMetadata, usageMetadata)
    assert.equal('usageMetadata' in (await generate(says('sandbox:no-usage'))), false)
    const counted = await sandbox.ask(question(says('sandbox:input-tokens=5'), 'countTokens'))
    assert.equal(counted.json().totalTokens, 5)
  })

  it('misreports as it is told to', async () => {
    const { text } = await ask(says('sandbox:usage=-5'))
    assert.match(text, /"promptTokenCount":-5,"candidatesTokenCount":-5,"totalTokenCount":-5/)
    const streamed = await sandbox.ask(question(says('sandbox:usage=NaN sandbox:output-tokens=3'), STREAM))
    assert.equal(streamed.text.match(/"candidatesTokenCount":NaN/g)?.length, 3)
  })

  it('fails in the words of the vendor', async () => {
    const { status, json } = await ask(says('sandbox:status=504'))
    assert.deepEqual([status, json().error.status], [504, 'DEADLINE_EXCEEDED'])
  })
})

describe('gemini, vectors', () => {
  const embed = async (body: unknown, action = 'embedContent', model = 'sandbox/embedding') =>
    sandbox.ask({ ...ASK.gemini, path: `/gemini/v1beta/models/${model}:${action}`, body })
  const saying = (text: string) => ({ content: { parts: [{ text }] } })

  it('gives one for a content, always the same, with what it counts', async () => {
    const told = (await embed({ ...saying('a short story'), outputDimensionality: 5 })).json()
    assert.equal(told.embedding.values.length, 5)
    const tokens = inputTokens(['a short story'])
    assert.deepEqual(told.usageMetadata, {
      promptTokenCount: tokens,
      promptTokenDetails: [{ modality: 'TEXT', tokenCount: tokens }],
    })
    assert.deepEqual((await embed({ ...saying('a short story'), output_dimensionality: 5 })).json(), told)
    const [entry] = (await sandbox.journal()).slice(-1)
    assert.deepEqual([entry?.bill?.input, entry?.bill?.output, entry?.input_tokens], [tokens, 0, tokens])
  })

  it('gives a list for a list, each as alone, whether the slash of the model is encoded or not', async () => {
    const requests = [saying('one'), { ...saying('two'), title: 'a title' }]
    const { embeddings, usageMetadata } = (await embed({ requests }, 'batchEmbedContents')).json()
    const alone = await Promise.all(requests.map(async (request) => (await embed(request)).json().embedding))
    assert.deepEqual(embeddings, alone)
    assert.equal(usageMetadata.promptTokenCount, inputTokens(['one', 'two', 'a title']))
    const encoded = await embed({ requests }, 'batchEmbedContents', 'sandbox%2Fembedding')
    assert.deepEqual(encoded.json().embeddings, embeddings)
  })

  it('reports nothing where it is told so, as older models do', async () => {
    assert.equal((await embed(saying('sandbox:no-usage'))).json().usageMetadata, undefined)
    assert.equal((await embed(saying('a'), 'embedContent', 'sandbox/no-usage')).json().usageMetadata, undefined)
  })

  it('refuses what has no text, another model than that of the path, and lengths that there are not', async () => {
    for (const body of [
      {},
      saying(''),
      { content: { parts: [] } },
      { ...saying('a'), model: 'models/another' },
      { ...saying('a'), outputDimensionality: 0 },
    ])
      assert.equal((await embed(body)).status, 400, JSON.stringify(body))
    assert.equal((await embed({ requests: [] }, 'batchEmbedContents')).status, 400)
    assert.equal((await embed({ ...saying('a'), model: 'models/sandbox/embedding' })).status, 200)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { count, seed } from '../../../harness/proof.ts'
import { TEXTS_BY_SCRIPT } from '../../../test/upstreams/texts.ts'
import { Fault } from '../kernel/fault.ts'
import { OVERHEAD } from './bound.ts'
import { gemini, geminiCount, geminiStream } from './gemini.ts'
import type { ModelAsk, ModelLimits, Protocol } from './protocol.ts'

const CASES = count({ full: 10_000, reduced: 300 })
const LIMITS: ModelLimits = { contextWindow: 128_000, outputCap: 4_096, outputMost: 16_384, partTokens: { image: 256 } }
const BODY = { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] }

function asked(members: Record<string, unknown> = {}, limits = LIMITS, protocol: Protocol = gemini): ModelAsk {
  return askedRaw(JSON.stringify({ ...BODY, ...members }), limits, protocol)
}

function askedRaw(text: string, limits = LIMITS, protocol: Protocol = gemini): ModelAsk {
  return protocol.ask({ body: JSON.parse(text), rawBody: Buffer.from(text), headers: {} }, limits)
}

function refuses(members: Record<string, unknown>, expected: RegExp, protocol: Protocol = gemini): void {
  assert.throws(
    () => asked(members, LIMITS, protocol),
    (error) => error instanceof Fault && error.code === 'invalid_request' && expected.test(error.message),
    JSON.stringify(members),
  )
}

const configured = (generationConfig: unknown) => ({ generationConfig })

describe('the model of a request for content', () => {
  it('is the name in the path, of 1 to 200 characters', () => {
    assert.equal(gemini.modelOf({}, 'maker/model'), 'maker/model')
    assert.equal(gemini.modelOf(undefined, 'x'.repeat(200)).length, 200)
    for (const name of [undefined, '', 'x'.repeat(201)]) {
      assert.throws(() => gemini.modelOf({ model: 'm' }, name), Fault, name)
    }
  })

  it('is refused in the body, where an upstream might go by it', () => {
    for (const model of ['models/other', 'm', 1]) refuses({ model }, /"model" is not supported/)
    asked({ model: null })
  })

  it('stands in the path upstream as it is called there', () => {
    assert.equal(gemini.target('maker/model-1'), '/v1beta/models/maker/model-1:generateContent')
    assert.equal(geminiStream.target('a:b@c'), '/v1beta/models/a:b@c:streamGenerateContent?alt=sse')
    assert.equal(geminiCount.target('a b?c#d%e'), '/v1beta/models/a%20b%3Fc%23d%25e:countTokens')
  })
})

describe('what a request for content asks for', () => {
  it('is an object with a content at least', () => {
    for (const contents of [undefined, null, []]) refuses({ contents }, /"contents"/)
    for (const text of ['[]', 'null', '"x"']) assert.throws(() => askedRaw(text), Fault, text)
    asked({ contents: { parts: { text: 'one of each, without a list' } } })
  })

  it('is a stream by its path alone', () => {
    assert.equal(asked().isStream, false)
    assert.equal(asked({}, LIMITS, geminiStream).isStream, true)
    assert.equal(asked({}, LIMITS, geminiCount).isStream, false)
    assert.equal(gemini.stream, undefined)
    assert.equal(asked({}, LIMITS, geminiStream).wantsUsage, true)
  })

  it('MODEL-5 has the default cap of the model where it names no limit', () => {
    for (const members of [{}, configured(null), configured({}), configured({ maxOutputTokens: null, topK: 1 })]) {
      const { outputLimit, isDefaultLimit, bodyFor } = asked(members)
      assert.deepEqual({ outputLimit, isDefaultLimit }, { outputLimit: 4_096, isDefaultLimit: true })
      assert.equal(JSON.parse(bodyFor('m').toString()).generationConfig.maxOutputTokens, 4_096)
    }
  })

  it('MODEL-5 is refused with the maximum of the model where its limit is above, and never shrunk', () => {
    assert.equal(asked(configured({ maxOutputTokens: 16_384 })).outputLimit, 16_384)
    assert.equal(asked({ generation_config: { max_output_tokens: 7 } }).outputLimit, 7)
    refuses(
      configured({ maxOutputTokens: 16_385 }),
      /"maxOutputTokens" is 16385; the limit of this model is 16384 tokens/,
    )
    refuses({ generation_config: { max_output_tokens: 99_999 } }, /16384/)
    for (const limit of [0, -1, 1.5, '10', true, 1e300, {}]) {
      refuses(configured({ maxOutputTokens: limit }), /"maxOutputTokens" must be/)
    }
  })

  it('has 1 to 8 candidates', () => {
    assert.equal(asked().choices, 1)
    assert.equal(asked(configured({ candidateCount: 8 })).choices, 8)
    assert.equal(asked(configured({ candidate_count: 2 })).choices, 2)
    for (const candidateCount of [0, 9, 1.5, '2', -1]) refuses(configured({ candidateCount }), /"candidateCount" must/)
  })

  it('is refused where a member is given in both spellings, or in a third one', () => {
    refuses({ generationConfig: {}, generation_config: {} }, /"generationConfig" is given in two spellings/)
    refuses(
      configured({ maxOutputTokens: 1, max_output_tokens: null }),
      /"generationConfig.maxOutputTokens" is given in two/,
    )
    refuses({ cachedContent: null, cached_content: null }, /"cachedContent" is given in two/)
    refuses(
      { contents: { parts: [{ inlineData: {}, inline_data: {} }] } },
      /"contents.parts\[0\].inlineData" is given in two/,
    )
    for (const name of ['GenerationConfig', 'generationconfig', 'generation_Config', '_tools', 'toolſ', 'Contents']) {
      refuses({ [name]: null }, /is not supported in this spelling/)
    }
    for (const name of ['MaxOutputTokens', 'max_outputTokens']) {
      refuses(configured({ [name]: 1 }), /Write it "maxOutputTokens"/)
    }
  })

  it('is refused where the settings are no object', () => {
    for (const value of [[], 'x', 1]) refuses(configured(value), /"generationConfig" must be/)
  })
})

describe('the body for an upstream', () => {
  it('is the very buffer that came where nothing has to change, whatever the model is called there', () => {
    const rawBody = Buffer.from('{ "contents":[{"parts":[{"text":"a"}]}], "generationConfig":{"maxOutputTokens": 5} }')
    const read = gemini.ask({ body: JSON.parse(rawBody.toString()), rawBody, headers: {} }, LIMITS)
    assert.equal(read.bodyFor('another/name'), rawBody)
  })

  it('differs in the cap alone, in the spelling that is there', () => {
    const start = '{ "contents":[{"parts":[{"text":"\\u00e9"}]}]'
    const cases = {
      ' }': ',"generationConfig":{"maxOutputTokens":4096} }',
      ', "generationConfig" : { "topK" : 1.0 } }': ', "generationConfig" : { "topK" : 1.0,"maxOutputTokens":4096 } }',
      ',"generation_config":{"max_output_tokens":null,"topK":1}}':
        ',"generation_config":{"max_output_tokens":4096,"topK":1}}',
      ',"generation_config":{"top_k":1}}': ',"generation_config":{"top_k":1,"maxOutputTokens":4096}}',
      ',"generationConfig":null,"x":1}': ',"generationConfig":{"maxOutputTokens":4096},"x":1}',
      ',"generation\\u0043onfig":{}}': ',"generation\\u0043onfig":{"maxOutputTokens":4096}}',
    }
    for (const [given, expected] of Object.entries(cases)) {
      assert.equal(
        askedRaw(start + given)
          .bodyFor('m')
          .toString(),
        start + expected,
      )
    }
  })
})

describe('MODEL-6 what costs money beyond tokens', () => {
  const tools = [
    ...['googleSearch', 'googleSearchRetrieval', 'googleMaps', 'urlContext', 'codeExecution', 'fileSearch'],
    ...['computerUse', 'enterpriseWebSearch', 'mcpServers', 'retrieval', 'exaAiSearch', 'google_search', 'anyOther'],
  ]
  for (const name of tools) {
    it(`is refused by the name of the tool ${name}`, () => {
      for (const list of [
        [{ [name]: {} }],
        { [name]: {} },
        [{ functionDeclarations: [] }, { function_declarations: [], [name]: [] }],
      ]) {
        const documented = name.replace(/_s/, 'S')
        refuses({ tools: list }, new RegExp(`"tools(\\[\\d\\])?\\.${documented}" is not supported`))
      }
    })
  }

  const refused: Readonly<Record<string, readonly unknown[]>> = {
    cachedContent: ['cachedContents/a'],
    continuationToken: ['AAAA'],
    modelArmorConfig: [{}],
    generationOutputConfig: [{}],
    serviceTier: ['flex', 'priority', 'FLEX', 1],
  }
  for (const [name, values] of Object.entries(refused)) {
    it(`is refused by the name of ${name}`, () => {
      for (const value of values) refuses({ [name]: value }, new RegExp(`"${name}"`))
    })
  }

  const refusedInConfig: Readonly<Record<string, readonly unknown[]>> = {
    responseModalities: [['AUDIO'], ['TEXT', 'IMAGE'], 'IMAGE', [2]],
    responseFormat: [[{ image: {} }], { audio: {} }, [{ text: {}, video: {} }], ['x']],
    speechConfig: [{}],
    imageConfig: [{}],
    videoConfig: [{}],
    translationConfig: [{}],
    routingConfig: [{ manualMode: { modelName: 'x' } }],
    modelSelectionConfig: [{}],
    modelConfig: [{}],
    audioTranscriptionConfig: [{}],
  }
  for (const [name, values] of Object.entries(refusedInConfig)) {
    it(`is refused by the name of ${name}`, () => {
      const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
      for (const value of values) {
        const expected = new RegExp(`"generationConfig\\.${name}(\\[\\d\\])?(\\.[a-z]+)?" `)
        refuses(configured({ [name]: value }), expected)
        refuses({ generation_config: { [snake]: value } }, expected)
      }
    })
  }

  it('is refused in what is counted too', () => {
    refuses({ tools: [{ googleSearch: {} }] }, /googleSearch/, geminiCount)
  })

  it('is refused where a tool is no object', () => {
    for (const list of [[null], ['x'], [[]], 5]) refuses({ tools: list }, /tool/)
  })

  it('is not what is said at its standard', () => {
    for (const tier of ['standard', 'unspecified', null]) asked({ serviceTier: tier })
    asked(configured({ responseModalities: ['TEXT'], responseFormat: [{ text: { mimeType: 'application/json' } }] }))
    asked(configured({ thinkingConfig: { thinkingBudget: -1, includeThoughts: true }, mediaResolution: 'x', seed: 1 }))
    asked({
      tools: [{ functionDeclarations: [{ name: 'f' }] }],
      toolConfig: { functionCallingConfig: {} },
      store: true,
    })
    asked({ some_member_of_an_upstream: { a: [1] }, labels: { a: 'b' }, safetySettings: [] })
  })
})

describe('the bound of the input', () => {
  const parts = (...list: readonly unknown[]) => ({ contents: [{ role: 'user', parts: list }] })

  it('is the bytes of the text and what templates add', () => {
    const around = OVERHEAD.request + OVERHEAD.message + OVERHEAD.text
    const more = asked(parts({ text: 'é'.repeat(1000) })).inputMost
    const less = asked(parts({ text: '' })).inputMost
    assert.equal(more - less, 2000)
    assert.ok(less >= around && less < around + 32, `${less}`)
  })

  it('counts the system instruction, tools, schemas, calls, results and roles', () => {
    const long = 'd'.repeat(3_000)
    for (const members of [
      { systemInstruction: { parts: [{ text: long }] } },
      { system_instruction: { parts: { text: long } } },
      { systemInstruction: long },
      { tools: [{ functionDeclarations: [{ name: 'f', description: long }] }] },
      { tools: { function_declarations: { name: long } } },
      configured({ responseSchema: { description: long } }),
      configured({ _responseJsonSchema: { description: long } }),
      configured({ stopSequences: [long] }),
      parts({ functionCall: { name: 'f', args: { a: long } } }),
      parts({ functionResponse: { name: 'f', response: { a: long } } }),
      parts({ functionResponse: { parts: [{ text: long }] } }),
      parts({ text: 'a', thoughtSignature: long }),
      parts({ executableCode: { code: long } }),
      parts(long),
      { contents: [{ role: long, parts: [] }] },
      { contents: [{ parts: [], note: long }] },
      { toolConfig: { note: long } },
    ]) {
      assert.ok(asked(members).inputMost > 3_000, JSON.stringify(members).slice(0, 60))
    }
  })

  it('takes what a part is declared to have by its kind, whatever its data', () => {
    const limits = { ...LIMITS, partTokens: { image: 256, audio: 500, file: 1_000 } }
    const most = (part: unknown) => asked(parts(part), limits).inputMost
    const none = asked(parts(), limits).inputMost
    const inline = (mimeType: string, data = 'AAAA') => ({ inlineData: { mimeType, data } })
    assert.equal(most(inline('image/png', 'A'.repeat(50_000))), most(inline('image/png')))
    const kinds = {
      'image/png': 256,
      'IMAGE/JPEG': 256,
      'video/mp4': 1_000,
      'application/pdf': 1_000,
    }
    for (const [mimeType, tokens] of Object.entries(kinds)) {
      for (const part of [
        inline(mimeType),
        { inline_data: { mime_type: mimeType, data: 'AAAA' } },
        { functionResponse: { parts: [inline(mimeType)] } },
      ]) {
        const more = most(part) - none
        assert.ok(more >= tokens && more < tokens + 100, `${mimeType}: ${more}`)
      }
      // Nobody knows what is behind an address, whatever it is called.
      assert.equal(most({ fileData: { mimeType, fileUri: 'https://files.example/a' } }), LIMITS.contextWindow)
    }
  })

  it('is the context window where nobody knows the size of a part', () => {
    const image = { inlineData: { mimeType: 'image/png', data: 'AAAA' } }
    for (const part of [
      { inlineData: { mimeType: 'application/pdf', data: 'AAAA' } },
      { fileData: { mimeType: 'video/mp4', fileUri: 'https://video.example/watch' } },
      { somethingNew: {} },
      { toolResponse: {} },
      { ...image, videoMetadata: { fps: 24 } },
      { ...image, video_metadata: { fps: 24 } },
      { ...image, mediaResolution: { num_tokens: 9_999 } },
      { __proto__: null, constructor: {} },
    ]) {
      assert.equal(asked(parts(part)).inputMost, LIMITS.contextWindow, JSON.stringify(part))
    }
    const usual = { ...image, videoMetadata: { startOffset: '1s' }, mediaResolution: { level: 'MEDIA_RESOLUTION_LOW' } }
    assert.ok(asked(parts(usual)).inputMost < 2_000)
  })

  it('is never above the context window', () => {
    assert.equal(asked(parts({ text: 'a'.repeat(200_000) })).inputMost, 128_000)
  })

  it('survives what is nested to no purpose', () => {
    for (const contents of [[null, 5, [], {}], [{ parts: [null, 5, [[]], {}] }], [{ parts: 5 }], 'text']) {
      assert.ok(asked({ contents }).inputMost < 1_000)
    }
  })

  it('is never below what a tokenizer counts, nor below what is counted afterwards', () => {
    const text = fc.oneof(
      fc.constantFrom(...Object.values(TEXTS_BY_SCRIPT).flat()),
      fc.string({ unit: 'binary', maxLength: 200 }),
    )
    const name = fc.stringMatching(/^[a-zA-Z0-9_-]{1,40}$/)
    const turn = fc.record({ role: fc.constantFrom('user', 'model'), parts: fc.array(fc.record({ text })) })
    const tool = fc.record({ name, description: text, parameters: fc.dictionary(name, text) })
    const wide = { ...LIMITS, contextWindow: 1e9 }
    const tokensOf = (one: string) => countTokens(one, { disallowedSpecial: new Set<string>() })
    fc.assert(
      fc.property(
        fc.array(turn, { minLength: 1, maxLength: 4 }),
        fc.array(tool, { maxLength: 3 }),
        (contents, list) => {
          const tools = list.length === 0 ? [] : [{ functionDeclarations: list }]
          const { inputMost, inputEstimate, inputText } = asked({ contents, tools }, wide)
          let tokens = tokensOf(JSON.stringify(tools))
          for (const { parts } of contents) for (const part of parts) tokens += tokensOf(part.text)
          assert.ok(tokens <= inputMost - OVERHEAD.request - (list.length > 0 ? OVERHEAD.anyTools : 0))
          assert.ok(tokensOf(inputText()) <= inputMost)
          assert.ok(inputEstimate <= inputMost)
        },
      ),
      { numRuns: CASES, seed },
    )
  })
})

describe('the text of the input', () => {
  it('has the texts, the calls and the tools, and no data', () => {
    const text = asked({
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      contents: [
        { role: 'user', parts: [{ text: 'Look:' }, { inlineData: { mimeType: 'image/png', data: 'SECRET' } }] },
        { role: 'model', parts: [{ functionCall: { name: 'weather', args: { city: 'Ulm' } } }] },
        { role: 'user', parts: [{ functionResponse: { name: 'weather', response: { sky: 'blue' } } }] },
      ],
      tools: [{ functionDeclarations: [{ name: 'forecast' }] }],
      generationConfig: { temperature: 1 },
    }).inputText()
    for (const part of ['Be brief.', 'Look:', 'weather', 'Ulm', 'blue', 'forecast'])
      assert.ok(text.includes(part), part)
    for (const part of ['SECRET', 'temperature', 'user']) assert.ok(!text.includes(part), part)
  })
})

describe('a request to count tokens', () => {
  const inner = { model: 'models/public', contents: BODY.contents, systemInstruction: { parts: [{ text: 'x' }] } }

  it('asks for no output', () => {
    const { outputLimit, isDefaultLimit, choices } = asked({}, LIMITS, geminiCount)
    assert.deepEqual({ outputLimit, isDefaultLimit, choices }, { outputLimit: 0, isDefaultLimit: false, choices: 1 })
  })

  it('passes as it came, but for the model of a request that it holds', () => {
    const plain = JSON.stringify(BODY)
    assert.equal(askedRaw(plain, LIMITS, geminiCount).bodyFor('up').toString(), plain)
    const { model: _, ...unnamed } = inner
    for (const name of ['generateContentRequest', 'generate_content_request']) {
      const body = (request: object) => JSON.stringify({ [name]: request })
      const counted = askedRaw(body(inner), LIMITS, geminiCount)
      assert.equal(counted.bodyFor('up/1').toString(), body({ ...inner, model: 'models/up/1' }))
      assert.equal(askedRaw(body(unnamed), LIMITS, geminiCount).bodyFor('up').toString(), body(unnamed))
    }
  })

  it('is refused where it has nothing to count', () => {
    for (const text of ['{}', '{"generateContentRequest":5}', '{"generateContentRequest":{}}', '[]']) {
      assert.throws(() => askedRaw(text, LIMITS, geminiCount), Fault, text)
    }
  })

  it('costs nothing', () => {
    assert.deepEqual(geminiCount.usageOf({ totalTokens: 9 }), { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 })
    assert.equal(geminiCount.textOf({ candidates: [{ content: { parts: [{ text: 'x' }] } }] }), '')
  })
})

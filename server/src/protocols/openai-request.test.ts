import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { judge } from '../../../harness/figures.ts'
import { Fault } from '../kernel/fault.ts'
import { OVERHEAD } from './bound.ts'
import { ask, modelOf } from './openai-request.ts'
import type { ModelAsk, ModelLimits } from './protocol.ts'
import { PLAIN_PROFILE } from './route-profile.ts'

const PROOF = 'openai-request'

const LIMITS: ModelLimits = { contextWindow: 128_000, outputCap: 4_096, outputMost: 16_384, partTokens: { image: 256 } }
const MESSAGES = [{ role: 'user', content: 'Hello' }]
const BODY = { model: 'm', messages: MESSAGES }

function asked(members: Record<string, unknown> = {}, limits = LIMITS): ModelAsk {
  return askedRaw(JSON.stringify({ ...BODY, ...members }), limits)
}

function askedRaw(text: string, limits = LIMITS): ModelAsk {
  return ask({ body: JSON.parse(text), rawBody: Buffer.from(text), headers: {} }, limits)
}

function refuses(members: Record<string, unknown>, expected: RegExp): void {
  assert.throws(
    () => asked(members),
    (error) => error instanceof Fault && error.code === 'invalid_request' && expected.test(error.message),
    JSON.stringify(members),
  )
}

describe('the model of a chat completion', () => {
  it('is a name of 1 to 200 characters', () => {
    assert.equal(modelOf({ model: 'a' }), 'a')
    assert.equal(modelOf({ model: 'x'.repeat(200) }).length, 200)
    for (const body of [{}, { model: '' }, { model: 'x'.repeat(201) }, { model: 1 }, { model: null }, null, [], 'm']) {
      assert.throws(() => modelOf(body), Fault, JSON.stringify(body))
    }
  })
})

describe('what a chat completion asks for', () => {
  it('has a message at least', () => {
    for (const messages of [undefined, null, [], {}, 'Hello']) refuses({ messages }, /"messages"/)
  })

  it('MODEL-5 has the default cap of the model where it names no limit', () => {
    for (const members of [{}, { max_tokens: null }, { max_completion_tokens: null }]) {
      const { outputLimit, isDefaultLimit, bodyFor } = asked(members)
      assert.deepEqual({ outputLimit, isDefaultLimit }, { outputLimit: 4_096, isDefaultLimit: true })
      assert.equal(JSON.parse(bodyFor('m').toString()).max_completion_tokens, 4_096)
    }
  })

  it('has the larger of both limits where both are given', () => {
    assert.equal(asked({ max_tokens: 10 }).outputLimit, 10)
    assert.equal(asked({ max_completion_tokens: 20 }).outputLimit, 20)
    assert.equal(asked({ max_tokens: 30, max_completion_tokens: 20 }).outputLimit, 30)
    assert.equal(asked({ max_tokens: 10, max_completion_tokens: 20 }).isDefaultLimit, false)
  })

  it('is sent as the member that the route names, and as nothing else', () => {
    for (const [name, other] of [
      ['max_tokens', 'max_completion_tokens'],
      ['max_completion_tokens', 'max_tokens'],
    ] as const)
      for (const members of [{}, { [name]: 10 }, { [other]: 20 }, { [name]: 30, [other]: 20 }, { [other]: null }]) {
        const { outputLimit, bodyFor } = asked(members)
        const sent = JSON.parse(bodyFor('m', { ...PLAIN_PROFILE, outputLimit: name }).toString())
        assert.deepEqual([sent[name], other in sent], [outputLimit, false])
      }
  })

  it('MODEL-5 is refused with the maximum of the model where its limit is above, and never shrunk', () => {
    assert.equal(asked({ max_tokens: 16_384 }).outputLimit, 16_384)
    refuses({ max_tokens: 16_385 }, /"max_tokens" is 16385; the limit of this model is 16384 tokens/)
    refuses({ max_tokens: 1, max_completion_tokens: 99_999 }, /"max_completion_tokens".*16384/)
  })

  it('is refused where a limit is no whole number from 1 on', () => {
    for (const limit of [0, -1, 1.5, '10', true, 1e300, {}]) refuses({ max_tokens: limit }, /"max_tokens" must be/)
  })

  it('has 1 to 128 choices', () => {
    assert.equal(asked().choices, 1)
    assert.equal(asked({ n: null }).choices, 1)
    assert.equal(asked({ n: 128 }).choices, 128)
    for (const n of [0, 129, 1.5, '2', -1]) refuses({ n }, /"n" must be/)
  })

  it('is a stream where it says so', () => {
    assert.equal(asked().isStream, false)
    assert.equal(asked({ stream: true }).isStream, true)
    refuses({ stream: 'true' }, /"stream"/)
  })

  it('wants the usage in a stream where it says so', () => {
    assert.equal(asked({ stream: true }).wantsUsage, false)
    assert.equal(asked({ stream: true, stream_options: { include_usage: true } }).wantsUsage, true)
    assert.equal(asked({ stream: true, stream_options: { include_usage: false } }).wantsUsage, false)
    refuses({ stream: true, stream_options: [] }, /"stream_options"/)
  })

  it('is refused where a member that is read has its name in another case, which some upstreams take all the same', () => {
    for (const name of ['Max_Tokens', 'MODEL', 'N', 'Service_Tier', 'toolſ'])
      refuses({ [name]: 1 }, /is not supported in this spelling/)
  })
})

describe('the body for an upstream', () => {
  it('is the very buffer that came where nothing has to change', () => {
    const rawBody = Buffer.from('{ "model":"m", "messages":[{"role":"user","content":"a"}], "max_tokens": 5 }')
    const read = ask({ body: JSON.parse(rawBody.toString()), rawBody, headers: {} }, LIMITS)
    assert.equal(read.bodyFor('m'), rawBody)
  })

  it('differs in the model, the cap and the usage alone', () => {
    const text = '{ "\\u006dodel" : "m", "x": 1.0, "messages":[{"role":"user","content":"\\u00e9"}],"stream":true }'
    assert.equal(
      askedRaw(text).bodyFor('up/"stream"').toString(),
      '{ "\\u006dodel" : "up/\\"stream\\"", "x": 1.0, "messages":[{"role":"user","content":"\\u00e9"}],"stream":true,' +
        '"max_completion_tokens":4096,"stream_options":{"include_usage":true} }',
    )
  })

  it('keeps what else the caller says about the stream', () => {
    const start = '{"model":"m","messages":[{}],"max_tokens":1,"stream":true,"stream_options":'
    const cases = {
      '{ "include_obfuscation" : false }': '{ "include_obfuscation" : false,"include_usage":true }',
      '{"include_usage":false,"x":1}': '{"include_usage":true,"x":1}',
      null: '{"include_usage":true}',
      '{}': '{"include_usage":true}',
    }
    for (const [given, expected] of Object.entries(cases)) {
      assert.equal(askedRaw(`${start}${given}}`).bodyFor('m').toString(), `${start}${expected}}`)
    }
  })

  it('has no word about usage where nothing is streamed', () => {
    assert.equal(asked({ max_tokens: 1 }).bodyFor('m').includes('stream_options'), false)
  })
})

describe('MODEL-6 what costs money beyond tokens', () => {
  const refused: Readonly<Record<string, readonly unknown[]>> = {
    service_tier: ['flex', 'priority', 'scale', 'fast', 1],
    web_search_options: [{}, { search_context_size: 'low' }],
    search_parameters: [{ mode: 'auto' }],
    search_options: [{}],
    enable_search: [true],
    plugins: [[{ id: 'web' }]],
    data_sources: [[]],
    moderation: [{ model: 'other' }],
    models: [['a', 'b']],
    fallbacks: [['a']],
    route: ['fallback'],
    audio: [{ voice: 'a', format: 'wav' }],
    prediction: [{ type: 'content', content: 'a' }],
    best_of: [4],
    chat_template: ['{{ messages }}'],
    mm_processor_kwargs: [{}],
    modalities: [['audio'], ['text', 'audio'], 'audio'],
    prompt_cache_retention: ['24h'],
    prompt_cache_options: [{ ttl: '12h' }, 'long'],
    tools: [[{ type: 'web_search' }], [{ type: 'function' }, { type: 'mcp' }], [{}], [null], {}],
    functions: [{}],
  }
  for (const [name, values] of Object.entries(refused)) {
    it(`is refused by the name of ${name}`, () => {
      for (const value of values) refuses({ [name]: value }, new RegExp(`"${name}`))
    })
  }

  it('is refused in a part that asks for a long cache', () => {
    const part = { type: 'text', text: 'a', prompt_cache_breakpoint: { mode: 'explicit', ttl: '12h' } }
    refuses({ messages: [{ role: 'user', content: [part] }] }, /prompt_cache_breakpoint\.ttl" must be "30m"/)
  })

  it('is not what is said at its standard', () => {
    asked({ service_tier: 'auto', modalities: ['text'], prompt_cache_retention: 'in_memory', audio: null })
    asked({ service_tier: 'default', prompt_cache_options: { mode: 'explicit', ttl: '30m' }, web_search_options: null })
    asked({
      tools: [
        { type: 'function', function: { name: 'f' } },
        { type: 'custom', custom: { name: 'c' } },
      ],
    })
    asked({ some_member_of_an_upstream: { a: [1] }, reasoning_effort: 'high', store: true, seed: 1 })
  })
})

describe('the bound of the input', () => {
  const content = (...parts: readonly unknown[]) => ({ messages: [{ role: 'user', content: parts }] })

  it('is the bytes of the text and what templates add', () => {
    const around = OVERHEAD.request + OVERHEAD.message + OVERHEAD.text
    for (const bytes of [1, 2, 5_000]) {
      const { inputMost } = asked({ messages: [{ role: 'user', content: 'x'.repeat(bytes) }] })
      assert.ok(inputMost > bytes && inputMost <= bytes + 300, `docs/models.md: ${inputMost} for ${bytes}`)
    }
    const more = asked({ messages: [{ role: 'user', content: 'é'.repeat(1000) }] }).inputMost
    const less = asked({ messages: [{ role: 'user', content: '' }] }).inputMost
    assert.equal(more - less, 2000)
    assert.ok(less >= around && less < around + 16, `${less}`)
  })

  it('counts the longer form of what some tokenizers take apart', () => {
    const plain = asked({ messages: [{ role: 'user', content: '' }] }).inputMost
    assert.equal(asked({ messages: [{ role: 'user', content: '\ufdfa'.repeat(10) }] }).inputMost - plain, 330)
  })

  it('takes what a part is declared to have, whatever its data', () => {
    const image = (url: string) => ({ type: 'image_url', image_url: { url, detail: 'low' } })
    const one = asked(content(image('https://example.com/a.png'))).inputMost
    assert.equal(asked(content(image(`data:image/png;base64,${'A'.repeat(50_000)}`))).inputMost, one)
    const two = asked(content(image('https://a'), image('https://b'))).inputMost
    assert.ok(two - one >= 256 && two - one < 350, `${two - one}`)
  })

  it('is the context window where a part has no declared size', () => {
    const parts = [
      { type: 'file', file: { file_id: 'f' } },
      { type: 'video_url', video_url: { url: 'https://a' } },
      { type: '__proto__' },
      { text: 'a part without a type' },
    ]
    for (const part of parts) assert.equal(asked(content(part)).inputMost, LIMITS.contextWindow)
  })

  it('is never above the context window', () => {
    assert.equal(asked({ messages: [{ role: 'user', content: 'a'.repeat(200_000) }] }).inputMost, 128_000)
  })

  it('counts the text beside data, such as the name of a file', () => {
    const limits = { ...LIMITS, partTokens: { file: 100 } }
    const file = (filename: string) => content({ type: 'file', file: { file_data: 'A'.repeat(9_000), filename } })
    const grown = asked(file('n'.repeat(5_000)), limits).inputMost - asked(file('n'), limits).inputMost
    assert.equal(grown, 4_999)
  })

  it('counts tools, calls and names', () => {
    const tool = { type: 'function', function: { name: 'f', description: 'd'.repeat(3_000) } }
    assert.ok(asked({ tools: [tool] }).inputMost - asked().inputMost >= 3_000 + OVERHEAD.anyTools + OVERHEAD.tool)
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: 'a'.repeat(2_000) } }
    assert.ok(asked({ messages: [{ role: 'assistant', tool_calls: [call] }] }).inputMost > 2_000)
    assert.ok(asked({ messages: [{ role: 'r'.repeat(2_000), content: '' }] }).inputMost > 2_000)
  })

  it('takes time in proportion to the text, whatever it is', () => {
    const startedMs = performance.now()
    const { inputMost } = asked({ messages: [{ role: 'user', content: `a${'\u0300\u0316'.repeat(250_000)}` }] })
    assert.ok(inputMost > 0)
    judge(PROOF, 'the bound of half a million marks', { unit: 'ms', atMost: 10_000 }, [performance.now() - startedMs])
  })
})

describe('the text of the input', () => {
  it('has the texts, the calls and the tools, and no data', () => {
    const text = asked({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', name: 'anna', content: [{ type: 'text', text: 'Look:' }] },
        { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,SECRET' } }] },
      ],
      tools: [{ type: 'function', function: { name: 'weather' } }],
      temperature: 1,
    }).inputText()
    for (const part of ['Be brief.', 'Look:', 'anna', 'weather']) assert.ok(text.includes(part), part)
    for (const part of ['SECRET', 'temperature', 'user']) assert.ok(!text.includes(part), part)
  })
})

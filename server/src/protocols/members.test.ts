import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ModelProtocol } from '../catalogue/operation.ts'
import { Fault } from '../kernel/fault.ts'
import type { ModelAsk, ModelLimits } from './protocol.ts'
import { SPOKEN } from './protocols.ts'
import { PLAIN_PROFILE } from './route-profile.ts'

const LIMITS: ModelLimits = { contextWindow: 200_000, outputCap: 4_096, outputMost: 64_000, partTokens: { image: 256 } }
const MESSAGES = [{ role: 'user', content: 'Hello' }]
const BODIES: Readonly<Record<ModelProtocol, Readonly<Record<string, unknown>>>> = {
  openai: { model: 'm', messages: MESSAGES },
  openai_responses: { model: 'm', input: 'Hello' },
  anthropic: { model: 'm', max_tokens: 10, messages: MESSAGES },
  anthropic_count_tokens: { model: 'm', messages: MESSAGES },
  gemini: { contents: [{ parts: [{ text: 'Hello' }] }] },
  gemini_stream: { contents: [{ parts: [{ text: 'Hello' }] }] },
  gemini_count_tokens: { contents: [{ parts: [{ text: 'Hello' }] }] },
  gemini_embeddings: { content: { parts: [{ text: 'Hello' }] } },
  gemini_batch_embeddings: { requests: [{ content: { parts: [{ text: 'Hello' }] } }] },
  openai_embeddings: { model: 'm', input: 'Hello' },
  openai_images: { model: 'm', prompt: 'Hello' },
}
type Name = keyof typeof BODIES
type Headers = Readonly<Record<string, string>>

function asked(name: Name, members: Record<string, unknown> = {}, headers: Headers = {}): ModelAsk {
  const text = JSON.stringify({ ...BODIES[name], ...members })
  return SPOKEN[name].protocol.ask({ body: JSON.parse(text), rawBody: Buffer.from(text), headers }, LIMITS)
}

function refuses(name: Name, members: Record<string, unknown>, expected: RegExp, headers: Headers = {}): void {
  assert.throws(
    () => asked(name, members, headers),
    (error) => error instanceof Fault && error.code === 'invalid_request' && expected.test(error.message),
    `${name} ${JSON.stringify(members)}`,
  )
}

const content = (...parts: readonly unknown[]) => ({ messages: [{ role: 'user', content: parts }] })
const items = (...list: readonly unknown[]) => ({ input: list })
const parts = (...list: readonly unknown[]) => ({ contents: [{ parts: list }] })

describe('members that no table knows', () => {
  const unknown: readonly (readonly [Name, Record<string, unknown>, string])[] = [
    ['openai', { something: null }, 'something'],
    ['openai', { stream_options: { every: 1 } }, 'stream_options.every'],
    ['openai', { messages: [MESSAGES[0], { role: 'user', content: '', cost: 1 }] }, 'messages[1].cost'],
    ['openai', content({ type: 'text', text: 'a', cache: true }), 'messages[0].content[0].cache'],
    ['openai', content({ type: 'video_url', video_url: {} }), 'messages[0].content[0].type: "video_url"'],
    [
      'openai',
      content({ type: 'image_url', image_url: { url: 'a', size: 'huge' } }),
      'messages[0].content[0].image_url.size',
    ],
    ['openai', { tools: [{ type: 'function', function: { name: 'f', run: 1 } }] }, 'tools[0].function.run'],
    ['openai', { response_format: { type: 'text', grammar: 'x' } }, 'response_format.grammar'],
    ['openai_responses', { something: 1 }, 'something'],
    ['openai_responses', items({ type: 'of_tomorrow' }), 'input[0].type: "of_tomorrow"'],
    ['openai_responses', items({ role: 'user', content: 'a', weight: 1 }), 'input[0].weight'],
    [
      'openai_responses',
      items({ role: 'user', content: [{ type: 'input_text', text: 'a', more: 1 }] }),
      'input[0].content[0].more',
    ],
    ['openai_responses', { reasoning: { depth: 9 } }, 'reasoning.depth'],
    ['openai_responses', { text: { format: { type: 'text', more: 1 } } }, 'text.format.more'],
    ['openai_responses', { tools: [{ type: 'function', name: 'f', more: 1 }] }, 'tools[0].more'],
    ['openai_embeddings', { truncate: 'END' }, 'truncate'],
    ['gemini_embeddings', { something: 1 }, 'something'],
    ['gemini_embeddings', { embedContentConfig: { something: 1 } }, 'embedContentConfig.something'],
    ['gemini_batch_embeddings', { requests: [{ content: {}, more: 1 }] }, 'requests[0].more'],
    ['anthropic', { something: 1 }, 'something'],
    ['anthropic', { system: [{ type: 'text', text: 'a', more: 1 }] }, 'system[0].more'],
    ['anthropic', { thinking: { type: 'enabled', effort: 1 } }, 'thinking.effort'],
    ['anthropic', { output_config: { tier: 'x' } }, 'output_config.tier'],
    ['anthropic', content({ type: 'of_tomorrow' }), 'messages[0].content[0].type: "of_tomorrow"'],
    ['anthropic_count_tokens', { tools: [{ name: 'f', input_schema: {}, price: 1 }] }, 'tools[0].price'],
    ['gemini', { something: 1 }, 'something'],
    ['gemini', { generation_config: { thinking_config: { depth: 1 } } }, 'generationConfig.thinkingConfig.depth'],
    ['gemini_stream', parts({ text: 'a', weight: 1 }), 'contents[0].parts[0].weight'],
    ['gemini', { safetySettings: [{ category: 'a', level: 1 }] }, 'safetySettings[0].level'],
    ['gemini', { toolConfig: { other: 1 } }, 'toolConfig.other'],
    ['gemini_count_tokens', { generateContentRequest: { ...BODIES.gemini, x: 1 } }, 'generateContentRequest.x'],
  ]
  for (const [name, members, path] of unknown) {
    it(`are told by where they stand: ${name}, ${path}`, () => {
      assert.deepEqual(asked(name, members).unknownMembers, [path])
    })
  }

  it('are in the bound of the input, for routes that pass them on', () => {
    const grown = asked('openai', { something: 'x'.repeat(1_000) }).inputMost - asked('openai').inputMost
    assert.ok(grown >= 1_000)
  })

  it('are told of in a bounded way, and hide nothing that is refused', () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`a${at}${'x'.repeat(100)}`, 1]))
    const { unknownMembers } = asked('openai', many)
    assert.ok(unknownMembers.length <= 8 && unknownMembers.every((path) => path.length <= 64))
    refuses('openai', { ...many, provider: {} }, /"provider" is not supported/)
  })
})

describe('names below the top level', () => {
  const lookalikes: readonly (readonly [Name, Record<string, unknown>, RegExp])[] = [
    ['openai', { tools: [{ type: 'function', function: { name: 'f' }, Type: 'web_search' }] }, /"tools\[0\]\.Type"/],
    ['openai', { stream_options: { include_usage: true, Include_Usage: false } }, /"stream_options.Include_Usage"/],
    ['openai', { messages: [{ role: 'user', content: 'a', Content: 'b' }] }, /"messages\[0\]\.Content"/],
    ['openai', content({ type: 'text', text: 'a', Text: 'b' }), /content\[0\]\.Text"/],
    ['openai', { maxTokens: 5 }, /"maxTokens" .*"max_tokens"/],
    ['anthropic', { cache_control: { type: 'ephemeral', ttl: '5m', TTL: '1h' } }, /"cache_control.TTL"/],
    ['anthropic', content({ type: 'text', text: 'a', cache_control: { ttl: '5m', Ttl: '1h' } }), /cache_control\.Ttl"/],
    ['anthropic', { tools: [{ name: 'f', input_schema: {}, Type: 'web_search_20250305' }] }, /"tools\[0\]\.Type"/],
    ['gemini', { tools: [{ functionDeclarations: [], GoogleSearch: {} }] }, /"tools\[0\]\.GoogleSearch"/],
    ['gemini', { generationConfig: { thinkingConfig: { thinkingBudget: 1, thinking_budget: 2 } } }, /two spellings/],
    ['gemini', parts({ inlineData: { mimeType: 'image/png', mime_type: 'audio/wav' } }), /mimeType" is given in two/],
    ['openai', { thing: 1, Thing: 2 }, /"Thing" is a duplicate key in another spelling/],
    ['openai', { 'max-tokens': 5 }, /"max-tokens" .*"max_tokens"/],
    ['openai', { 'max_tokens ': 5 }, /"max_tokens " .*"max_tokens"/],
    ['openai', { 'service-tier': 'flex' }, /"service-tier" .*"service_tier"/],
    ['openai', { Ｎ: 9 }, /"Ｎ" .*"n"/],
    ['openai', { 'extra.body': {} }, /"extra.body" .*"extra_body"/],
    [
      'openai',
      content({ type: 'Input_Audio', input_audio: {} }),
      /content\[0\]\.type" may not be "Input_Audio": audio/,
    ],
    ['openai', content({ type: 'inputAudio ' }), /may not be "inputAudio ": audio/],
    ['openai', content({ type: ['x'], Input_Audio: {} }), /audio has no price/],
    ['openai', content({ type: 'Text', text: 'a' }), /may not be "Text": write it "text"/],
    ['anthropic', content({ type: 'Container-Upload' }), /may not be "Container-Upload": tools that the provider runs/],
  ]
  for (const [name, members, expected] of lookalikes) {
    it(`are refused in another case or twice: ${name}, ${JSON.stringify(members).slice(0, 60)}`, () => {
      refuses(name, members, expected)
    })
  }

  it('are the caller’s own where it says what a tool takes or got, and in metadata', () => {
    const free = { name: 'a', Name: 'b', NAME: { Type: 1, type: 2 } }
    asked('openai', {
      metadata: free,
      logit_bias: { a: 1, A: 2 },
      tools: [{ type: 'function', function: { name: 'f', parameters: free } }],
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema: free } },
    })
    asked('anthropic', {
      tools: [{ name: 'f', input_schema: free, input_examples: [free] }],
      ...content({ type: 'tool_use', id: 'i', name: 'f', input: free }),
    })
    asked('gemini', {
      labels: free,
      tools: [{ functionDeclarations: [{ name: 'f', parameters: free, parametersJsonSchema: free }] }],
      generationConfig: { responseSchema: free },
      ...parts({ functionCall: { name: 'f', args: free } }, { functionResponse: { name: 'f', response: free } }),
    })
  })
})

describe('members that are known to cost', () => {
  const names = [
    ...['provider', 'preset', 'extra_body', 'api_base', 'num_retries', 'n_predict', 'max_output_tokens'],
    ...['thinking_budget', 'min_tokens', 'transforms', 'best_of', 'ignore_eos'],
  ]
  for (const name of names) {
    it(`are refused on every route: ${name}`, () => {
      for (const spelling of [name, name.toUpperCase()])
        refuses('openai', { [spelling]: 1 }, new RegExp(`"${spelling}" is not supported`))
    })
  }
})

describe('audio', () => {
  it('is refused by name, for it has no price', () => {
    const audio = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }
    refuses('openai', content(audio), /content\[0\]\.type" may not be "input_audio": audio/)
    refuses('openai', { messages: [{ role: 'assistant', audio: { id: 'a' } }] }, /"messages\[0\]\.audio"/)
    for (const url of [
      'data:audio/wav;base64,AAAA',
      ' DATA:Audio/mp3,A',
      'data:application/ogg,A',
      'da\nta:au\tdio/wav,A',
    ])
      refuses('openai', content({ type: 'image_url', image_url: { url } }), /audio has no price/)
    refuses('openai', content({ type: 'file', file: { file_data: 'data:audio/wav;base64,AA' } }), /audio has no price/)
    const source = { type: 'base64', media_type: 'audio/wav', data: 'AAAA' }
    refuses('anthropic', content({ type: 'document', source }), /audio has no price/)
    for (const part of [
      { inlineData: { mimeType: 'audio/wav', data: 'AAAA' } },
      { inline_data: { mime_type: ' AUDIO/ogg', data: 'AAAA' } },
      { fileData: { mimeType: 'audio/mp3', fileUri: 'https://a' } },
      { functionResponse: { name: 'f', parts: [{ inlineData: { mimeType: 'audio/wav', data: 'AAAA' } }] } },
    ])
      refuses('gemini', parts(part), /audio has no price/)
    for (const part of [
      { inlineData: { data: 'AAAA' } },
      { fileData: { fileUri: 'https://a' } },
      { inlineData: 'AAAA' },
    ])
      refuses('gemini', parts(part), /"mimeType"/)
  })
})

describe('a picture', () => {
  const most = (name: Name, ...list: readonly unknown[]) => asked(name, content(...list)).inputMost
  const url = (address: string) => ({ type: 'image_url', image_url: { url: address } })
  const source = (members: object) => ({ type: 'image', source: members })
  const PDF = 'JVBERi0x'.repeat(50)

  it('is held as one where its data or its address say so', () => {
    for (const address of ['https://a/b.png', 'http://a', 'data:image/png;base64,AAAA', ' DATA:Image/webp,A'])
      assert.ok(most('openai', url(address)) < 1_000, address)
    for (const members of [
      { type: 'base64', media_type: 'image/png', data: 'AAAA' },
      { type: 'url', url: 'https://a' },
      { type: 'file', file_id: 'f' },
    ])
      assert.ok(most('anthropic', source(members)) < 1_000, JSON.stringify(members))
  })

  it('is held as a file where it is something else', () => {
    for (const address of [
      ...[`data:application/pdf;base64,${PDF}`, 'data:video/mp4;base64,AAAA', `data:,${PDF}`, `data:;base64,${PDF}`],
      ...['gs://a/b.pdf', PDF, 'da\tta:application/pdf;base64,AAAA'],
    ])
      assert.equal(most('openai', url(address)), LIMITS.contextWindow, address)
    assert.equal(most('openai', { type: 'image_url', image_url: `data:application/pdf,${PDF}` }), LIMITS.contextWindow)
    for (const members of [
      { type: 'base64', media_type: 'application/pdf', data: PDF },
      { type: 'base64', data: PDF },
      { type: 'url', url: `data:application/pdf;base64,${PDF}` },
    ])
      assert.equal(most('anthropic', source(members)), LIMITS.contextWindow, JSON.stringify(members))
  })

  it('has no source that is a text', () => {
    const text = source({ type: 'text', media_type: 'text/plain', data: 'x'.repeat(600_000) })
    refuses('anthropic', content(text), /source\.type" may not be "text"/)
  })
})

describe('betas', () => {
  it('of Claude Code pass', () => {
    const header = [
      ...['claude-code-20250219', 'interleaved-thinking-2025-05-14', 'fine-grained-tool-streaming-2025-05-14'],
      ...['context-management-2025-06-27', 'prompt-caching-scope-2026-01-05', 'effort-2025-11-24', 'oauth-2025-04-20'],
    ].join(', ')
    assert.deepEqual(asked('anthropic', {}, { 'anthropic-beta': header }).unknownMembers, [])
  })

  it('that nobody knows are told by their names', () => {
    const anthropic = asked(
      'anthropic',
      {},
      { 'anthropic-beta': 'interleaved-thinking-2025-05-14,of-tomorrow-2027-01-01' },
    )
    assert.deepEqual(anthropic.unknownMembers, ['anthropic-beta: of-tomorrow-2027-01-01'])
    for (const name of ['openai', 'openai_responses', 'openai_embeddings', 'openai_images'] as const) {
      assert.deepEqual(asked(name, {}, { 'openai-beta': 'fast=v1' }).unknownMembers, ['openai-beta: fast=v1'])
      for (const beta of ['assistants=v2', 'responses=experimental'])
        assert.deepEqual(asked(name, {}, { 'openai-beta': beta }).unknownMembers, [])
    }
  })

  it('that cost are refused whatever parts them and however they are spelt', () => {
    for (const header of [
      ...['oauth-2025-04-20;context-1m-2025-08-07', 'oauth-2025-04-20 context-1m-2025-08-07', 'Context-1M-2025-08-07'],
      ...['oauth-2025-04-20\tcontext-1m', 'context_1m_2025_08_07', 'context1m-20250807', ',,;context-1m'],
    ])
      refuses('anthropic', {}, /anthropic-beta must not have "context.*": it has a price of its own/, {
        'anthropic-beta': header,
      })
  })

  it('that cost are refused, with the reason', () => {
    refuses('anthropic', {}, /anthropic-beta.*"advisor-tool-2026-03-01": it uses another model/, {
      'anthropic-beta': 'advisor-tool-2026-03-01',
    })
  })
})

describe('the version of the protocol', () => {
  it('is one whose answers can be read', () => {
    for (const name of ['anthropic', 'anthropic_count_tokens'] as const) {
      for (const version of ['2023-06-01', '2026-10-21']) asked(name, {}, { 'anthropic-version': version })
      for (const version of ['2023-01-01', '2027-01-01', 'latest', '', '2023-06-01, 2026-10-21'])
        refuses(name, {}, /anthropic-version must be one of 2023-06-01, 2026-10-21/, { 'anthropic-version': version })
    }
  })
})

describe('what a caller was given', () => {
  it('goes back into a conversation: the reasoning of an answer', () => {
    const details = [{ type: 'reasoning.text', text: 'Hm.', signature: null }]
    const answer = {
      role: 'assistant',
      content: 'a',
      reasoning: 'Hm.',
      reasoning_details: details,
      reasoning_content: 'Hm.',
    }
    const { unknownMembers, inputMost } = asked('openai', { messages: [...MESSAGES, answer] })
    assert.deepEqual(unknownMembers, [])
    const without = asked('openai', { messages: [...MESSAGES, { role: 'assistant', content: 'a' }] })
    assert.ok(inputMost >= without.inputMost + JSON.stringify(details).length)
  })

  it('may be cached for whom a beta says', () => {
    const cache_control = { type: 'ephemeral', ttl: '5m', scope: 'global' }
    assert.deepEqual(asked('anthropic', content({ type: 'text', text: 'a', cache_control })).unknownMembers, [])
  })
})

describe('a value that has no price', () => {
  it('does not pass in a list, but where lists are meant', () => {
    for (const value of [[], ['auto'], [['flex']], ['auto', 'flex']])
      refuses('openai', { service_tier: value }, /"service_tier" must be "auto" or "default"/)
    refuses('openai_embeddings', { stream: [] }, /"stream" is not supported/)
    refuses('anthropic', { cache_control: { type: 'ephemeral', ttl: [] } }, /"cache_control.ttl"/)
    refuses('gemini', { serviceTier: ['standard'] }, /"serviceTier"/)
    asked('openai', { modalities: ['text'] })
    asked('gemini', { generationConfig: { responseModalities: ['TEXT'] } })
    refuses('openai', { modalities: ['text', 'audio'] }, /"modalities"/)
    refuses('openai', { modalities: [['text']] }, /"modalities"/)
  })
})

describe('the request of Claude Code', () => {
  const ephemeral = { type: 'ephemeral' }
  const body = {
    model: 'm',
    max_tokens: 32_000,
    stream: true,
    metadata: { user_id: JSON.stringify({ device_id: 'd', session_id: 's' }) },
    system: [
      { type: 'text', text: 'You are Claude Code.', cache_control: ephemeral },
      { type: 'text', text: 'Be brief.', cache_control: ephemeral },
    ],
    thinking: { type: 'adaptive' },
    output_config: { effort: 'high' },
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    tools: [
      { name: 'Bash', description: 'Runs.', input_schema: { type: 'object', properties: { Type: {}, type: {} } } },
      { name: 'ToolSearch', description: 'Finds.', input_schema: { type: 'object' }, eager_input_streaming: true },
      { name: 'mcp__a__b', description: 'B.', input_schema: { type: 'object' }, defer_loading: true },
    ],
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'Hello', cache_control: ephemeral }] },
      { role: 'system', content: 'A reminder.' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm.', signature: 'AAAA' },
          { type: 'tool_use', id: 't', name: 'ToolSearch', input: { query: 'b' }, caller: { type: 'direct' } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 't', content: [{ type: 'tool_reference', tool_name: 'mcp__a__b' }] },
        ],
      },
    ],
  }

  it('is taken, with nothing in it that is not known, and passes as it came', () => {
    const rawBody = Buffer.from(JSON.stringify(body))
    const headers = { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'claude-code-20250219' }
    const ask = SPOKEN.anthropic.protocol.ask({ body, rawBody, headers }, LIMITS)
    assert.deepEqual(ask.unknownMembers, [])
    assert.equal(ask.outputLimit, 32_000)
    assert.ok(ask.inputMost < 20_000, `${ask.inputMost}`)
    assert.equal(ask.bodyFor('m'), rawBody)
  })
})

describe('the output limit by a route’s profile', () => {
  const sent = (name: Name, members: Record<string, unknown>, outputLimit: string | null): unknown =>
    JSON.parse(
      asked(name, members)
        .bodyFor('m', { ...PLAIN_PROFILE, outputLimit })
        .toString(),
    )

  it('is the one member that its upstreams know, with the caller’s limit or the default cap', () => {
    const chat = BODIES.openai
    const cases: readonly (readonly [Record<string, unknown>, string | null, Record<string, unknown>])[] = [
      [{ max_completion_tokens: 7 }, 'max_tokens', { max_tokens: 7 }],
      [{ max_tokens: 7 }, 'max_completion_tokens', { max_completion_tokens: 7 }],
      [{}, 'max_tokens', { max_tokens: 4_096 }],
      [{}, null, { max_completion_tokens: 4_096 }],
      [{ max_tokens: 9, max_completion_tokens: 7 }, 'max_completion_tokens', { max_completion_tokens: 9 }],
      [{ max_tokens: 9, max_completion_tokens: 7 }, 'max_tokens', { max_tokens: 9 }],
      [{ max_tokens: 9, max_completion_tokens: 7 }, null, { max_tokens: 9, max_completion_tokens: 7 }],
      [{ max_tokens: null }, 'max_completion_tokens', { max_completion_tokens: 4_096 }],
    ]
    for (const [members, profile, expected] of cases)
      assert.deepEqual(sent('openai', members, profile), { ...chat, ...expected })
  })

  it('keeps every other byte, and the very buffer where nothing changes', () => {
    const text =
      '{ "max_completion_tokens" : 1e1 ,"seed": 1.0, "model":"m", "messages":[ {"role":"user","content":"a"} ] }'
    const rawBody = Buffer.from(text)
    const ask = SPOKEN.openai.protocol.ask({ body: JSON.parse(text), rawBody, headers: {} }, LIMITS)
    assert.equal(ask.bodyFor('m', { ...PLAIN_PROFILE, outputLimit: 'max_completion_tokens' }), rawBody)
    assert.equal(
      ask.bodyFor('m', { ...PLAIN_PROFILE, outputLimit: 'max_tokens' }).toString(),
      '{ "seed": 1.0, "model":"m", "messages":[ {"role":"user","content":"a"} ],"max_tokens":10 }',
    )
  })

  it('stands in the settings of Gemini, in one spelling', () => {
    for (const [config, profile, expected] of [
      [{ maxOutputTokens: 7, topK: 1 }, 'max_output_tokens', { topK: 1, max_output_tokens: 7 }],
      [{ max_output_tokens: 7 }, 'maxOutputTokens', { maxOutputTokens: 7 }],
      [{}, 'max_output_tokens', { max_output_tokens: 4_096 }],
      [undefined, 'max_output_tokens', { max_output_tokens: 4_096 }],
    ] as const)
      assert.deepEqual(sent('gemini', { generationConfig: config }, profile), {
        ...BODIES.gemini,
        generationConfig: expected,
      })
    const text = '{"contents":[{"parts":[]}],"generationConfig":{"maxOutputTokens":7}}'
    const ask = SPOKEN.gemini.protocol.ask({ body: JSON.parse(text), rawBody: Buffer.from(text), headers: {} }, LIMITS)
    assert.equal(ask.bodyFor('m', { ...PLAIN_PROFILE, outputLimit: 'maxOutputTokens' }).toString(), text)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Need } from '../catalogue/price-classes.ts'
import { Fault } from '../kernel/fault.ts'
import { anthropic } from './anthropic.ts'
import { gemini, geminiStream } from './gemini.ts'
import { openai } from './openai.ts'
import { openaiImages } from './openai-images.ts'
import { openaiResponses } from './openai-responses.ts'
import type { ModelAsk, ModelLimits, Protocol, Sold } from './protocol.ts'

/** What requests ask for beyond plain tokens, of models that have a price of it and of those that have none. */
const LIMITS: ModelLimits = { contextWindow: 10_000, outputCap: 100, outputMost: 1_000, partTokens: { audio: 300 } }
const SOLD: Sold = {
  needs: new Set<Need>([
    ...(['cache_write_1h', 'input_audio', 'output_audio', 'output_image', 'long_context', 'tier:flex'] as const),
    ...(['tool:web_search', 'tool:web_fetch', 'tool:code_interpreter', 'tool:image_generation'] as const),
  ]),
  toolCalls: 2,
  toolInput: 500,
}

function asked(
  protocol: Protocol,
  body: object,
  sold: Sold | null = SOLD,
  headers = {},
  limits: ModelLimits = LIMITS,
): ModelAsk {
  const text = JSON.stringify(body)
  return protocol.ask(
    { body: JSON.parse(text), rawBody: Buffer.from(text), headers },
    { ...limits, sold: sold ?? undefined },
  )
}

const refuses = (work: () => unknown, says: RegExp) =>
  assert.throws(work, (error) => error instanceof Fault && says.test(error.message))

const MESSAGES = [{ role: 'user', content: 'Hello' }]
const chat = (more: object = {}) => ({ model: 'm', messages: MESSAGES, ...more })
const response = (more: object = {}) => ({ model: 'm', input: 'Hello', ...more })
const SEARCH = { type: 'web_search_20250305', name: 'web_search' }
const AUDIO = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }

describe('a tool that an upstream runs', () => {
  const searching = (max_uses: number) => chat({ tools: [{ ...SEARCH, max_uses }] })
  const looking = (max_tool_calls: number) => response({ max_tool_calls, tools: [{ type: 'web_search' }] })
  const ROOMY = { ...LIMITS, contextWindow: 1_000_000 }
  /** The name of an error, for each call that fails. */
  const FAILED = 128

  it('has the model read all of it again in each round, with what calls brought and what it wrote itself', () => {
    const once = asked(openaiResponses, looking(1), SOLD, {}, ROOMY)
    const first = (once.inputMost - 500 - FAILED - LIMITS.outputMost) / 2
    assert.ok(first > asked(openaiResponses, response()).inputMost)
    assert.equal(once.toolCalls, 1)
    for (const calls of [2, 3, 100]) {
      const later = first + calls * 500 + calls * FAILED + LIMITS.outputMost
      // The number of calls is in the bound too, digit by digit.
      const digits = 2 * (String(calls).length - 1)
      const { inputMost } = asked(openaiResponses, looking(calls), SOLD, {}, ROOMY)
      assert.ok(Math.abs(inputMost - (first + calls * later)) <= digits * (calls + 1), `${calls}: ${inputMost}`)
    }
    // Each time within the context window.
    assert.ok(asked(openaiResponses, looking(100)).inputMost <= 101 * LIMITS.contextWindow)
    const { toolInput: _, ...unknown } = SOLD
    assert.equal(asked(openaiResponses, looking(1), unknown).inputMost, first + LIMITS.contextWindow)
  })

  it('goes on after calls that are too many, until the upstream pauses the turn (Anthropic)', () => {
    const one = asked(anthropic, searching(1), SOLD, {}, ROOMY)
    const nine = asked(anthropic, searching(9), SOLD, {}, ROOMY)
    assert.deepEqual([one.toolCalls, nine.toolCalls], [1, 9])
    const first = (one.inputMost - 10 * (500 + 10 * FAILED + LIMITS.outputMost)) / 11
    assert.ok(first > asked(anthropic, chat()).inputMost)
    assert.equal(nine.inputMost, one.inputMost + 10 * 8 * 500)
    assert.equal(
      asked(anthropic, searching(20), SOLD, {}, ROOMY).inputMost,
      first + 1 + 20 * (first + 1 + 20 * 500 + 20 * FAILED + LIMITS.outputMost),
    )
  })

  it('has a definition in the prompt that the upstream writes', () => {
    const added = (protocol: Protocol, body: (tools: readonly object[]) => object, tool: object) => {
      const most = (tools: readonly object[]) => asked(protocol, body(tools), SOLD, {}, ROOMY).inputEstimate
      return most([tool]) - most([])
    }
    const search = { ...SEARCH, max_uses: 1 }
    const fetch = { type: 'web_fetch_20250910', name: 'web_fetch', max_uses: 1, max_content_tokens: 1 }
    for (const tool of [search, fetch]) assert.ok(added(anthropic, (tools) => chat({ tools }), tool) >= 2_000)
    const hosted = { type: 'web_search' }
    assert.ok(added(openaiResponses, (tools) => response({ tools }), hosted) >= 2_000)
    const inside = { type: 'namespace', name: 'n', tools: [hosted, hosted] }
    assert.ok(added(openaiResponses, (tools) => response({ tools }), inside) >= 4_000)
  })

  it('is bounded by what each of them says (Anthropic), or by all together or the model (Responses)', () => {
    const fetch = { type: 'web_fetch_20250910', name: 'web_fetch', max_uses: 5, max_content_tokens: 500 }
    assert.equal(asked(anthropic, chat({ tools: [{ ...SEARCH, max_uses: 2 }, fetch] })).toolCalls, 7)
    const tools = [{ type: 'web_search' }, { type: 'code_interpreter', container: { type: 'auto' } }]
    const given = asked(openaiResponses, response({ tools, max_tool_calls: 9 }))
    assert.deepEqual([given.toolCalls, JSON.parse(String(given.bodyFor('m'))).max_tool_calls], [9, 9])
    const left = asked(openaiResponses, response({ tools }))
    assert.deepEqual([left.toolCalls, JSON.parse(String(left.bodyFor('m'))).max_tool_calls], [2, 2])
    const hidden = [{ type: 'namespace', name: 'n', tools }]
    assert.equal(asked(openaiResponses, response({ tools: hidden })).toolCalls, 2)
    assert.equal(asked(openaiResponses, response()).toolCalls, undefined)
  })

  it('refuses a tool whose calls have no bound, and bounds that are none', () => {
    const { toolCalls: _, ...unbounded } = SOLD
    // Nothing that is sent to this one could say what the price allows.
    for (const sold of [SOLD, unbounded])
      for (const more of [{}, { max_uses: null }])
        refuses(
          () => asked(anthropic, chat({ tools: [{ ...SEARCH, ...more }] }), sold),
          /"tools\[0\]\.max_uses" is required: .* Set the maximum number of calls, from 1 to 1000/,
        )
    refuses(
      () => asked(openaiResponses, response({ tools: [{ type: 'web_search' }] }), unbounded),
      /"max_tool_calls" is required/,
    )
    for (const max_uses of [0, -1, 1.5, '2', 1_001])
      refuses(() => asked(anthropic, chat({ tools: [{ ...SEARCH, max_uses }] })), /whole number from 1 to 1000/)
    const many = (count: number, max_uses: number) =>
      chat({ tools: Array.from({ length: count }, () => ({ ...SEARCH, max_uses })) })
    assert.equal(asked(anthropic, many(2, 500)).toolCalls, 1_000)
    refuses(() => asked(anthropic, many(3, 500)), /"max_uses" of all "tools" together must be at most 1000/)
  })

  it('may fetch no more than a call is held to bring', () => {
    const fetching = (more: object) => chat({ tools: [{ type: 'web_fetch', name: 'web_fetch', max_uses: 1, ...more }] })
    asked(anthropic, fetching({ max_content_tokens: 500 }))
    for (const max_content_tokens of [undefined, null, 0, 501, 1.5, '500'])
      refuses(
        () => asked(anthropic, fetching({ max_content_tokens })),
        /"tools\[0\]\.max_content_tokens" is required, as a whole number from 1 to 500/,
      )
    const { toolInput: _, ...unknown } = SOLD
    asked(anthropic, fetching({}), unknown)
  })

  it('may not reach what is stored, nor another model', () => {
    for (const tool of [
      { type: 'code_interpreter', container: { type: 'auto', file_ids: ['file-1'] } },
      { type: 'code_interpreter', container: { type: 'cntr_1' } },
      { type: 'code_interpreter', container: 'cntr_1' },
      { type: 'image_generation', model: 'another' },
      { type: 'image_generation', partial_images: 2 },
    ])
      refuses(() => asked(openaiResponses, response({ tools: [tool] })), /"tools\[0\]/)
    refuses(
      () => asked(openaiResponses, response({ stream: true, tools: [{ type: 'image_generation' }] })),
      /in a stream/,
    )
  })

  it('is no preview of a search, which has another price', () => {
    for (const type of ['web_search_preview', 'web_search_preview_2025_03_11'])
      refuses(
        () => asked(openaiResponses, response({ tools: [{ type }] })),
        /"tools\[0\]\.type" may not be "web_search_preview.*another price than web_search/,
      )
    assert.equal(asked(openaiResponses, response({ tools: [{ type: 'web_search_2025_08_26' }] })).toolCalls, 2)
  })

  it('may not put what it has found into the event that has the usage', () => {
    const tools = [{ type: 'web_search' }]
    for (const include of ['web_search_call.results', 'file_search_call.results', 'code_interpreter_call.outputs']) {
      const body = response({ tools, include: ['reasoning.encrypted_content', include] })
      refuses(
        () => asked(openaiResponses, { ...body, stream: true }),
        new RegExp(`"include" must not have "${include}"`),
      )
      asked(openaiResponses, body)
    }
    const include = ['reasoning.encrypted_content', 'web_search_call.action.sources']
    asked(openaiResponses, response({ tools, include, stream: true }))
  })

  it('paints no more pictures than have room in a reply', () => {
    const painting = (max_tool_calls: number) => response({ max_tool_calls, tools: [{ type: 'image_generation' }] })
    assert.equal(asked(openaiResponses, painting(7)).replyBytes, 7 * 8 * 1_048_576)
    refuses(() => asked(openaiResponses, painting(8)), /"max_tool_calls" must be at most 7 with image_generation/)
  })

  it('may go on in a conversation, within the context window', () => {
    const item = { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } }
    const input = [{ role: 'user', content: 'a' }, item]
    assert.equal(asked(openaiResponses, response({ input })).inputMost, LIMITS.contextWindow)
    refuses(() => asked(openaiResponses, response({ input }), null), /"input\[1\]\.type" may not be "web_search_call"/)
  })
})

describe('what has a price of its own', () => {
  const hourly = chat({ system: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: '1h' } }] })
  const heard = chat({ messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }, AUDIO] }] })

  it('is noted where the model has it, and refused in the same words as ever where it has not', () => {
    const needs = (protocol: Protocol, body: object) => [...(asked(protocol, body).needs ?? [])]
    assert.deepEqual(needs(anthropic, hourly), ['cache_write_1h'])
    assert.deepEqual(needs(openai, chat({ service_tier: 'flex' })), ['tier:flex'])
    assert.deepEqual(needs(openai, heard), ['input_audio'])
    assert.deepEqual(needs(openai, chat({ modalities: ['text', 'audio'], audio: { voice: 'a', format: 'wav' } })), [
      'output_audio',
    ])
    assert.deepEqual(needs(openaiImages, { model: 'm', prompt: 'a fox' }), ['output_image'])
    const pictured = { contents: 'a', generationConfig: { responseModalities: ['TEXT', 'IMAGE'] } }
    assert.deepEqual(needs(gemini, pictured), ['output_image'])
    refuses(
      () => asked(anthropic, hourly, null),
      /"system\[0\]\.cache_control\.ttl" must be "5m": a cache that is kept longer/,
    )
    refuses(() => asked(openai, chat({ service_tier: 'priority' })), /"service_tier" must be "auto" or "default"/)
    refuses(() => asked(openai, heard, null), /may not be "input_audio": audio has no price of its own/)
    refuses(() => asked(gemini, pictured, null), /"generationConfig\.responseModalities" must be "TEXT"/)
  })

  it('is whatever a model of Gemini gives by itself, where the request does not say what', () => {
    const needs = (generationConfig?: object) => [
      ...(asked(gemini, { contents: 'a', ...(generationConfig && { generationConfig }) }).needs ?? []),
    ]
    for (const config of [undefined, {}, { responseModalities: null }, { response_modalities: [] }])
      assert.deepEqual(needs(config), ['output_audio', 'output_image'], JSON.stringify(config))
    for (const config of [{ responseModalities: ['TEXT'] }, { response_modalities: 'TEXT' }])
      assert.deepEqual(needs(config), [], JSON.stringify(config))
    assert.deepEqual([...(asked(gemini, { contents: 'a' }, null).needs ?? [])], [])
    refuses(
      () => asked(geminiStream, { contents: 'a' }),
      /Only text can be streamed here.*text alone in "generationConfig\.responseModalities"/,
    )
    asked(geminiStream, { contents: 'a', generationConfig: { responseModalities: ['TEXT'] } })
  })

  it('has room in a reply, or is refused by the member to lower', () => {
    const wide = { ...LIMITS, outputCap: 50_000, outputMost: 50_000 }
    const drawn = (config: object) => asked(gemini, { contents: 'a', generationConfig: config }, SOLD, {}, wide)
    const spoken = (more: object) =>
      asked(openai, chat({ modalities: ['audio'], audio: { voice: 'a', format: 'wav' }, ...more }), SOLD, {}, wide)
    // 60 MiB in tokens of 4 KiB.
    assert.deepEqual([drawn({}).outputLimit, drawn({}).replyBytes], [15_360, 60 * 1_048_576])
    assert.equal(JSON.parse(String(drawn({}).bodyFor('m'))).generationConfig.maxOutputTokens, 15_360)
    assert.equal(drawn({ candidateCount: 4 }).outputLimit, 3_840)
    assert.equal(drawn({ maxOutputTokens: 15_360 }).outputLimit, 15_360)
    refuses(() => drawn({ maxOutputTokens: 15_361 }), /"generationConfig\.maxOutputTokens" must be at most 15360/)
    assert.equal(drawn({ maxOutputTokens: 50_000, responseModalities: ['TEXT'] }).outputLimit, 50_000)
    refuses(() => spoken({ max_completion_tokens: 20_000 }), /"max_completion_tokens" must be at most 15360/)
    refuses(() => spoken({ max_tokens: 8_000, n: 2 }), /"max_tokens" must be at most 7680 for 2 answers/)
  })

  it('is a beta of long input where the model has steps of it', () => {
    const headers = { 'anthropic-beta': 'context-1m-2025-08-07' }
    assert.deepEqual(asked(anthropic, chat(), SOLD, headers).unknownMembers, [])
    refuses(() => asked(anthropic, chat(), null, headers), /must not have "context-1m-2025-08-07"/)
  })

  it('is counted apart from text: parts by their kind, and what is called audio in another part as anything', () => {
    assert.deepEqual(asked(openai, heard).partsMost, { image: 0, any: 300 + 16 })
    const picture = { type: 'image_url', image_url: { url: 'data:audio/wav;base64,AAAA' } }
    const hidden = chat({ messages: [{ role: 'user', content: [picture] }] })
    assert.deepEqual(asked(openai, hidden).partsMost, { image: 0, any: LIMITS.contextWindow })
    const inline = { contents: [{ parts: [{ inlineData: { mimeType: 'audio/wav', data: 'AAAA' } }] }] }
    assert.deepEqual(asked(gemini, inline).partsMost, { image: 0, any: 300 + 16 })
    assert.equal(asked(openai, chat()).partsMost, undefined)
  })

  it('is the tier that is named, and any where none is', () => {
    const tiers = [
      ...[asked(openai, chat()), asked(openai, chat({ service_tier: 'auto' }))],
      ...[asked(openai, chat({ service_tier: 'default' })), asked(anthropic, chat({ service_tier: 'standard_only' }))],
      ...[
        asked(gemini, { contents: 'a', serviceTier: 'standard' }),
        asked(openaiResponses, response({ service_tier: 'flex' })),
      ],
    ].map(({ tier }) => tier)
    assert.deepEqual(tiers, ['auto', 'auto', 'standard', 'standard', 'standard', 'flex'])
  })
})

describe('what a tool has found that an upstream ran', () => {
  const found = {
    type: 'web_search_tool_result',
    tool_use_id: 'a',
    content: [{ type: 'web_search_result', title: 'x'.repeat(3_000) }],
  }
  const block = `event: content_block_start\ndata: ${JSON.stringify({ type: 'content_block_start', content_block: found })}\n\n`
  const item = { type: 'file_search_call', id: 'fs_1', results: [{ text: 'x'.repeat(3_000) }] }
  const done = `event: response.output_item.done\ndata: ${JSON.stringify({ type: 'response.output_item.done', item })}\n\n`

  for (const [name, protocol, frame] of [
    ['anthropic', anthropic, block],
    ['responses', openaiResponses, done],
  ] as const)
    it(`is nothing that was generated, where such a tool was asked for: ${name}`, () => {
      for (const [toolCalls, bytes] of [
        [{ toolCalls: 1 }, 0],
        [{}, 3_000],
      ] as const) {
        const reader = protocol.stream?.createReader({ choices: 1, wantsUsage: true, ...toolCalls }) ?? assert.fail()
        reader.push(Buffer.from(frame))
        assert.equal(reader.textBytes() >= 3_000, bytes === 3_000)
      }
    })
})

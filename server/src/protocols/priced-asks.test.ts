import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Need } from '../catalogue/price-classes.ts'
import { Fault } from '../kernel/fault.ts'
import { anthropic } from './anthropic.ts'
import { gemini } from './gemini.ts'
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

function asked(protocol: Protocol, body: object, sold: Sold | null = SOLD, headers = {}): ModelAsk {
  const text = JSON.stringify(body)
  return protocol.ask(
    { body: JSON.parse(text), rawBody: Buffer.from(text), headers },
    { ...LIMITS, sold: sold ?? undefined },
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
  const plain = asked(anthropic, chat()).inputMost

  it('has the model read all of it again after each call, with what that brought', () => {
    const tools = (max_uses: number) => chat({ tools: [{ ...SEARCH, max_uses }] })
    const once = asked(anthropic, tools(1))
    assert.equal(once.toolCalls, 1)
    const first = (once.inputMost - 500) / 2
    assert.ok(first > plain)
    assert.equal(asked(anthropic, tools(3)).inputMost, 4 * first + (1 + 2 + 3) * 500)
    // Each time within the context window.
    assert.ok(asked(anthropic, tools(100)).inputMost < 101 * LIMITS.contextWindow)
    const { toolInput: _, ...unknown } = SOLD
    assert.equal(asked(anthropic, tools(1), unknown).inputMost, first + LIMITS.contextWindow)
  })

  it('is bounded by what each of them says, by all together, or by the model', () => {
    assert.equal(
      asked(anthropic, chat({ tools: [SEARCH, { ...SEARCH, type: 'web_fetch_20250910', max_uses: 5 }] })).toolCalls,
      7,
    )
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
    refuses(() => asked(anthropic, chat({ tools: [SEARCH] }), unbounded), /"tools\[0\]\.max_uses" is needed/)
    refuses(
      () => asked(openaiResponses, response({ tools: [{ type: 'web_search' }] }), unbounded),
      /"max_tool_calls" is needed/,
    )
    for (const max_uses of [0, -1, 1.5, '2', 1_001])
      refuses(() => asked(anthropic, chat({ tools: [{ ...SEARCH, max_uses }] })), /whole number from 1 to 1000/)
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
      /"system\[0\]\.cache_control\.ttl" is taken as "5m" only: a cache that is kept longer/,
    )
    refuses(
      () => asked(openai, chat({ service_tier: 'priority' })),
      /"service_tier" is taken as "auto" or "default" only/,
    )
    refuses(() => asked(openai, heard, null), /may not be "input_audio": audio has no price of its own/)
    refuses(() => asked(gemini, pictured, null), /"generationConfig\.responseModalities" is taken as "TEXT" only/)
  })

  it('is a beta of long input where the model has steps of it', () => {
    const headers = { 'anthropic-beta': 'context-1m-2025-08-07' }
    assert.deepEqual(asked(anthropic, chat(), SOLD, headers).unknownMembers, [])
    refuses(() => asked(anthropic, chat(), null, headers), /may not have "context-1m-2025-08-07"/)
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

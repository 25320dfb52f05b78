import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memberOf } from '../catalogue/price.ts'
import { createReader as createAnthropicReader } from './anthropic-reply.ts'
import { createReader as createGeminiReader } from './gemini-reply.ts'
import { createReader as createOpenaiReader } from './openai-reply.ts'
import { createReader as createResponsesReader } from './openai-responses-reply.ts'
import type { StreamReader } from './protocol.ts'

const END = { cost: '0.25', endedBy: 'budget', usage: { input: 7, output: 3, cacheRead: 2, cacheWrite: 1 } }

/** The last frames of an answer that is cut after what has passed of it. */
function endOf(reader: StreamReader, frames: readonly object[], allowed = 1_000_000) {
  reader.allow(allowed)
  const passed = frames.flatMap((json) => reader.push(Buffer.from(`data: ${JSON.stringify(json)}\n\n`)))
  const last = Buffer.concat(reader.endAtLimit(END)).toString()
  const [...data] = last.matchAll(/^data: (.*)$/gm)
  return {
    passed: passed.length,
    last,
    events: data.map(([, text = '']) => (text === '[DONE]' ? text : (JSON.parse(text) as unknown))),
  }
}

describe('an answer that is cut for want of money', () => {
  it('ends each choice of a chat that is open with `length`, and tells what it cost', () => {
    const about = { id: 'c-1', object: 'chat.completion.chunk', created: 5, model: 'm' }
    const said = (index: number, content: string) => ({
      ...about,
      choices: [{ index, delta: { content }, finish_reason: null }],
    })
    const frames = [
      said(0, 'a'),
      said(1, 'b'),
      { ...about, choices: [{ index: 1, delta: {}, finish_reason: 'stop' }] },
      said(0, 'c'),
    ]
    const usage = {
      prompt_tokens: 10,
      completion_tokens: 3,
      total_tokens: 13,
      prompt_tokens_details: { cached_tokens: 2 },
      cost_usd: '0.25',
    }
    const stop = {
      ...about,
      choices: [0, 2].map((index) => ({ index, delta: {}, logprobs: null, finish_reason: 'length' })),
      ended_by: 'budget',
    }
    assert.deepEqual(endOf(createOpenaiReader({ choices: 3, wantsUsage: true }), frames).events, [
      stop,
      { ...about, choices: [], usage },
      '[DONE]',
    ])
    assert.deepEqual(endOf(createOpenaiReader({ choices: 3, wantsUsage: false }), frames).events, [
      { ...stop, cost_usd: '0.25' },
      '[DONE]',
    ])
  })

  it('ends the open block of a message, then the message with `max_tokens`', () => {
    const frames = [
      { type: 'message_start', message: { usage: { input_tokens: 7, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'a' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'content_block_start', index: 1, content_block: { type: 'tool_use', id: 't', name: 'f', input: {} } },
      { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{"x' } },
    ]
    const { events, last } = endOf(createAnthropicReader(), frames)
    assert.deepEqual(events, [
      { type: 'content_block_stop', index: 1 },
      {
        type: 'message_delta',
        delta: { stop_reason: 'max_tokens', stop_sequence: null },
        usage: {
          input_tokens: 7,
          cache_creation_input_tokens: 1,
          cache_read_input_tokens: 2,
          output_tokens: 3,
          cost_usd: '0.25',
        },
        ended_by: 'budget',
      },
      { type: 'message_stop' },
    ])
    assert.deepEqual(
      [...last.matchAll(/^event: (.*)$/gm)].map(([, name]) => name),
      ['content_block_stop', 'message_delta', 'message_stop'],
    )
  })

  it('ends every candidate that is open with `MAX_TOKENS`', () => {
    const chunk = (index: number, finishReason?: string) => ({
      candidates: [{ index, content: { parts: [{ text: 'a' }] }, ...(finishReason && { finishReason }) }],
      modelVersion: 'm',
      responseId: 'r',
    })
    const { events } = endOf(createGeminiReader({ choices: 2 }), [chunk(0), chunk(1, 'STOP'), chunk(0)])
    assert.deepEqual(events, [
      {
        candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, finishReason: 'MAX_TOKENS', index: 0 }],
        usageMetadata: {
          promptTokenCount: 10,
          candidatesTokenCount: 3,
          totalTokenCount: 13,
          cachedContentTokenCount: 2,
          cost_usd: '0.25',
        },
        modelVersion: 'm',
        responseId: 'r',
        ended_by: 'budget',
      },
    ])
  })

  it('ends what is open of a response with the text that came of it, and numbers go on', () => {
    const begun = { id: 'resp_1', object: 'response', status: 'in_progress', model: 'm', output: [], usage: null }
    const place = { item_id: 'msg_1', output_index: 1, content_index: 0 }
    const delta = (text: string, sequence_number: number) => ({
      type: 'response.output_text.delta',
      ...place,
      delta: text,
      logprobs: [],
      sequence_number,
    })
    const call = { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'f', arguments: '', status: 'in_progress' }
    const frames = [
      { type: 'response.created', response: begun, sequence_number: 0 },
      { type: 'response.output_item.added', output_index: 0, item: call, sequence_number: 1 },
      {
        type: 'response.function_call_arguments.delta',
        item_id: 'fc_1',
        output_index: 0,
        delta: '{}',
        sequence_number: 2,
      },
      {
        type: 'response.output_item.done',
        output_index: 0,
        item: { ...call, arguments: '{}', status: 'completed' },
        sequence_number: 3,
      },
      {
        type: 'response.output_item.added',
        output_index: 1,
        item: { type: 'message', id: 'msg_1', role: 'assistant', status: 'in_progress', content: [] },
        sequence_number: 4,
      },
      {
        type: 'response.content_part.added',
        ...place,
        part: { type: 'output_text', text: '', annotations: [] },
        sequence_number: 5,
      },
      ...Array.from({ length: 6 }, (_, at) => delta(`word ${at} `, 6 + at)),
      delta('too much', 12),
    ]
    const written = Array.from({ length: 6 }, (_, at) => `word ${at} `).join('')
    const allowed = Buffer.byteLength(`f{}${written}`) + 3
    const { events, passed } = endOf(createResponsesReader({}), frames, allowed)
    assert.equal(passed, frames.length - 1)
    const part = { type: 'output_text', text: written, annotations: [] }
    const item = { type: 'message', id: 'msg_1', role: 'assistant', status: 'incomplete', content: [part] }
    assert.deepEqual(events.slice(0, 3), [
      { type: 'response.output_text.done', ...place, text: written, logprobs: [], sequence_number: 12 },
      { type: 'response.content_part.done', ...place, part, sequence_number: 13 },
      { type: 'response.output_item.done', output_index: 1, item, sequence_number: 14 },
    ])
    const last = events.at(-1)
    assert.equal(memberOf(last, 'type'), 'response.incomplete')
    assert.equal(memberOf(last, 'sequence_number'), 15)
    assert.deepEqual(memberOf(last, 'response'), {
      ...begun,
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      ended_by: 'budget',
      output: [{ ...call, arguments: '{}', status: 'completed' }, item],
      usage: {
        input_tokens: 10,
        input_tokens_details: { cached_tokens: 2 },
        output_tokens: 3,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 13,
        cost_usd: '0.25',
      },
    })
  })

  it('ends an open call of a function with the arguments that came', () => {
    const call = { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'f', arguments: '', status: 'in_progress' }
    const { events } = endOf(createResponsesReader({}), [
      { type: 'response.created', response: { id: 'resp_1', output: [] }, sequence_number: 0 },
      { type: 'response.output_item.added', output_index: 0, item: call, sequence_number: 1 },
      {
        type: 'response.function_call_arguments.delta',
        item_id: 'fc_1',
        output_index: 0,
        delta: '{"x',
        sequence_number: 2,
      },
    ])
    assert.deepEqual(memberOf(events[0], 'item'), { ...call, arguments: '{"x', status: 'incomplete' })
  })

  it('ends the part of a response that is open as its kind ends: a refusal, a summary of what was thought, or a thought', () => {
    const kinds = [
      ['message', 'content', 'content_part', { type: 'refusal', refusal: '' }, 'refusal', 'refusal'],
      [
        'reasoning',
        'summary',
        'reasoning_summary_part',
        { type: 'summary_text', text: '' },
        'reasoning_summary_text',
        'text',
      ],
      ['reasoning', 'content', 'content_part', { type: 'reasoning_text', text: '' }, 'reasoning_text', 'text'],
    ] as const
    for (const [type, list, part, open, told, member] of kinds) {
      const item = { type, id: 'i_1', status: 'in_progress', ...(type === 'reasoning' && { summary: [] }), [list]: [] }
      const place = { item_id: 'i_1', output_index: 0, [list === 'summary' ? 'summary_index' : 'content_index']: 1 }
      const first = { ...open, [member]: 'first' }
      const { events } = endOf(createResponsesReader({}), [
        { type: 'response.created', response: { id: 'resp_1', output: [] } },
        { type: 'response.output_item.added', output_index: 0, item },
        { type: `response.${part}.added`, ...place, part: open },
        { type: `response.${told}.delta`, ...place, delta: 'first' },
        { type: `response.${part}.done`, ...place, part: first },
        { type: `response.${part}.added`, ...place, part: open },
        { type: `response.${told}.delta`, ...place, delta: 'sec' },
      ])
      const second = { ...open, [member]: 'sec' }
      const number = (at: number) => ({ sequence_number: 7 + at })
      assert.deepEqual(events.slice(0, 3), [
        { type: `response.${told}.done`, ...place, [member]: 'sec', ...number(0) },
        { type: `response.${part}.done`, ...place, part: second, ...number(1) },
        {
          type: 'response.output_item.done',
          output_index: 0,
          item: { ...item, [list]: [first, second], status: 'incomplete' },
          ...number(2),
        },
      ])
    }
  })

  it('ends no item of a response twice, however much came before', () => {
    const item = (index: number) => ({ type: 'message', id: `i_${index}`, status: 'in_progress', content: [] })
    const large = { type: 'output_text', text: 'x'.repeat(200_000) }
    const { events } = endOf(createResponsesReader({}), [
      { type: 'response.created', response: { id: 'resp_1', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item: item(0) },
      { type: 'response.output_item.done', output_index: 0, item: { ...item(0), content: [large] } },
      { type: 'response.output_item.added', output_index: 1, item: item(1) },
      { type: 'response.output_item.done', output_index: 1, item: { ...item(1), content: [large] } },
    ])
    assert.deepEqual(
      events.map((event) => memberOf(event, 'type')),
      ['response.incomplete'],
    )
  })

  it('ends no part of a response twice, however much came before', () => {
    const item = { type: 'message', id: 'i_0', status: 'in_progress', content: [] }
    const place = { item_id: 'i_0', output_index: 0, content_index: 0 }
    const { events } = endOf(createResponsesReader({}), [
      { type: 'response.created', response: { id: 'resp_1', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item },
      { type: 'response.content_part.added', ...place, part: { type: 'output_text', text: '' } },
      { type: 'response.content_part.done', ...place, part: { type: 'output_text', text: 'x'.repeat(300_000) } },
    ])
    assert.deepEqual(
      events.map((event) => memberOf(event, 'type')),
      ['response.output_item.done', 'response.incomplete'],
    )
  })
})

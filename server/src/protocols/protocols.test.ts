import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { headersFor, SPOKEN } from './protocols.ts'

describe('the protocols', () => {
  it('end a stream that fails in their own words', () => {
    assert.equal(SPOKEN.openai.protocol.stream?.errorFrame('{"error":{}}'), 'data: {"error":{}}\n\n')
    assert.equal(
      SPOKEN.openai_responses.protocol.stream?.errorFrame('{"error":{}}'),
      'event: error\ndata: {"type":"error","sequence_number":0,"error":{}}\n\n',
    )
    assert.equal(
      SPOKEN.anthropic.protocol.stream?.errorFrame('{"type":"error"}'),
      'event: error\ndata: {"type":"error"}\n\n',
    )
  })

  it('pass on the headers that an upstream has to see, and no other', () => {
    const sent = { 'anthropic-version': '2026-10-21', 'anthropic-beta': 'a', 'openai-beta': 'b', authorization: 'c' }
    assert.deepEqual(headersFor(SPOKEN.anthropic.protocol, sent), {
      'anthropic-version': '2026-10-21',
      'anthropic-beta': 'a',
    })
    assert.deepEqual(headersFor(SPOKEN.openai.protocol, sent), { 'openai-beta': 'b' })
  })

  it('send the version that callers by hand leave out', () => {
    assert.deepEqual(headersFor(SPOKEN.anthropic.protocol, {}), { 'anthropic-version': '2023-06-01' })
    assert.deepEqual(headersFor(SPOKEN.openai.protocol, {}), {})
  })

  it('count tokens for nothing', () => {
    assert.equal(SPOKEN.anthropic_count_tokens.protocol.path, '/v1/messages/count_tokens')
    const nothing = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
    assert.deepEqual(SPOKEN.anthropic_count_tokens.protocol.usageOf({ input_tokens: 100 }), nothing)
  })
})

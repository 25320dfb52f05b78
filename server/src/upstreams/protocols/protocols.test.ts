import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { countTokensProtocol, headersFor, PROTOCOLS } from './protocols.ts'

describe('the protocols', () => {
  it('end a stream that fails in their own words', () => {
    assert.equal(PROTOCOLS.openai.errorFrame('{"error":{}}'), 'data: {"error":{}}\n\n')
    assert.equal(PROTOCOLS.anthropic.errorFrame('{"type":"error"}'), 'event: error\ndata: {"type":"error"}\n\n')
  })

  it('pass on the headers that an upstream has to see, and no other', () => {
    const sent = { 'anthropic-version': '2026-10-21', 'anthropic-beta': 'a', 'openai-beta': 'b', authorization: 'c' }
    assert.deepEqual(headersFor('anthropic', sent), { 'anthropic-version': '2026-10-21', 'anthropic-beta': 'a' })
    assert.deepEqual(headersFor('openai', sent), { 'openai-beta': 'b' })
  })

  it('send the version that callers by hand leave out', () => {
    assert.deepEqual(headersFor('anthropic', {}), { 'anthropic-version': '2023-06-01' })
    assert.deepEqual(headersFor('openai', {}), {})
  })

  it('count tokens for nothing', () => {
    assert.equal(countTokensProtocol.path, '/v1/messages/count_tokens')
    const nothing = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
    assert.deepEqual(countTokensProtocol.usageOf({ input_tokens: 100 }), nothing)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { inspectMembers } from '../catalogue/member-table.ts'
import { MESSAGES } from './anthropic-members.ts'
import { CONTENT_REQUEST, COUNT_REQUEST } from './gemini-members.ts'
import { CHAT, EMBEDDINGS } from './openai-members.ts'

const ELSEWHERE = ['provider', 'preset', 'extra_body', 'api_base', 'num_retries', 'fallbacks']
const OF_OUTPUT = ['n_predict', 'max_output_tokens', 'max_new_tokens', 'thinking_budget', 'min_tokens', 'best_of']

describe('what servers act on beside what a protocol has', () => {
  for (const table of [CHAT, MESSAGES, CONTENT_REQUEST, COUNT_REQUEST])
    it(`is refused by name on every route, also on those that pass on what is unknown: ${table.title}`, () => {
      for (const name of [...ELSEWHERE, ...OF_OUTPUT, 'web_search_options']) {
        assert.equal(inspectMembers({ [name]: 1 }, table).refused?.path, name)
        assert.ok(inspectMembers({ [name.toUpperCase()]: 1 }, table).refused !== undefined, name)
      }
    })

  it(`is refused where vectors are asked for`, () => {
    for (const name of ELSEWHERE) assert.equal(inspectMembers({ [name]: 1 }, EMBEDDINGS).refused?.path, name)
  })

  it('is not what the protocol itself has', () => {
    const limits = { max_tokens: 1, max_completion_tokens: 1, n: 2 }
    assert.equal(inspectMembers(limits, CHAT).refused, undefined)
    assert.equal(inspectMembers({ max_tokens: 1 }, MESSAGES).refused, undefined)
    assert.match(inspectMembers({ n: 2 }, MESSAGES).refused?.words ?? '', /more output than requested/)
    assert.match(inspectMembers({ max_tokens: 1 }, CONTENT_REQUEST).refused?.words ?? '', /maxOutputTokens/)
  })
})

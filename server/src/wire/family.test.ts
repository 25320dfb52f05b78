import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CALLERS } from '../http/policies.ts'
import { createFamilyFinder, dialectFor } from './family.ts'

describe('the dialect of a path', () => {
  const find = createFamilyFinder([{ name: 'data', prefix: '/apis/v1', dialect: 'data' }], CALLERS)
  const version = { 'anthropic-version': '2026-10-21' }

  for (const [url, headers, expected] of [
    ['/v1/chat/completions', {}, 'openai'],
    ['/v1', {}, 'openai'],
    ['/v1?x=1', {}, 'openai'],
    ['/v1/models', version, 'anthropic'],
    ['/v1/models', {}, 'openai'],
    ['/v1/models/maker/model', version, 'anthropic'],
    ['/v1/models?limit=1', version, 'anthropic'],
    ['/v1/modelsque', version, 'openai'],
    ['/v1/anything', version, 'openai'],
    ['/v1/chat/completions', version, 'openai'],
    ['/v1/rerank', version, 'openai'],
    ['/v1/messages', {}, 'anthropic'],
    ['/v1/messages?beta=true', {}, 'anthropic'],
    ['/v1/messages/count_tokens', {}, 'anthropic'],
    ['/v1/messagesque', {}, 'openai'],
    ['/v1beta/models/a:generateContent', version, 'gemini'],
    ['/v1beta', {}, 'gemini'],
    ['/v1betamax', {}, 'data'],
    ['/apis/v1/anything', version, 'data'],
    ['/', {}, 'data'],
    ['/v2', {}, 'data'],
    ['', {}, 'data'],
  ] as const) {
    it(`${url || 'nothing'} is ${expected}${headers === version ? ' for a caller who names a version' : ''}`, () => {
      assert.equal(dialectFor(find(url), { url, headers }), expected)
    })
  }

  it('is the one of the family that is registered there, the longest prefix first', () => {
    const families = [
      { name: 'all', prefix: '/', dialect: 'data' },
      { name: 'chat', prefix: '/v1', dialect: 'openai' },
      { name: 'special', prefix: '/v1/special', dialect: 'gemini' },
    ] as const
    const found = createFamilyFinder(families, CALLERS)
    assert.equal(found('/v1/special/x').name, 'special')
    assert.equal(found('/v1/x').name, 'chat')
    assert.equal(found('/about').name, 'all')
  })

  for (const [accept, expected] of [
    [undefined, 'html'],
    ['*/*', 'html'],
    ['text/html,application/xhtml+xml,*/*;q=0.8', 'html'],
    ['application/json', 'problem'],
    ['application/problem+json', 'problem'],
    ['text/html, application/json', 'html'],
  ] as const) {
    it(`of a page is ${expected} for who accepts ${accept ?? 'whatever there is'}`, () => {
      const headers = accept === undefined ? {} : { accept }
      assert.equal(dialectFor({ dialect: 'html' }, { url: '/', headers }), expected)
    })
  }
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openLibrary } from './library.ts'

describe('guides of an installation with a word of its own', () => {
  it('name headers by it, as pages and as Markdown', () => {
    const { guides } = openLibrary('Acme')
    for (const { name, source } of guides) assert.doesNotMatch(source, /x-farebox-/i, name)
    const start = guides.find(({ name }) => name === 'quick-start') ?? assert.fail('there is no quick start')
    assert.match(start.source, /x-acme-cost-mode/i)
    assert.match(String(start.rendered().main), /x-acme-cost-mode/i)
    assert.ok(openLibrary().guides.some(({ source }) => source.includes('X-Farebox-Cost-Usd')))
  })
})

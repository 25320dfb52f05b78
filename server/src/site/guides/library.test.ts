import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { docsFolder, openLibrary } from './library.ts'

describe('guides of an installation with a word of its own', () => {
  it('name headers by it, as pages and as Markdown', () => {
    const { guides } = openLibrary('Acme')
    for (const { name, source } of guides) assert.doesNotMatch(source(), /x-farebox-/i, name)
    const start = guides.find(({ name }) => name === 'quick-start') ?? assert.fail('there is no quick start')
    assert.match(start.source(), /x-acme-cost-mode/i)
    assert.match(String(start.rendered().main), /x-acme-cost-mode/i)
    assert.ok(openLibrary().guides.some(({ source }) => source().includes('X-Farebox-Cost-Usd')))
  })

  it('begin with the sign-up, and have the addresses of the installation filled in, in every language', () => {
    const addresses = { baseUrl: 'https://api.acme.example', siteUrl: 'https://acme.example' }
    const { guides } = openLibrary('Acme', docsFolder(), addresses)
    const source = guides.find(({ name }) => name === 'quick-start')?.source() ?? assert.fail()
    assert.match(source, /^# Quick start\n\n.*\n\n1\. Create an account at `https:\/\/acme\.example\/sign-up`/)
    assert.match(source, /curl -s https:\/\/api\.acme\.example\/v1\/rerank/)
    assert.match(source, /baseUrl: 'https:\/\/api\.acme\.example'/)
    assert.match(source, /"https:\/\/api\.acme\.example" \+ "\/v1\/rerank"/)
    for (const guide of guides.filter(({ isForOperators }) => !isForOperators))
      assert.doesNotMatch(guide.source(), /\b(BASE|SITE)_URL\b/, guide.name)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { inspect } from 'node:util'
import { withoutCredential } from './without-credential.ts'

const TOKEN = 'opaque/8c1f+22'

describe('an error that is logged', () => {
  for (const [name, value] of [
    ['authorization', `Bearer ${TOKEN}`],
    ['authorization', `Basic ${TOKEN}`],
    ['authorization', TOKEN],
    ['x-api-key', TOKEN],
    ['x-goog-api-key', TOKEN],
  ] as const) {
    it(`does not have what came as ${name}: ${value.split(' ')[0]}, as it is or in a URL, down its causes`, () => {
      const cause = Object.assign(new Error(`GET /?key=${encodeURIComponent(TOKEN)}`), { code: TOKEN })
      const error = withoutCredential(new TypeError(`sent ${TOKEN}`, { cause }), { [name]: value })
      assert.doesNotMatch(inspect(error), /8c1f/)
      assert.ok(error instanceof Error && error.cause instanceof Error)
      assert.deepEqual([error.name, error.message], ['TypeError', 'sent [redacted]'])
      assert.match(error.stack ?? '', /without-credential\.test\.ts/)
      assert.equal(error.cause.message, 'GET /?key=[redacted]')
    })
  }

  it('is as it was without a credential, with one that is too short to be one, and when it is none', () => {
    const error = new Error('sent it')
    assert.equal(withoutCredential(error, {}), error)
    assert.equal(withoutCredential(error, { authorization: 'Bearer t' }), error)
    assert.equal(withoutCredential('text', { 'x-api-key': TOKEN }), 'text')
  })

  it('keeps its code, and ends where its causes go round in a circle', () => {
    const error = Object.assign(new Error('round'), { code: 'ECONNRESET' })
    error.cause = error
    const copy = withoutCredential(error, { 'x-api-key': TOKEN })
    assert.ok(copy instanceof Error && 'code' in copy)
    assert.equal(copy.code, 'ECONNRESET')
  })
})

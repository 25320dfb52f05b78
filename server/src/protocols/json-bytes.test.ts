import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { seed } from '../../../harness/proof.ts'
import { endOfString, endOfValue } from './json-bytes.ts'

describe('the end of a string in JSON', () => {
  it('is behind its quote, however long it is and wherever something is escaped', () => {
    for (const escaped of ['', '"', '\\', '\\"', '\\\\', 'ü"']) {
      for (let before = 0; before < 120; before += 1) {
        const text = JSON.stringify('x'.repeat(before) + escaped + 'y'.repeat(before % 7))
        assert.equal(endOfString(Buffer.from(`[${text},"z"]`), 1), 1 + Buffer.byteLength(text), text)
      }
    }
  })

  it('is the end of the bytes where it has none', () => {
    for (const text of ['"', '"abc', '"\\"', `"${'x'.repeat(60)}`, `"${'x'.repeat(46)}\\"`])
      assert.equal(endOfString(Buffer.from(text), 0), Buffer.byteLength(text), text)
  })
})

describe('the end of a value in JSON', () => {
  it('is where it ends, whatever it is', () => {
    fc.assert(
      fc.property(fc.json({ stringUnit: 'binary' }), (text) => {
        assert.equal(endOfValue(Buffer.from(`{"a":${text},"b":1}`), 5), 5 + Buffer.byteLength(text))
      }),
      { numRuns: 200, seed },
    )
  })
})

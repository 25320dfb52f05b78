import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { estimateTokens } from './estimate.ts'

describe('the estimate of a very long text', () => {
  it('is about that of a short one so many times, by parts of it', () => {
    const sample = 'A word, 12 numbers and ünusual — 中文 signs. '
    const short = sample.repeat(1_000)
    const times = 60
    const ratio = estimateTokens(short.repeat(times)) / (times * estimateTokens(short))
    assert.ok(short.length * times > 2_000_000)
    assert.ok(ratio > 0.98 && ratio < 1.02, String(ratio))
  })
})

describe('the estimate of a text', () => {
  for (const [text, tokens] of [
    ['Hello world', 2],
    ['HTTPServer fooBar 12345 == ', 8],
    ['internationalisation', 3],
    ['Größe über alles', 5],
    ['Việt Nam', 3],
    ['東京は😀', 5],
    ['π × 2', 4],
    ['a  b\n\nc 7', 7],
  ] as const)
    it(`goes by the kinds of its characters: ${JSON.stringify(text)} is ${tokens}`, () => {
      assert.equal(estimateTokens(text), tokens)
    })

  it('is of that text alone, whatever was estimated before it', () => {
    estimateTokens('word 1234')
    assert.equal(estimateTokens('word '), 1)
  })

  it('is the same of a text that is longer than any before', () => {
    const times = 3_000
    assert.equal(estimateTokens('longer than before '.repeat(times)), 3 * times)
  })
})

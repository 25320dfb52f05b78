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

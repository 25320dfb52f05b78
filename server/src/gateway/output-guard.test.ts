import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { PATIENCE_MS } from '../../../harness/until.ts'
import { createTokenCounter } from '../upstreams/tokens/count-tokens.ts'
import { createOutputGuard } from './output-guard.ts'

const counter = createTokenCounter({ deadlineMs: PATIENCE_MS })
after(() => counter.close())

const LIMIT = 1_000
const guard = createOutputGuard({ counter, tokenizer: 'o200k', limit: LIMIT })
const isPassed = (text: string) => guard.isPassed(text, Buffer.byteLength(text))

/** Always the same, and like nothing that anybody writes. */
function noise(alphabet: string, length: number): string {
  let state = 1
  return Array.from({ length }, () => {
    state = (state * 48_271) % 2_147_483_647
    return alphabet[state % alphabet.length]
  }).join('')
}

describe('the guard of an output limit', () => {
  it('sees tokens where the estimate sees one long word, or one long space', async () => {
    for (const alphabet of ['abcdefghijklmnopqrstuvwxyz', ' \t\n\r'])
      assert.equal(await isPassed(noise(alphabet, 400_000)), true, JSON.stringify(alphabet))
  })

  it('lets be what is within the limit, and cuts what is three times as much', async () => {
    const words = 'one of many words that nobody has paid for '
    assert.equal(await isPassed(words.repeat(LIMIT / 9)), false)
    assert.equal(await isPassed(words.repeat((3 * LIMIT) / 9)), true)
  })

  it('takes a lower estimate where the tokenizer is far from the vocabulary, down to half of its count', async () => {
    const strict = createOutputGuard({ counter, tokenizer: 'bytes_3', limit: LIMIT })
    const words = 'ordinary '.repeat(LIMIT)
    assert.equal(await strict.isPassed(words, words.length), false)
    const spaces = ' '.repeat(12 * LIMIT)
    assert.equal(await strict.isPassed(spaces, spaces.length), true)
  })
})

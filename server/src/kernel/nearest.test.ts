import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { nearest } from './nearest.ts'

const KNOWN = ['echo', 'text', 'text-large', 'checksum', 'rerank']

describe('the name that a mistyped one may mean', () => {
  it('is one slip from it: a letter too few, too many or wrong, or two swapped', () => {
    for (const [typed, meant] of [
      ['ecko', 'echo'],
      ['ehco', 'echo'],
      ['echoo', 'echo'],
      ['rerak', 'rerank'],
    ] as const)
      assert.equal(nearest(typed, KNOWN), meant, typed)
  })

  it('has most of its pairs of letters', () => {
    assert.equal(nearest('textlarge', KNOWN), 'text-large')
  })

  it('is none where nothing is near, or the word is short', () => {
    assert.equal(nearest('gpt', ['get']), undefined)
    assert.equal(nearest('completely-else', KNOWN), undefined)
    assert.equal(nearest('', KNOWN), undefined)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { contrastOf } from './contrast.ts'

describe('contrast', () => {
  it('is what WCAG 2.2 reckons, whichever colour comes first', () => {
    assert.equal(contrastOf('#000000', '#ffffff'), 21)
    assert.equal(contrastOf('#ffffff', '#ffffff'), 1)
    assert.equal(contrastOf('#1d4fd7', '#ffffff').toFixed(2), '6.66')
    assert.equal(contrastOf('#ffffff', '#858b96').toFixed(2), '3.43')
    assert.equal(contrastOf('#8fb1ff', '#0e1013').toFixed(2), '8.98')
  })
})

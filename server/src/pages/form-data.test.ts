import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseForm } from '../pages/form-data.ts'

describe('a form', () => {
  for (const [text, fields] of [
    ['', {}],
    ['token=abc', { token: 'abc' }],
    ['a=1&b=two+words&c=%C3%A9%26%3D', { a: '1', b: 'two words', c: 'é&=' }],
    ['a', { a: '' }],
    ['a=b=c', { a: 'b=c' }],
    ['__proto__=x', { ['__proto__']: 'x' }],
    ['a=1&a=2', undefined],
    ['a=1&%61=2', undefined],
    ['a=%ff', undefined],
    ['a=%zz', undefined],
    ['a=\u00e9', undefined],
    ['a= b', undefined],
    [Array.from({ length: 101 }, (_, at) => `f${at}=1`).join('&'), undefined],
  ] as const)
    it(`${text.slice(0, 30) || 'of nothing'} ${fields === undefined ? 'is none' : 'is read, each field once'}`, () => {
      const form = parseForm(Buffer.from(text))
      assert.deepEqual(form && [...form], fields && Object.entries(fields))
    })
})

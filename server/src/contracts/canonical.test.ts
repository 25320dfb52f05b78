import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { seed } from '../../../harness/proof.ts'
import { canonicalBytes } from './canonical.ts'

const text = (value: unknown) => canonicalBytes(value).toString('utf8')

/** Values that a contract may have, and each of them with its names in another order. */
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    fc.string({ unit: 'grapheme' }),
    fc.maxSafeInteger().map((value) => value || 0),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('tree')),
    fc.dictionary(fc.string(), tie('tree')),
  ),
}))

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, reversed(member)]),
  )
}

describe('canonical bytes', () => {
  it('are the same for the same value, in whatever order its names came, and mean that value', () => {
    fc.assert(
      fc.property(tree, (value) => {
        assert.ok(canonicalBytes(value).equals(canonicalBytes(reversed(value))))
        assert.deepEqual(JSON.parse(text(value)), JSON.parse(JSON.stringify(value)))
      }),
      { seed, numRuns: 500 },
    )
  })

  it('have names in the order of their code units, and no white space', () => {
    assert.equal(
      text({ b: [1, true, null], a: { é: 'é', Z: '\n', a: undefined } }),
      '{"a":{"Z":"\\n","é":"é"},"b":[1,true,null]}',
    )
  })

  it('have no number that programs write in several ways', () => {
    for (const value of [0.1, -0, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 1e21])
      assert.throws(() => canonicalBytes({ a: [value] }), /\$\.a\[0\] is no whole number/)
  })

  it('have nothing that is no JSON, and no half of a character', () => {
    for (const value of [undefined, () => 1, 1n, Symbol('a')])
      assert.throws(() => canonicalBytes([value]), /is no JSON/)
    assert.throws(() => canonicalBytes({ a: '\ud800' }), /half a character/)
    assert.throws(() => canonicalBytes({ '\udc00': 1 }), /half a character/)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { tryMutants } from '../../harness/mutants.ts'

describe('mutation testing', () => {
  it('tells mutants that tests kill, of what is worked out at loading too, from those that they miss', async () => {
    const { mutants, killed, survivors } = await tryMutants({
      source: 'test/mutants/a-price.ts',
      tests: ['test/mutants/tests-of-a-price.ts'],
    })
    assert.equal(mutants - killed, survivors.length)
    assert.deepEqual([...new Set(survivors.map(({ line }) => line))], ['return units > 100 ? 5 : 0'])
    assert.ok(killed >= 5 && survivors.length >= 3)
    assert.deepEqual(
      survivors.filter(({ becomes }) => becomes === 'units >= 100'),
      [
        {
          place: 'test/mutants/a-price.ts:9:10',
          line: 'return units > 100 ? 5 : 0',
          was: 'units > 100',
          becomes: 'units >= 100',
        },
      ],
    )
  })
})

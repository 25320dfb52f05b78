import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { ROOT } from '../../harness/root.ts'
import { assertFit, BUGS, BUGS_OF_FAULTS, byTheBlind, SETS } from './all-bugs.ts'
import { patched } from './planted-bug.ts'

const FEWEST = 12
/** Of all. Each costs time in every proof and an anchor in the source: a new one takes the place of a weaker one. */
const MOST = 120

describe('the set of planted bugs', () => {
  for (const [title, bugs] of Object.entries(SETS)) {
    it(`${title} has twelve at least, half of them by somebody who has seen neither code nor tests`, () => {
      assert.ok(bugs.length >= FEWEST)
      assert.ok(byTheBlind(bugs) * 2 >= bugs.length)
    })
  }

  it('are a hundred and twenty at most, those of the run of faults included, each under an id of its own', () => {
    const ids = [...BUGS, ...BUGS_OF_FAULTS].map(({ id }) => id)
    assert.ok(ids.length <= MOST, `there are ${ids.length}`)
    assert.equal(new Set(ids).size, ids.length)
  })

  it('fit the source, and have catchers that there are', () => {
    for (const bug of BUGS_OF_FAULTS) assertFit(bug)
    for (const bug of BUGS) {
      assertFit(bug)
      assert.ok(bug.caughtBy.length > 0, bug.id)
      for (const { file } of bug.caughtBy) assert.ok(existsSync(path.join(ROOT, file)), `${bug.id}: ${file}`)
    }
  })
})

describe('a patch', () => {
  const source = 'one two two'
  const edit = (find: string) => [{ file: 'a.ts', find, replace: '$& three' }]

  it('replaces what occurs once, word for word, and leaves other files alone', () => {
    assert.equal(patched('a.ts', source, edit('one')), '$& three two two')
    assert.equal(patched('b.ts', source, edit('one')), source)
  })

  for (const find of ['two', 'four']) {
    it(`is stale when what it looks for (${find}) does not occur exactly once`, () => {
      assert.throws(() => patched('a.ts', source, edit(find)), /stale/)
    })
  }
})

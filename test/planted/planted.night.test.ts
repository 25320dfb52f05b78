import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { isFullProof, recordProof, seed } from '../../harness/proof.ts'
import { ROOT } from '../../harness/root.ts'
import { assertFit, BUGS, BUGS_OF_FAULTS, byTheBlind, SETS } from './all-bugs.ts'
import { tryToCatch, unfitCatchers } from './catch.ts'
import { type Catcher, patched } from './planted-bug.ts'
import { END } from './statements.ts'

/**
 * Every planted bug is caught by the tests that are named for it. With full counts all are tried; else the same two each time.
 */
const PROOF = 'planted'
const FEWEST = 12
/** Of all. Each costs time in every proof and an anchor in the source: a new one takes the place of a weaker one. */
const MOST = 120
/** Of the statements and of the process. That all are caught is for a proof to say: a change is not refused by what chance picks. */
const OF_A_CHANGE: readonly string[] = ['end-without-lock', 'growth-too-late']
const sample = isFullProof ? BUGS : BUGS.filter(({ id }) => OF_A_CHANGE.includes(id))

function nameOf({ file, title = 'all' }: Catcher): string {
  return `${file}: ${title}`
}

describe('planted bugs', () => {
  let caught = 0
  let fit: ReadonlySet<string> = new Set()

  for (const [title, bugs] of Object.entries(SETS)) {
    it(`${title} are twelve at least, half of them by somebody who has seen neither code nor tests`, () => {
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
    for (const bug of BUGS) {
      assertFit(bug)
      assert.ok(bug.caughtBy.length > 0, bug.id)
      for (const { file } of bug.caughtBy) assert.ok(existsSync(path.join(ROOT, file)), `${bug.id}: ${file}`)
    }
  })

  it('have catchers that pass where nothing is planted', async () => {
    const catchers = new Map(sample.flatMap(({ caughtBy }) => caughtBy).map((one) => [nameOf(one), one]))
    const unfit = await unfitCatchers([...catchers.values()])
    for (const { catcher } of unfit) catchers.delete(nameOf(catcher))
    fit = new Set(catchers.keys())
    assert.deepEqual(unfit, [])
  })

  for (const bug of sample) {
    const { id, title, promise, author } = bug
    it(`are caught: ${title}`, async () => {
      if (!isFullProof) console.log(`planted: ${id} (seed ${seed})`)
      // What fails by itself has caught nothing when it fails.
      assert.deepEqual(
        bug.caughtBy.filter((one) => !fit.has(nameOf(one))),
        [],
      )
      const outcome = await tryToCatch(bug)
      assert.equal(outcome.verdict, 'caught', JSON.stringify(outcome))
      assert.ok('by' in outcome && Array.isArray(outcome.by))
      caught += 1
      recordProof(PROOF, id, { title, promise, author, verdict: outcome.verdict, caught_by: outcome.by })
    })
  }

  it('are all caught, of those that were tried', () => {
    assert.ok(sample.length >= OF_A_CHANGE.length)
    assert.equal(caught, sample.length)
    recordProof(PROOF, 'all', { planted: BUGS.length, by_the_blind: byTheBlind(BUGS), tried: sample.length, caught })
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

describe('a copy', () => {
  const file = END
  const caughtBy = [{ file: 'test/ledger/overrun.test.ts' }]
  const find = 'account_release[account] := account_release[account] + own.amount;'

  it('with a patch that changes nothing is not caught', async () => {
    const edits = [{ file, find, replace: `${find} -- the same` }]
    assert.deepEqual(await tryToCatch({ edits, caughtBy }), { verdict: 'missed', by: caughtBy[0] })
  })

  const useless: Readonly<Record<string, readonly { file: string; find: string; replace: string }[]>> = {
    'whose migration fails': [{ file, find: 'create or replace function', replace: 'create or replace fun' }],
    'whose statements fail when they run': [
      { file, find, replace: 'account_release[account] := account_release[account] + own.amounts;' },
    ],
    'whose source does not load': [
      { file: 'server/src/calls/lane.ts', find: 'export function createLane', replace: 'export fun createLane' },
    ],
    'whose source lacks a name': [
      { file: 'server/src/calls/columns.ts', find: 'const DAY_MS = 86_400_000', replace: '' },
    ],
  }
  for (const [title, edits] of Object.entries(useless)) {
    it(`${title} proves nothing: it is broken, not caught`, async () => {
      const outcome = await tryToCatch({ edits, caughtBy })
      assert.equal(outcome.verdict, 'broken', JSON.stringify(outcome))
    })
  }
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isFullProof, recordProof, seed } from '../../harness/proof.ts'
import { BUGS, byTheBlind } from './all-bugs.ts'
import { tryToCatch, unfitCatchers } from './catch.ts'
import type { Catcher } from './planted-bug.ts'
import { END } from './statements.ts'

/**
 * Every planted bug is caught by the tests that are named for it. With full counts all are tried; else the same two each time.
 */
const PROOF = 'planted'
/** Of the statements and of the process. That all are caught is for a proof to say: a change is not refused by what chance picks. */
const OF_A_CHANGE: readonly string[] = ['end-without-lock', 'growth-too-late']
const sample = isFullProof ? BUGS : BUGS.filter(({ id }) => OF_A_CHANGE.includes(id))

function nameOf({ file, title = 'all' }: Catcher): string {
  return `${file}: ${title}`
}

describe('planted bugs', () => {
  let caught = 0
  let fit: ReadonlySet<string> = new Set()

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

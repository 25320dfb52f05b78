import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { count, isFullProof, recordProof, seed } from '../../harness/proof.ts'
import { ROOT } from '../../harness/root.ts'
import { bugsOfInsiders } from './bugs-of-insiders.ts'
import { bugsOfTheBlind } from './bugs-of-the-blind.ts'
import { tryToCatch, unfitCatchers } from './catch.ts'
import { patched } from './planted-bug.ts'

/**
 * Every planted bug is caught by the tests that are named for it. With full counts all are tried; else a sample that
 * goes round with the seed.
 */
const PROOF = 'planted-ledger'
const ALL = [...bugsOfInsiders, ...bugsOfTheBlind]
const FEWEST = 12
const SAMPLE = count({ full: ALL.length, reduced: 2 })

const sample = Array.from({ length: SAMPLE }, (_, n) => {
  const bug = ALL[(seed + Math.floor((n * ALL.length) / SAMPLE)) % ALL.length]
  assert.ok(bug !== undefined)
  return bug
})

describe('planted bugs', () => {
  let caught = 0

  it('are twelve at least, half of them by somebody who has seen neither code nor tests, and fit the source', () => {
    assert.ok(ALL.length >= FEWEST && bugsOfTheBlind.length * 2 >= ALL.length)
    assert.equal(new Set(ALL.map(({ id }) => id)).size, ALL.length)
    for (const { id, edits, caughtBy } of ALL) {
      assert.ok(edits.length > 0 && caughtBy.length > 0, id)
      for (const file of new Set(edits.map((edit) => edit.file))) {
        const text = readFileSync(path.join(ROOT, file), 'utf8')
        assert.notEqual(patched(file, text, edits), text, id)
      }
    }
  })

  it('have catchers that pass where nothing is planted', async () => {
    assert.deepEqual(await unfitCatchers(sample.flatMap(({ caughtBy }) => caughtBy)), [])
  })

  for (const bug of sample) {
    const { id, title, promise, author } = bug
    it(`are caught: ${title}`, async () => {
      if (!isFullProof) console.log(`planted: ${id} (seed ${seed})`)
      const outcome = await tryToCatch(bug)
      assert.equal(outcome.verdict, 'caught', JSON.stringify(outcome))
      assert.ok('by' in outcome && Array.isArray(outcome.by))
      caught += 1
      recordProof(PROOF, id, { title, promise, author, verdict: outcome.verdict, caught_by: outcome.by })
    })
  }

  it('are all caught, of those that were tried', () => {
    assert.equal(caught, sample.length)
    recordProof(PROOF, 'all', { planted: ALL.length, by_the_blind: bugsOfTheBlind.length, tried: SAMPLE, caught })
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
  const file = 'server/src/storage/migrations/0003_begin_and_end.sql'
  const caughtBy = [{ file: 'test/ledger/overrun.test.ts' }]
  const find = 'coalesce(amount, 0) - charge as over,'

  it('with a patch that changes nothing is not caught', async () => {
    const edits = [{ file, find, replace: `${find} -- the same` }]
    assert.deepEqual(await tryToCatch({ edits, caughtBy }), { verdict: 'missed', by: caughtBy[0] })
  })

  const useless: Readonly<Record<string, readonly { file: string; find: string; replace: string }[]>> = {
    'whose migration fails': [{ file, find: 'create function ended_among(', replace: 'create fun ended_among(' }],
    'whose statements fail when they run': [{ file, find, replace: 'coalesce(amounts, 0) - charge as over,' }],
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

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { isFullProof, recordProof, seed } from '../../harness/proof.ts'
import { ROOT } from '../../harness/root.ts'
import { bugsOfAgents } from './bugs-of-agents.ts'
import { bugsOfAttempts } from './bugs-of-attempts.ts'
import { bugsOfAudit } from './bugs-of-audit.ts'
import { bugsOfBudgets } from './bugs-of-budgets.ts'
import { bugsOfClasses } from './bugs-of-classes.ts'
import { bugsOfClients } from './bugs-of-clients.ts'
import { bugsOfContracts } from './bugs-of-contracts.ts'
import { bugsOfDisconnects } from './bugs-of-disconnects.ts'
import { bugsOfGrants } from './bugs-of-grants.ts'
import { bugsOfGrowth } from './bugs-of-growth.ts'
import { bugsOfIdentity } from './bugs-of-identity.ts'
import { bugsOfInsiders } from './bugs-of-insiders.ts'
import { bugsOfInsidersUnderDeath } from './bugs-of-insiders-under-death.ts'
import { bugsOfLimits } from './bugs-of-limits.ts'
import { bugsOfLosses } from './bugs-of-losses.ts'
import { bugsOfMail } from './bugs-of-mail.ts'
import { bugsOfMandates } from './bugs-of-mandates.ts'
import { bugsOfMemory } from './bugs-of-memory.ts'
import { bugsOfMoneyFiles } from './bugs-of-money-files.ts'
import { bugsOfOauth } from './bugs-of-oauth.ts'
import { bugsOfOperators } from './bugs-of-operators.ts'
import { bugsOfOutbox } from './bugs-of-outbox.ts'
import { bugsOfPages } from './bugs-of-pages.ts'
import { bugsOfPeople } from './bugs-of-people.ts'
import { bugsOfPrices } from './bugs-of-prices.ts'
import { bugsOfSite } from './bugs-of-site.ts'
import { bugsOfTheBlind } from './bugs-of-the-blind.ts'
import { bugsOfTheBlindUnderDeath } from './bugs-of-the-blind-under-death.ts'
import { bugsOfUsage } from './bugs-of-usage.ts'
import { tryToCatch, unfitCatchers } from './catch.ts'
import { type Catcher, type PlantedBug, patched } from './planted-bug.ts'
import { STATEMENTS } from './statements.ts'

/**
 * Every planted bug is caught by the tests that are named for it. With full counts all are tried; else the same two each time.
 */
const PROOF = 'planted'
const SETS = {
  'of begin and end': [...bugsOfInsiders, ...bugsOfTheBlind],
  'of deaths, debts, reversals and reports': [...bugsOfInsidersUnderDeath, ...bugsOfTheBlindUnderDeath],
}
const ALL = [
  ...Object.values(SETS).flat(),
  ...bugsOfAgents,
  ...bugsOfAttempts,
  ...bugsOfAudit,
  ...bugsOfBudgets,
  ...bugsOfGrants,
  ...bugsOfGrowth,
  ...bugsOfIdentity,
  ...bugsOfLimits,
  ...bugsOfLosses,
  ...bugsOfClients,
  ...bugsOfContracts,
  ...bugsOfDisconnects,
  ...bugsOfMemory,
  ...bugsOfOauth,
  ...bugsOfMandates,
  ...bugsOfOperators,
  ...bugsOfOutbox,
  ...bugsOfPeople,
  ...bugsOfMail,
  ...bugsOfPages,
  ...bugsOfSite,
  ...bugsOfMoneyFiles,
  ...bugsOfPrices,
  ...bugsOfClasses,
  ...bugsOfUsage,
]
const FEWEST = 12
/** Of the statements and of the process. That all are caught is for a proof to say: a change is not refused by what chance picks. */
const OF_A_CHANGE: readonly string[] = ['end-without-lock', 'growth-too-late']
const sample = isFullProof ? ALL : ALL.filter(({ id }) => OF_A_CHANGE.includes(id))

function byTheBlind(bugs: readonly PlantedBug[]): number {
  return bugs.filter(({ author }) => author === 'blind').length
}

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

  it('fit the source', () => {
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
    recordProof(PROOF, 'all', { planted: ALL.length, by_the_blind: byTheBlind(ALL), tried: sample.length, caught })
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
  const file = STATEMENTS
  const caughtBy = [{ file: 'test/ledger/overrun.test.ts' }]
  const find = 'account_release[account] := account_release[account] + own.amount;'

  it('with a patch that changes nothing is not caught', async () => {
    const edits = [{ file, find, replace: `${find} -- the same` }]
    assert.deepEqual(await tryToCatch({ edits, caughtBy }), { verdict: 'missed', by: caughtBy[0] })
  })

  const useless: Readonly<Record<string, readonly { file: string; find: string; replace: string }[]>> = {
    'whose migration fails': [
      {
        file,
        find: 'create or replace function end_attributed_calls(',
        replace: 'create or replace fun end_attributed_calls(',
      },
    ],
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

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from '../../harness/root.ts'
import { bugsOfAccess } from './bugs-of-access.ts'
import { bugsOfBegin } from './bugs-of-begin.ts'
import { bugsOfBudgets } from './bugs-of-budgets.ts'
import { bugsOfCorrections } from './bugs-of-corrections.ts'
import { bugsOfDeaths } from './bugs-of-deaths.ts'
import { bugsOfEnd } from './bugs-of-end.ts'
import { bugsOfFastPath } from './bugs-of-fast-path.ts'
import { type BugOfFaults, bugsOfFaultsByInsiders } from './bugs-of-faults.ts'
import { bugsOfFaultsByTheBlind } from './bugs-of-faults-blind.ts'
import { bugsOfFloods } from './bugs-of-floods.ts'
import { bugsOfGrowth } from './bugs-of-growth.ts'
import { bugsOfMoneyFiles } from './bugs-of-money-files.ts'
import { bugsOfProcesses } from './bugs-of-processes.ts'
import { bugsOfUsage } from './bugs-of-usage.ts'
import { type Planted, type PlantedBug, patched } from './planted-bug.ts'

/** Those of the ledger, half of which are by somebody who has seen neither code nor tests. */
export const SETS: Readonly<Record<string, readonly PlantedBug[]>> = {
  'of begin and end': [...bugsOfBegin, ...bugsOfEnd],
  'of deaths, debts, reversals and reports': [...bugsOfDeaths, ...bugsOfCorrections],
  'of the statements for calls that fit': bugsOfFastPath,
}

/** Those that tests have to notice. */
export const BUGS: readonly PlantedBug[] = [
  ...Object.values(SETS).flat(),
  ...bugsOfGrowth,
  ...bugsOfMoneyFiles,
  ...bugsOfAccess,
  ...bugsOfProcesses,
  ...bugsOfUsage,
  ...bugsOfBudgets,
  ...bugsOfFloods,
]

/** Those that the run of faults has to notice. */
export const BUGS_OF_FAULTS: readonly BugOfFaults[] = [...bugsOfFaultsByInsiders, ...bugsOfFaultsByTheBlind]

export function byTheBlind(bugs: readonly Pick<PlantedBug, 'author'>[]): number {
  return bugs.filter(({ author }) => author === 'blind').length
}

const MIGRATIONS = 'server/src/storage/migrations/'

/** That a bug changes the source as it is today, by anchors that outlive its formatting. */
export function assertFit({ id, edits }: Planted & Pick<PlantedBug, 'id'>): void {
  assert.ok(edits.length > 0, id)
  for (const { file, find } of edits) {
    assert.ok(!find.includes('\n'), `${id}: an anchor is a part of one line`)
    // The next migration may replace what a migration says; a function's own file is always what runs.
    assert.ok(!file.startsWith(MIGRATIONS), `${id}: patch storage/functions/, or give the bug SQL of its own`)
  }
  for (const file of new Set(edits.map((edit) => edit.file))) {
    const text = readFileSync(path.join(ROOT, file), 'utf8')
    assert.notEqual(patched(file, text, edits), text, id)
  }
}

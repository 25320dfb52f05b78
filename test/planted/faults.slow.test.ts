import assert from 'node:assert/strict'
import { cpSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { startChild } from '../../harness/child.ts'
import { judge } from '../../harness/figures.ts'
import { isFullProof, recordProof, seed } from '../../harness/proof.ts'
import { ROOT } from '../../harness/root.ts'
import { INVARIANTS } from '../faults/invariants.ts'
import { type BugOfFaults, bugsOfFaultsByInsiders } from './bugs-of-faults.ts'
import { bugsOfFaultsByTheBlind } from './bugs-of-faults-blind.ts'
import { bugsOfFaultsInTasks } from './bugs-of-faults-in-tasks.ts'
import { patched } from './planted-bug.ts'
import { makeCopy } from './planted-copy.ts'

/**
 * Bugs that the run of faults catches, each by an invariant that is named for it. With full counts all are tried; else the
 * same one each time, which shows in every call of its kind.
 */
const PROOF = 'planted-faults'
const bugsOfFaults: readonly BugOfFaults[] = [
  ...bugsOfFaultsByInsiders,
  ...bugsOfFaultsInTasks,
  ...bugsOfFaultsByTheBlind,
]
const FEWEST = 15
const FEWEST_BY_THE_BLIND = 12
/** From the start of the cluster to the verdict; judged in proofs only. */
const CAUGHT_WITHIN = { unit: 'ms', atMost: 180_000 } as const
const OF_A_CHANGE = 'embeddings-charged-twice'
const sample = isFullProof ? bugsOfFaults : bugsOfFaults.filter(({ id }) => id === OF_A_CHANGE)
/** What a copy needs beside what tests do. */
const ALSO = ['scripts/faults.ts']
/** Just under what a test may take. */
const RUN_TIMEOUT_MS = 220_000

type Verdicts = Readonly<Record<string, string>>
type Judged = { readonly verdicts: Verdicts; readonly seconds: number }

/** Runs the faults in a copy with the bug, or with none, and gives what the judge says. */
async function judgedIn({ edits, caughtBy }: Pick<BugOfFaults, 'edits' | 'caughtBy'>): Promise<Judged> {
  const startedAtMs = performance.now()
  const { folder, remove } = makeCopy(edits)
  try {
    for (const place of ALSO) cpSync(path.join(ROOT, place), path.join(folder, place), { recursive: true })
    const only = caughtBy.kinds.flatMap((kind) => ['--only', kind])
    const args = ['--seed', String(seed), '--seconds', String(caughtBy.seconds), '--json', ...only]
    const { NODE_TEST_CONTEXT, ...env } = process.env
    const child = startChild(process.execPath, [path.join(folder, 'scripts/faults.ts'), ...args], {
      cwd: folder,
      env,
      signalOnOurDeath: 'TERM',
    })
    const late = setTimeout(() => void child.kill(), RUN_TIMEOUT_MS)
    await child.exited
    clearTimeout(late)
    const line = child
      .output()
      .split('\n')
      .find((text) => text.startsWith('{"ok"'))
    assert.ok(line !== undefined, `the copy did not come to a judgement: ${child.output().slice(-2_000)}`)
    return { verdicts: JSON.parse(line).invariants, seconds: (performance.now() - startedAtMs) / 1_000 }
  } finally {
    remove()
  }
}

/** What fails by itself has caught nothing: each kind of run is seen to hold without a bug, once. */
const healthy = new Map<string, Promise<Judged>>()

async function requireHealthy({ caughtBy }: BugOfFaults): Promise<void> {
  const run = JSON.stringify([caughtBy.kinds, caughtBy.seconds])
  const judging = healthy.get(run) ?? judgedIn({ edits: [], caughtBy })
  healthy.set(run, judging)
  const { verdicts } = await judging
  for (const [name, verdict] of Object.entries(verdicts)) assert.equal(verdict, 'ok', `without the bug: ${name}`)
}

describe('bugs planted against the run of faults', () => {
  it('are fifteen at least, twelve of them by somebody who has seen neither code nor judge', () => {
    assert.ok(bugsOfFaults.length >= FEWEST)
    assert.ok(sample.length > 0)
    assert.ok(bugsOfFaults.filter(({ author }) => author === 'blind').length >= FEWEST_BY_THE_BLIND)
  })

  it('fit the source, and name invariants that there are', () => {
    assert.equal(new Set(bugsOfFaults.map(({ id }) => id)).size, bugsOfFaults.length)
    for (const { id, edits, caughtBy } of bugsOfFaults) {
      for (const file of new Set(edits.map((edit) => edit.file))) {
        const text = readFileSync(path.join(ROOT, file), 'utf8')
        assert.notEqual(patched(file, text, edits), text, id)
      }
      for (const name of caughtBy.invariants) assert.ok(name in INVARIANTS, name)
    }
  })

  for (const bug of sample) {
    const { id, title, promise, author, caughtBy } = bug
    it(`are caught: ${title}`, async (test) => {
      test.diagnostic(`${id}, seed ${seed}`)
      // With reduced counts the run of faults itself shows that it holds.
      if (isFullProof) await requireHealthy(bug)
      const { verdicts, seconds } = await judgedIn(bug)
      const broken = caughtBy.invariants.filter((name) => verdicts[name]?.startsWith('broken'))
      assert.ok(broken.length > 0, JSON.stringify(verdicts))
      const by = Object.fromEntries(broken.map((name) => [name, verdicts[name]?.slice(0, 200)]))
      judge(PROOF, `${id}: to its verdict`, CAUGHT_WITHIN, [seconds * 1_000])
      const caughtIn = Math.round(seconds * 10) / 10
      test.diagnostic(JSON.stringify({ caughtIn, by }))
      recordProof(PROOF, id, { title, promise, author, caught_in_seconds: caughtIn, caught_by: by })
    })
  }
})

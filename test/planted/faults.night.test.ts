import assert from 'node:assert/strict'
import { cpSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { startChild } from '../../harness/child.ts'
import { judge } from '../../harness/figures.ts'
import { isFullProof, recordProof, seed } from '../../harness/proof.ts'
import { ROOT } from '../../harness/root.ts'
import { INVARIANTS } from '../faults/invariants.ts'
import { assertFit, BUGS_OF_FAULTS, byTheBlind } from './all-bugs.ts'
import type { BugOfFaults } from './bugs-of-faults.ts'
import type { Planted } from './planted-bug.ts'
import { makeCopy } from './planted-copy.ts'

/**
 * Bugs that the run of faults catches, each by an invariant that is named for it. With full counts all are tried; else the
 * same one each time, which shows in every call of its kind.
 */
const PROOF = 'planted-faults'
const FEWEST = 15
/** From the start of the cluster to the verdict; judged in proofs only. */
const CAUGHT_WITHIN = { unit: 'ms', atMost: 180_000 } as const
const OF_A_CHANGE = 'embeddings-charged-twice'
const sample = isFullProof ? BUGS_OF_FAULTS : BUGS_OF_FAULTS.filter(({ id }) => id === OF_A_CHANGE)
/** What a copy needs beside what tests do. */
const ALSO = ['scripts/faults.ts']
/** What a bug breaks that only makes the service fail: no judge of money is needed to see that. */
const FAILURES = ['nobody is told of a mistake of ours', 'no process ends by itself']
/** Just under what a test may take. */
const RUN_TIMEOUT_MS = 220_000

type Verdicts = Readonly<Record<string, string>>
type Judged = { readonly verdicts: Verdicts; readonly seconds: number }

/** Runs the faults in a copy with the bug, or with none, and gives what the judge says. */
async function judgedIn(planted: Planted, { kinds, seconds }: BugOfFaults['caughtBy']): Promise<Judged> {
  const startedAtMs = performance.now()
  const { folder, remove } = makeCopy(planted)
  try {
    for (const place of ALSO) cpSync(path.join(ROOT, place), path.join(folder, place), { recursive: true })
    const only = kinds.flatMap((kind) => ['--only', kind])
    const args = ['--seed', String(seed), '--seconds', String(seconds), '--json', ...only]
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
  const judging = healthy.get(run) ?? judgedIn({ edits: [] }, caughtBy)
  healthy.set(run, judging)
  const { verdicts } = await judging
  for (const [name, verdict] of Object.entries(verdicts)) assert.equal(verdict, 'ok', `without the bug: ${name}`)
}

describe('bugs planted against the run of faults', () => {
  it('are fifteen at least, half of them by somebody who has seen neither code nor judge', () => {
    assert.ok(BUGS_OF_FAULTS.length >= FEWEST)
    assert.ok(sample.length > 0)
    assert.ok(byTheBlind(BUGS_OF_FAULTS) * 2 >= BUGS_OF_FAULTS.length)
  })

  it('fit the source, and name invariants that there are', () => {
    for (const bug of BUGS_OF_FAULTS) {
      assertFit(bug)
      for (const name of [...FAILURES, ...bug.caughtBy.invariants]) assert.ok(name in INVARIANTS, name)
    }
  })

  for (const bug of sample) {
    const { id, title, promise, author, caughtBy } = bug
    it(`are caught: ${title}`, async (test) => {
      test.diagnostic(`${id}, seed ${seed}`)
      // With reduced counts the run of faults itself shows that it holds.
      if (isFullProof) await requireHealthy(bug)
      const { verdicts, seconds } = await judgedIn(bug, caughtBy)
      const broken = caughtBy.invariants.filter((name) => verdicts[name]?.startsWith('broken'))
      assert.ok(broken.length > 0, JSON.stringify(verdicts))
      for (const name of FAILURES)
        if (!caughtBy.invariants.includes(name)) assert.equal(verdicts[name], 'ok', `the bug makes it fail: ${name}`)
      const by = Object.fromEntries(broken.map((name) => [name, verdicts[name]?.slice(0, 200)]))
      judge(PROOF, `${id}: to its verdict`, CAUGHT_WITHIN, [seconds * 1_000])
      const caughtIn = Math.round(seconds * 10) / 10
      test.diagnostic(JSON.stringify({ caughtIn, by }))
      recordProof(PROOF, id, { title, promise, author, caught_in_seconds: caughtIn, caught_by: by })
    })
  }
})

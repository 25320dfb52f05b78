import assert from 'node:assert/strict'
import { cpSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { startChild } from '../../harness/child.ts'
import { isFullProof, recordProof, seed } from '../../harness/proof.ts'
import { ROOT } from '../../harness/root.ts'
import { INVARIANTS } from '../faults/invariants.ts'
import { type BugOfFaults, bugsOfFaults } from './bugs-of-faults.ts'
import { patched } from './planted-bug.ts'
import { makeCopy } from './planted-copy.ts'

/**
 * Bugs that the run of faults catches, each by an invariant that is named for it. With full counts all are tried; else one
 * that goes round with the seed, of those that show within a quarter of a minute.
 */
const PROOF = 'planted-faults'
const QUICK_SECONDS = 18
const quick = bugsOfFaults.filter(({ caughtBy }) => caughtBy.seconds <= QUICK_SECONDS)
const sample = isFullProof ? bugsOfFaults : quick.slice(seed % quick.length).slice(0, 1)
/** What a copy needs beside what the tests of the ledger do. */
const ALSO = ['sandbox/src', 'sandbox/package.json', 'scripts/faults.ts']
const RUN_TIMEOUT_MS = 200_000

type Verdicts = Readonly<Record<string, string>>

/** Runs the faults in a copy with the bug, or with none, and gives what the judge says. */
async function judgedIn({ edits, caughtBy }: Pick<BugOfFaults, 'edits' | 'caughtBy'>): Promise<Verdicts> {
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
    return JSON.parse(line).invariants
  } finally {
    remove()
  }
}

describe('bugs planted against the run of faults', () => {
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
    const { id, title, promise, caughtBy } = bug
    it(`are caught: ${title}`, async (test) => {
      test.diagnostic(`${id}, seed ${seed}`)
      // What fails by itself has caught nothing. With reduced counts the run of faults itself shows that it does not.
      const healthy = isFullProof ? await judgedIn({ edits: [], caughtBy }) : {}
      for (const [name, verdict] of Object.entries(healthy)) assert.equal(verdict, 'ok', `without the bug: ${name}`)
      const verdicts = await judgedIn(bug)
      const broken = caughtBy.invariants.filter((name) => verdicts[name]?.startsWith('broken'))
      assert.ok(broken.length > 0, JSON.stringify(verdicts))
      const by = Object.fromEntries(broken.map((name) => [name, verdicts[name]?.slice(0, 200)]))
      test.diagnostic(JSON.stringify(by))
      recordProof(PROOF, id, { title, promise, caught_by: by })
    })
  }
})

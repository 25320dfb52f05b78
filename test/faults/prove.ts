import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { recordProof } from '../../harness/proof.ts'
import { type RunResult, runFaults } from './run.ts'

/** One run, in which every invariant has to hold and every planned fault to hit something, and its figures. */
export async function prove(
  test: TestContext,
  proof: string,
  { seed, seconds }: { readonly seed: number; readonly seconds: number },
): Promise<RunResult> {
  test.diagnostic(`to repeat it: npm run faults -- --seed ${seed} --seconds ${seconds}`)
  const result = await runFaults({ seed, seconds, log: (line) => test.diagnostic(line) })
  const { faults, invariants, figures, history } = result
  const broken = Object.entries(invariants).filter(([, verdict]) => verdict !== 'ok')
  const missed = Object.entries(faults).filter(([, hits]) => hits === 0)
  assert.deepEqual({ broken, missed }, { broken: [], missed: [] }, `seed ${seed}: the history is in ${history}`)
  test.diagnostic(JSON.stringify({ faults, figures }))
  recordProof(proof, `seed ${seed}`, { ...figures, seconds, held: result.ok, faults })
  return result
}

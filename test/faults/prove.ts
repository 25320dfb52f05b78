import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { judge } from '../../harness/figures.ts'
import { recordProof } from '../../harness/proof.ts'
import { type RunResult, runFaults } from './run.ts'

const RESOLVED = { unit: 'ms', atMost: 60_000 } as const

/** One run and its figures, which are recorded however it went. */
export async function runAndRecord(
  test: TestContext,
  proof: string,
  { seed, seconds }: { readonly seed: number; readonly seconds: number },
): Promise<RunResult> {
  test.diagnostic(`to repeat it: npm run faults -- --seed ${seed} --seconds ${seconds}`)
  const result = await runFaults({ seed, seconds, log: (line) => test.diagnostic(line) })
  const { ok, faults, figures } = result
  test.diagnostic(JSON.stringify({ faults, figures }))
  recordProof(proof, `seed ${seed}`, { ...figures, seconds, held: ok, faults })
  return result
}

/** Every invariant held, every planned fault hit something, and every call was resolved in time. */
export function requireHeld(proof: string, { seed, faults, invariants, figures, history }: RunResult): void {
  const broken = Object.entries(invariants).filter(([, verdict]) => verdict !== 'ok')
  const missed = Object.entries(faults).filter(([, hits]) => hits === 0)
  assert.deepEqual({ broken, missed }, { broken: [], missed: [] }, `seed ${seed}: the history is in ${history}`)
  judge(proof, `seed ${seed}: time until every call is resolved`, RESOLVED, [Number(figures.resolved_in_ms)])
}

import { describe, it } from 'node:test'
import { isFullProof } from '../../harness/proof.ts'
import { requireHeld, runAndRecord } from './prove.ts'

const PROOF = 'faults-half-an-hour'
const SEED = 1_000
const SECONDS = 1_800

describe('the cluster under half an hour of faults', () => {
  it('keeps every promise, and every fault of the plan hits something', {
    skip: !isFullProof && 'only as a proof: faults.night.test.ts is the same for less long',
  }, async (test) => {
    requireHeld(PROOF, await runAndRecord(test, PROOF, { seed: SEED, seconds: SECONDS }))
  })
})

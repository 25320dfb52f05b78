import assert from 'node:assert/strict'
import { isFullProof, recordProof } from './proof.ts'

/**
 * Figures of time and memory depend on what else the machine does. So they never decide whether a change lands: `npm test`
 * runs the same code once, and takes no notice of them. `npm run proof`, on a quiet machine, judges and records them.
 */
export type Limit = {
  readonly unit: 'ms' | 'MiB' | 'MB' | 'ratio' | 'share'
  readonly atMost: number
}

/** As many rounds as tell a figure from an accident. */
const ROUNDS = 5

/** Measures again and again, and judges the median. `once` asserts for itself whatever must hold on any machine. */
export async function measure(
  proof: string,
  title: string,
  limit: Limit & { readonly rounds?: number },
  once: (round: number) => Promise<number> | number,
): Promise<void> {
  const { rounds = ROUNDS, unit, atMost } = limit
  const samples: number[] = []
  for (let round = 0; round < (isFullProof ? rounds : 1); round += 1) samples.push(await once(round))
  const spread = spreadOf(samples)
  recordProof(proof, title, { ...spread, judged: 'median', at_most: atMost, unit })
  if (isFullProof) assert.ok(spread.median <= atMost, `${title}: ${spread.median} ${unit}, at most ${atMost}`)
}

/** Judges each of the samples that a test came by anyway. */
export function judge(proof: string, title: string, { unit, atMost }: Limit, samples: readonly number[]): void {
  assert.ok(samples.length > 0, `${title}: nothing was measured`)
  const spread = spreadOf(samples)
  recordProof(proof, title, { ...spread, judged: 'largest', at_most: atMost, unit })
  if (isFullProof) assert.ok(spread.to <= atMost, `${title}: ${spread.to} ${unit}, at most ${atMost}`)
}

function spreadOf(samples: readonly number[]) {
  const sorted = samples.map((sample) => Math.round(sample * 1000) / 1000).sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))] ?? Number.NaN
  return { samples: sorted.length, median: at(0.5), from: at(0), to: at(1) }
}

import assert from 'node:assert/strict'
import path from 'node:path'
import { seedOfCommit } from './commit-seed.ts'
import { writeProof } from './proof-file.ts'
import { ROOT } from './root.ts'

/**
 * What is claimed is shown by tests that run with full counts under `npm run proof`, which writes docs/proof/*.json,
 * and with reduced counts everywhere else. The code is the same.
 */
export const isFullProof = process.env.HARNESS_PROOF === 'full'

export function count({ full, reduced }: { readonly full: number; readonly reduced: number }): number {
  return isFullProof ? full : reduced
}

/**
 * A seed of the run. It comes from the commit, so that a red run can be repeated; a proof looks at fresh cases each time.
 * HARNESS_SEED replays one of either.
 */
export const seed = Number(process.env.HARNESS_SEED ?? (isFullProof ? freshSeed() : seedOfCommit()))

/**
 * A sometimes assertion: what never happened was never tested. Chance and the pace of the machine decide whether it
 * happens, so that only the full counts must show it; a short run says what it did not see. What is certain also with few,
 * and that anything happened at all, is asserted in both.
 */
export function sometimes(happened: boolean, what: string): void {
  if (isFullProof) assert.ok(happened, `it should happen, and did not: ${what}`)
  else if (!happened) console.log(`${programOf()} is short, and did not see: ${what}`)
}

type Figures = Readonly<Record<string, unknown>>
const recorded = new Map<string, Record<string, Figures>>()

/** Notes what a test has shown. One test file owns one proof, so that no two processes write the same file. */
export function recordProof(proof: string, title: string, figures: Figures): void {
  const titles = { ...recorded.get(proof), [title]: figures }
  recorded.set(proof, titles)
  if (!isFullProof) return
  writeProof(proof, { program: programOf(), seed, shown: titles })
}

function programOf(): string {
  return path.relative(ROOT, process.argv[1] ?? '')
}

/** Some proofs take minutes to begin: whoever watches sees how far they are. */
export function tellProgress(what: string): void {
  if (isFullProof) process.stderr.write(`${Math.round(performance.now() / 1_000)} s: ${what}\n`)
}

function freshSeed(): number {
  return Math.floor(Math.random() * 2 ** 31)
}

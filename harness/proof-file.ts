import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { commitHere } from './commit.ts'
import { ROOT } from './root.ts'
import { createSources } from './sources.ts'

export const PROOFS = path.join(ROOT, 'docs/proof')

type Content = {
  /** What has measured it, by its path in the project. */
  readonly program: string
  readonly versions?: Readonly<Record<string, string>>
} & Readonly<Record<string, unknown>>

/** Keeps figures under docs/proof/, with the commit, the time, and a hash of the sources that they come from. */
export function writeProof(proof: string, { program, versions, ...figures }: Content): void {
  mkdirSync(PROOFS, { recursive: true })
  const content = {
    proof,
    recorded_at: new Date().toISOString(),
    commit: commitHere() ?? null,
    program,
    sources: createSources().hashOf(program),
    versions: { node: process.version, ...versions },
    ...figures,
  }
  writeFileSync(path.join(PROOFS, `${proof}.json`), `${JSON.stringify(content, bigintAsText, 2)}\n`)
}

function bigintAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value
}

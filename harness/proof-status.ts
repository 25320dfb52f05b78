import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { changedSince } from './commit.ts'
import { PROOFS } from './proof-file.ts'
import { ROOT } from './root.ts'
import { createSources, type Sources } from './sources.ts'

export type Status = {
  readonly proof: string
  readonly recordedAt: string
  readonly state: 'current' | 'stale' | 'unknown'
  /** For a stale one: the sources of it that differ from its commit's, if that is here. */
  readonly changed: readonly string[]
  /** Papers that name it. */
  readonly citedBy: readonly string[]
}

const Proof = z.object({
  proof: z.string(),
  recorded_at: z.string(),
  commit: z.string().nullish(),
  program: z.string().optional(),
  sources: z.string().optional(),
})

export type Proof = z.output<typeof Proof>

/** Every proof: whether the sources that it exercised are still as they were when it was recorded. */
export function statusOfProofs(): Status[] {
  const sources = createSources()
  const papers = readPapers()
  const asked = new Map<string, ReadonlySet<string>>()
  // Many proofs are of one commit.
  const changedOnce = (commit: string) => {
    const changed = asked.get(commit) ?? changedSince(commit)
    asked.set(commit, changed)
    return changed
  }
  return readdirSync(PROOFS)
    .filter((file) => file.endsWith('.json'))
    .map((file) => {
      const proof = Proof.parse(JSON.parse(readFileSync(path.join(PROOFS, file), 'utf8')))
      const citedBy = [...papers].filter(([, text]) => text.includes(`${proof.proof}.json`)).map(([paper]) => paper)
      return { proof: proof.proof, recordedAt: proof.recorded_at, ...stateOf(proof, sources, changedOnce), citedBy }
    })
}

/** A proof that names no program was recorded before proofs did; one whose program is gone can't be recorded again. */
export function stateOf(proof: Proof, sources: Sources, changed = changedSince): Pick<Status, 'state' | 'changed'> {
  const { program, sources: recorded, commit } = proof
  if (program === undefined || recorded === undefined) return { state: 'unknown', changed: [] }
  let files: readonly string[]
  try {
    if (sources.hashOf(program) === recorded) return { state: 'current', changed: [] }
    files = sources.of(program)
  } catch {
    return { state: 'stale', changed: [program] }
  }
  const since = typeof commit === 'string' ? changed(commit) : undefined
  return { state: 'stale', changed: files.filter((file) => since?.has(file)) }
}

/** One line each: those that need to be recorded again first, and of them those that papers cite. */
export function tellStatus(all: readonly Status[]): string[] {
  const rank = { stale: 0, unknown: 1, current: 2 }
  const told = all.toSorted(
    (a, b) => rank[a.state] - rank[b.state] || b.citedBy.length - a.citedBy.length || a.proof.localeCompare(b.proof),
  )
  const lines = told.map(({ proof, state, recordedAt, changed, citedBy }) => {
    const cited = citedBy.length > 0 ? `cited by ${citedBy.join(', ')}` : ''
    const first = changed.slice(0, 2).join(', ')
    const why =
      changed.length > 0 ? `changed: ${first}${changed.length > 2 ? ` and ${changed.length - 2} more` : ''}` : ''
    return `${state.padEnd(8)} ${proof.padEnd(28)} ${recordedAt.slice(0, 10)}  ${[cited, why].filter(Boolean).join('; ')}`.trimEnd()
  })
  const number = (state: Status['state']) => all.filter((one) => one.state === state).length
  return [...lines, `${number('current')} current, ${number('stale')} stale, ${number('unknown')} of unknown sources`]
}

function readPapers(): ReadonlyMap<string, string> {
  const docs = readdirSync(path.join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }).map((file) => `docs/${file}`)
  const files = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', ...docs].filter((file) => file.endsWith('.md'))
  return new Map(files.map((file) => [file, readFileSync(path.join(ROOT, file), 'utf8')]))
}

import type { Result } from './run-tests.ts'

export type Verdict = {
  readonly ok: boolean
  readonly ids: Readonly<Record<string, 'pass' | 'fail' | 'none'>>
  readonly passing: readonly string[]
  readonly failing: readonly string[]
  readonly without: readonly string[]
  /** Passed before, and no test names it now. */
  readonly lost: readonly string[]
  /** Named by a test, but no statement has it. */
  readonly unknown: readonly string[]
}

type Case = {
  readonly ids: readonly string[]
  readonly passedBefore: readonly string[]
  readonly results: readonly Result[]
}

export function parseIds(list: string): string[] {
  return [...list.matchAll(/^- ([A-Z]+-\d+) /gm)].map(([, id = '']) => id)
}

/** A skipped test proves nothing, and one failing test among several of an id is a failing id. */
export function judge({ ids, passedBefore, results }: Case): Verdict {
  const groups = new Set(ids.map(groupOf))
  const outcomes = new Map<string, string[]>()
  for (const { titles, outcome } of results) {
    const named = new Set(
      titles
        .join(' ')
        .match(/\b[A-Z]+-\d+\b/g)
        ?.filter((id) => groups.has(groupOf(id))),
    )
    for (const id of named) outcomes.set(id, [...(outcomes.get(id) ?? []), outcome])
  }

  const stateOf = (id: string) => {
    const found = outcomes.get(id) ?? []
    if (found.includes('failed')) return 'fail'
    return found.includes('passed') ? 'pass' : 'none'
  }
  const states = Object.fromEntries(ids.map((id) => [id, stateOf(id)] as const))
  const having = (state: string) => ids.filter((id) => states[id] === state)
  const without = having('none')
  const lost = without.filter((id) => passedBefore.includes(id))
  const unknown = [...outcomes.keys()].filter((id) => !ids.includes(id))
  const failing = having('fail')
  const ok = failing.length === 0 && lost.length === 0 && unknown.length === 0
  return { ok, ids: states, passing: having('pass'), failing, without, lost, unknown }
}

function groupOf(id: string): string {
  return id.replace(/-\d+$/, '')
}

import type { Result } from './run-tests.ts'

export type Verdict = {
  readonly ok: boolean
  readonly ids: Readonly<Record<string, 'pass' | 'fail' | 'none'>>
  readonly passing: readonly string[]
  readonly failing: readonly string[]
  readonly without: readonly string[]
  /** Named by a test that proves a part of it alone. They are among those without a test. */
  readonly inPart: readonly string[]
  /** Passed before, and no test proves it now. */
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

/**
 * A skipped test proves nothing, and one failing test among several of an id is a failing id. An id that a title calls proven
 * `in part` (`USAGE-5 in part: …`) is not proven, whatever other tests name it: it is for whoever proves the rest to strike that out.
 */
export function judge({ ids, passedBefore, results }: Case): Verdict {
  const groups = new Set(ids.map(groupOf))
  const outcomes = new Map<string, string[]>()
  const partly = new Set<string>()
  for (const { titles, outcome } of results) {
    const named = new Set<string>()
    for (const [, id = '', inPart] of titles.join(' ').matchAll(/\b([A-Z]+-\d+)\b( in part\b)?/g)) {
      if (!groups.has(groupOf(id))) continue
      named.add(id)
      if (inPart !== undefined) partly.add(id)
    }
    for (const id of named) outcomes.set(id, [...(outcomes.get(id) ?? []), outcome])
  }

  const stateOf = (id: string) => {
    const found = outcomes.get(id) ?? []
    if (found.includes('failed')) return 'fail'
    return found.includes('passed') && !partly.has(id) ? 'pass' : 'none'
  }
  const states = Object.fromEntries(ids.map((id) => [id, stateOf(id)] as const))
  const having = (state: string) => ids.filter((id) => states[id] === state)
  const without = having('none')
  const lost = without.filter((id) => passedBefore.includes(id))
  const unknown = [...outcomes.keys()].filter((id) => !ids.includes(id))
  const failing = having('fail')
  const ok = failing.length === 0 && lost.length === 0 && unknown.length === 0
  const inPart = without.filter((id) => partly.has(id))
  return { ok, ids: states, passing: having('pass'), failing, without, inPart, lost, unknown }
}

function groupOf(id: string): string {
  return id.replace(/-\d+$/, '')
}

import { execFileSync } from 'node:child_process'
import { ROOT } from './root.ts'

/** The commit that is checked out; undefined where there is none to ask for. */
export function commitHere(): string | undefined {
  return git('rev-parse', 'HEAD')?.trim()
}

/** The files that differ from those of a commit; undefined where that commit is not here. */
export function changedSince(commit: string): readonly string[] | undefined {
  return git('diff', '--name-only', commit)?.trim().split('\n')
}

function git(...words: readonly string[]): string | undefined {
  try {
    return execFileSync('git', words, { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' })
  } catch {
    return undefined
  }
}

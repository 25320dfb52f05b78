import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { ROOT } from './root.ts'

const Release = z.object({ commit: z.string().regex(/^[0-9a-f]{40}$/) })
const RELEASE_NAME = /^\d+\.\d+\.\d+[\w.-]*$/

/** The commit that is checked out; undefined where there is none to ask for. */
export function commitHere(): string | undefined {
  return git('rev-parse', 'HEAD')?.trim()
}

/** The files that differ from those of a commit, new ones included; none where that commit is not here. */
export function changedSince(commit: string): ReadonlySet<string> {
  const differing = git('diff', '--name-only', '--no-renames', '-z', commit)
  const unknown = git('ls-files', '--others', '--exclude-standard', '-z')
  return new Set(`${differing ?? ''}${unknown ?? ''}`.split('\0').filter((file) => file !== ''))
}

/** Whether the files are those of the commit that is checked out. */
export function isCommitted(): boolean {
  return git('status', '--porcelain') === ''
}

/** The commit of a release that docs/releases/ knows, of a tag, or of what else git calls one; undefined where that commit is not here. */
export function commitNamed(name: string): string | undefined {
  const record = path.join(ROOT, `docs/releases/${name}.json`)
  const isRelease = RELEASE_NAME.test(name) && existsSync(record)
  const revision = isRelease ? Release.parse(JSON.parse(readFileSync(record, 'utf8'))).commit : name
  return git('rev-parse', '--verify', '--quiet', '--end-of-options', `${revision}^{commit}`)?.trim()
}

function git(...words: readonly string[]): string | undefined {
  try {
    return execFileSync('git', words, { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' })
  } catch {
    return undefined
  }
}

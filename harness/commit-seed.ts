import { execFileSync } from 'node:child_process'
import { ROOT } from './root.ts'

const DIGITS = 7
const WITHOUT_COMMIT = 1

/** The commit's number, so that whoever has the commit has its cases too; 1 where there is no commit to ask for. */
export function seedOfCommit(): number {
  try {
    const hash = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' })
    return Number.parseInt(hash.slice(0, DIGITS), 16)
  } catch {
    return WITHOUT_COMMIT
  }
}

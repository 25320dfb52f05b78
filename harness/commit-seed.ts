import { commitHere } from './commit.ts'

const DIGITS = 7
const WITHOUT_COMMIT = 1

/** The commit's number, so that whoever has the commit has its cases too; 1 where there is no commit to ask for. */
export function seedOfCommit(): number {
  const commit = commitHere()
  return commit === undefined ? WITHOUT_COMMIT : Number.parseInt(commit.slice(0, DIGITS), 16)
}

import path from 'node:path'

/**
 * How a test file runs is in its name (CONTRIBUTING.md): `.test.ts` shares a process with others, `.process.test.ts` has one of its
 * own and starts others, `.night.test.ts` does too and runs at night, and in the gate of a change that reaches it.
 */
export type Lane = 'shared' | 'process' | 'night'

export function laneOf(file: string): Lane {
  const name = /\.(process|night)\.test\.ts$/.exec(file)?.[1]
  return name === 'process' || name === 'night' ? name : 'shared'
}

export const SHARED_PROCESS = path.join(import.meta.dirname, 'shared-process.ts')
/** Whether this process is one that many files share: what they start is started in it. */
export const isShared = process.argv[1] === SHARED_PROCESS

export function needsProcess(what: string): never {
  throw new Error(`${what} needs a process: name the test file *.process.test.ts`)
}

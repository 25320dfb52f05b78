import { execFile } from 'node:child_process'
import { COMMAND_DEADLINE_MS, FAREBOX } from '../../harness/gateways.ts'

export type Run = { readonly code: number; readonly output: string; readonly stdout: string; readonly stderr: string }

/** Runs a line of the command line in a process of its own, as an operator does, in an environment without settings but these. */
export function runFarebox(args: readonly string[], given: Readonly<Record<string, string>>, input = ''): Promise<Run> {
  const env = { ...bareEnvironment(), ...given }
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [FAREBOX, ...args],
      { env, timeout: COMMAND_DEADLINE_MS },
      (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), output: stdout + stderr, stdout, stderr })
      },
    )
    child.stdin?.end(input)
  })
}

/** What surrounds us, without settings of ours. */
export function bareEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('FAREBOX_')))
}

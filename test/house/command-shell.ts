import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import path from 'node:path'
import { ROOT } from '../../harness/root.ts'

export type Ended = { readonly code: number; readonly output: string }
/** What went to standard output stands beside all of it, and how many statements of PostgreSQL it took where these are counted. */
type Ran = Ended & { readonly stdout: string; readonly statements?: number }
/** A line of the command line, with what surrounds it; where a number is given, its process ends with SIGKILL when so many statements have left. */
export type Line = {
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
  readonly dieAfter?: number
}

/** A process that runs lines of the command line one after the other. It ends with this one. */
type Shell = { readonly run: (line: Line) => Promise<Ran>; readonly hasEnded: () => boolean }

function forkShell(): Shell {
  const shell = fork(path.join(ROOT, 'test/house/identity-commands-shell.ts'), {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    // What the tests were started with may name files from another folder.
    execArgv: [],
  })
  const waiting = new Map<number, (ended: Ran) => void>()
  let [lines, complaint] = [0, '']
  let over: Ran | undefined
  shell.stderr?.on('data', (text) => {
    complaint += String(text)
  })
  shell.on('message', ({ line, ...ended }: Ran & { line: number }) => {
    waiting.get(line)?.(ended)
    waiting.delete(line)
    letGo()
  })
  shell.on('exit', (code, signal) => {
    over = { code: -1, output: `the shell has ended by ${signal ?? code}: ${complaint}`, stdout: '' }
    for (const end of waiting.values()) end(over)
  })
  shell.unref()
  Object(shell.stderr).unref()
  letGo()

  /** While nobody waits for a line, the shell keeps nobody alive. */
  function letGo(): void {
    if (waiting.size === 0) shell.channel?.unref()
  }

  return {
    hasEnded: () => over !== undefined,
    run: (asked) =>
      new Promise((resolve) => {
        if (over !== undefined) return resolve(over)
        const line = lines++
        waiting.set(line, resolve)
        shell.channel?.ref()
        shell.send({ line, ...asked })
      }),
  }
}

let shared: Shell | undefined

/** Lines of the command line in a process that all test files of this process share. */
export function startShell(env: NodeJS.ProcessEnv, cwd = process.cwd()) {
  if (shared === undefined || shared.hasEnded()) shared = forkShell()
  return linesIn(shared, env, cwd)
}

/** A line in a process of its own, which ends with SIGKILL when so many statements have left; `code` is -1 then. */
export function runMortal(env: NodeJS.ProcessEnv, dieAfter: number, ...args: readonly string[]): Promise<Ran> {
  return forkShell().run({ args, env, cwd: process.cwd(), dieAfter })
}

/** Lines that run while those of the shared process do. */
export function startShellBeside(env: NodeJS.ProcessEnv, cwd = process.cwd()) {
  return linesIn(forkShell(), env, cwd)
}

function linesIn({ run }: Shell, env: NodeJS.ProcessEnv, cwd: string) {
  const farebox = (...args: readonly string[]): Promise<Ran> => run({ args, env, cwd })

  /** What a line prints that ends well. */
  async function said(...args: readonly string[]): Promise<string> {
    const { code, output } = await farebox(...args)
    assert.equal(code, 0, output)
    return output
  }

  return { farebox, said }
}

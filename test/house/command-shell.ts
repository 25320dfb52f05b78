import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import path from 'node:path'
import { after } from 'node:test'
import { ROOT } from '../../harness/root.ts'

export type Ended = { readonly code: number; readonly output: string }
/** What went to standard output stands beside all of it. */
type Ran = Ended & { readonly stdout: string }

/** A process that runs lines of the command line one after the other, for the test file that starts it. */
export function startShell(env: NodeJS.ProcessEnv, cwd = process.cwd()) {
  const shell = fork(path.join(ROOT, 'test/house/identity-commands-shell.ts'), {
    env,
    cwd,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    // What the tests were started with may name files from another folder.
    execArgv: [],
  })
  after(() => shell.kill())
  const waiting = new Map<number, (ended: Ran) => void>()
  let [lines, complaint] = [0, '']
  let over: Ran | undefined
  shell.stderr?.on('data', (text) => {
    complaint += String(text)
  })
  shell.on('message', ({ line, ...ended }: Ran & { line: number }) => {
    waiting.get(line)?.(ended)
    waiting.delete(line)
  })
  shell.on('exit', (code, signal) => {
    over = { code: -1, output: `the shell has ended by ${signal ?? code}: ${complaint}`, stdout: '' }
    for (const end of waiting.values()) end(over)
  })

  /** Runs a line of the command line. */
  function farebox(...args: readonly string[]): Promise<Ran> {
    const line = lines++
    return new Promise((resolve) => {
      if (over !== undefined) return resolve(over)
      waiting.set(line, resolve)
      shell.send({ line, args })
    })
  }

  /** What a line prints that ends well. */
  async function said(...args: readonly string[]): Promise<string> {
    const { code, output } = await farebox(...args)
    assert.equal(code, 0, output)
    return output
  }

  return { farebox, said }
}

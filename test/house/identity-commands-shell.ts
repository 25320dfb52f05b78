import { createProgram } from '../../server/src/cli/program.ts'
import { dieAfterStatement } from '../storage/die-after.ts'
import type { Line } from './command-shell.ts'

/**
 * The operator's command line in a process that stays: it runs the lines that its parent sends, one after the other, each in its
 * own environment, and says what each wrote and how it ended. Loading the program for every line would take most of a test's time.
 */
const serve = () => Promise.reject(new Error('this shell does not serve'))
// Every command listens for what nobody caught.
process.setMaxListeners(0)

async function run({ args, env, cwd, dieAfter }: Line) {
  const statements = dieAfter === undefined ? undefined : dieAfterStatement(dieAfter)
  let [output, stdout] = ['', '']
  process.stdout.write = (text: string | Uint8Array) => {
    stdout += String(text)
    output += String(text)
    return true
  }
  process.stderr.write = (text: string | Uint8Array) => {
    output += String(text)
    return true
  }
  process.env = { ...env }
  process.chdir(cwd)
  process.exitCode = 0
  await (await createProgram({ serve })).parseAsync([...args], { from: 'user' })
  return { code: Number(process.exitCode), output, stdout, ...(statements && { statements: statements() }) }
}

let last: Promise<unknown> = Promise.resolve()
process.on('message', ({ line, ...given }: Line & { line: number }) => {
  last = last.then(async () => process.send?.({ line, ...(await run(given)) }))
})

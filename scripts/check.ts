import { spawn } from 'node:child_process'
import path from 'node:path'
import { ROOT } from '../harness/root.ts'
import { scriptArguments } from '../harness/script-arguments.ts'

/** `npm run check`: types, lint, the law of who may import whom, lists that name every file, the contract against the last recorded one, and documents that are written by programs, side by side. */
const { positionals } = scriptArguments(
  'Usage: npm run check [-- <check>…]: types, lint, architecture, the contract, and documents that programs write; or some of them.',
  {},
  { allowPositionals: true },
)
const CHECKS: Readonly<Record<string, readonly string[]>> = {
  types: ['tsc', '-p', 'tsconfig.json'],
  'types of the islands': ['tsc', '-p', 'server/src/console/islands/tsconfig.json'],
  'types of the client': ['tsc', '-p', 'client/tsconfig.json', '--noEmit'],
  lint: ['biome', 'check', '--error-on-warnings'],
  architecture: [process.execPath, '--test', '--test-reporter=dot', 'test/architecture.test.ts', 'test/lists.test.ts'],
  'document of the catalogue': [process.execPath, 'scripts/catalogue.ts', '--check'],
  'document of the errors': [process.execPath, 'scripts/errors.ts', '--check'],
  contract: [process.execPath, 'scripts/contract.ts', '--check'],
  "the client's types of the contract": [process.execPath, 'scripts/client-types.ts', '--check'],
  'document of the members': [process.execPath, 'scripts/members.ts', '--check'],
  'document of the settings': [process.execPath, 'scripts/configuration.ts', '--check'],
  'document of the metrics': [process.execPath, 'scripts/metrics.ts', '--check'],
  'document of the commands': [process.execPath, 'scripts/cli.ts', '--check'],
}

async function passes(name: string, [command = '', ...args]: readonly string[]): Promise<boolean> {
  const startedMs = performance.now()
  const child = spawn(path.resolve(ROOT, 'node_modules/.bin', command), args, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const code = await new Promise<number | null>((resolve) =>
    child.once('close', resolve).once('error', (error) => {
      output += error.message
      resolve(127)
    }),
  )
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
  console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)`)
  if (code !== 0) console.log(output)
  return code === 0
}

const named: readonly string[] = positionals
const unknown = named.filter((name) => !Object.hasOwn(CHECKS, name))
if (unknown.length > 0) {
  console.error(`There is no check "${unknown.join('", "')}". There are: ${Object.keys(CHECKS).join(', ')}.`)
  process.exit(2)
}
const wanted = Object.entries(CHECKS).filter(([name]) => named.length === 0 || named.includes(name))
const verdicts = await Promise.all(wanted.map(([name, command]) => passes(name, command)))
process.exitCode = verdicts.every(Boolean) ? 0 : 1

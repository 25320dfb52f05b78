import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { filesOfCheckout } from '../../harness/checkout-files.ts'
import { ROOT } from '../../harness/root.ts'
import { createProgram } from '../../server/src/cli/program.ts'
import { callsIn, codeIn, problemsOf } from './commands.ts'

/** Every command that a paper shows can be typed. Whether it does what the paper says is shown where samples are run. */

/** The history keeps what was once possible, and the reference of commands is written from the program itself. */
const LEFT_OUT: ReadonlySet<string> = new Set(['CHANGELOG.md', 'docs/cli.md'])
const program = await createProgram({ serve: () => Promise.resolve() })

const shown = filesOfCheckout(ROOT)
  .filter((file) => file.endsWith('.md') && !LEFT_OUT.has(file))
  .flatMap((file) => codeIn(readFileSync(path.join(ROOT, file), 'utf8')).map((code) => ({ file, ...code })))

describe('the commands in the papers', () => {
  it('of farebox exist, with their options and as many arguments', () => {
    const calls = shown.filter(({ line }) => callsIn(line).length > 0)
    assert.ok(calls.length > 120, `${calls.length} were found`)
    const wrong = calls.flatMap(({ file, ...code }) =>
      problemsOf(program, code).map((why) => `${file}: ${code.line}: ${why}`),
    )
    assert.deepEqual(wrong, [])
  })

  it('of npm exist in package.json, and programs that node runs are there', () => {
    const { scripts } = z
      .object({ scripts: z.record(z.string(), z.string()) })
      .parse(JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')))
    const named = shown.flatMap(({ file, line }) => [
      ...[...line.matchAll(/\bnpm run ([a-z][a-z-]*)/g)].map(([, name = '']) => ({
        file,
        name,
        isThere: name in scripts,
      })),
      ...[...line.matchAll(/\b(?:node|bash) ((?:scripts|examples|sandbox|test|bench)\/[\w./-]+)/g)].map(
        ([, name = '']) => {
          return { file, name, isThere: existsSync(path.join(ROOT, name)) }
        },
      ),
    ])
    assert.ok(named.length > 60, `${named.length} were found`)
    assert.deepEqual(
      named.filter(({ isThere }) => !isThere),
      [],
    )
  })
})

describe('the test of the commands', () => {
  const problems = (line: string, isBlock = true) => problemsOf(program, { line, isBlock })

  it('takes commands as people write them', () => {
    for (const line of [
      'farebox migrate',
      "account=$(farebox accounts create --name 'First customer' --email a@example.com | awk '/^Account/ { print $2 }')",
      'exec node_modules/.bin/farebox serve       # from a checkout',
      'printf %s "$key" | farebox keys revoke --secret -',
      'farebox accounts list [--name part] [--after id]',
      'farebox upstreams add … --test',
      'farebox models price vendor/small --input 1 --output 4',
      'farebox --version',
    ])
      assert.deepEqual(problems(line), [], line)
    assert.deepEqual(problems('farebox keys create', false), [])
  })

  for (const [line, why] of [
    ['farebox acounts list', 'there is no command "acounts"'],
    ['farebox keys creat <account>', '"keys" has no such command below it'],
    ['farebox keys create <account> --bugdet 5/month', '"create" has no option --bugdet'],
    ['farebox keys create', '"create" needs 1 arguments, not 0'],
    ['farebox credit a 5 usd', '"credit" takes 2 arguments, not 3'],
  ] as const)
    it(`catches ${line}`, () => assert.deepEqual(problems(line), [why]))
})

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { ROOT } from '../../harness/root.ts'

/** docs/dependencies.md gives the reason for every package; a row names one or several, with their versions in the same order. */

const FORM = z.object({
  dependencies: z.record(z.string(), z.string()).default({}),
  devDependencies: z.record(z.string(), z.string()).default({}),
  optionalDependencies: z.record(z.string(), z.string()).default({}),
})

function installed(): readonly string[] {
  const files = globSync(['package.json', '{server,sandbox,client}/package.json'], { cwd: ROOT })
  assert.equal(files.length, 4)
  const all = files.flatMap((file) => {
    const { dependencies, devDependencies, optionalDependencies } = FORM.parse(
      JSON.parse(readFileSync(path.join(ROOT, file), 'utf8')),
    )
    return Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies })
  })
  return all.map(([name, version]) => `${name} ${version.replace(/^npm:(.*)@/, '$1 ')}`)
}

/** Every package of every row. One version for several packages is the version of each. */
function listedIn(text: string): readonly string[] {
  const rows = text.split('\n').filter((line) => line.startsWith('| ') && !/^\| (?:package|-)/.test(line))
  return rows.flatMap((row) => {
    const [names = '', versions = ''] = row.slice(1).split('|')
    const each = versions.split(',').map((version) => version.trim().replace(/ \(.*\)$/, ''))
    return names.split(',').map((name, at) => `${name.trim()} ${each[at] ?? each[0]}`)
  })
}

describe('docs/dependencies.md', () => {
  it('has each package of our package.json files once, with its version, and no other', () => {
    const listed = listedIn(readFileSync(path.join(ROOT, 'docs/dependencies.md'), 'utf8'))
    assert.ok(listed.length > 40)
    assert.deepEqual(listed.toSorted(), installed().toSorted())
  })

  it('would be caught with a wrong version', () => {
    assert.deepEqual(listedIn('| a, @b/c | 1.0.0, 2.0.0 | job |\n| d, e | 3.0.0 | job |\n| f | 4.0.0 (console) |'), [
      ...['a 1.0.0', '@b/c 2.0.0', 'd 3.0.0', 'e 3.0.0', 'f 4.0.0'],
    ])
  })
})

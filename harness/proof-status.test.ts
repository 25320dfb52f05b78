import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { type Proof, stateOf, statusOfProofs, tellStatus } from './proof-status.ts'
import { createSources } from './sources.ts'

const root = mkdtempSync(path.join(tmpdir(), 'farebox-sources-'))
after(() => rmSync(root, { recursive: true }))

const FILES = {
  'test/races.test.ts': `import { judge } from '../server/src/judge.ts'\nconst PROGRAM = 'mortal.ts'\njudge(PROGRAM)\n`,
  'test/mortal.ts': `import { folder } from '../server/src/storage/migrate.ts'\nfolder()\n`,
  'test/other.test.ts': `export const nothing = 1\n`,
  'server/src/judge.ts': `/** Decides. */\nexport const judge = (what: string) => what.length > 3\n`,
  'server/src/storage/migrate.ts': `export const folder = () => 'migrations'\n`,
  'server/src/storage/migrations/0001_first.sql': `-- Money.\ncreate table accounts ();\n`,
  'docs/money.md': 'Money.\n',
}

function write(changes: Readonly<Record<string, string>> = {}): void {
  for (const [file, text] of Object.entries({ ...FILES, ...changes })) {
    mkdirSync(path.join(root, path.dirname(file)), { recursive: true })
    writeFileSync(path.join(root, file), text)
  }
}

function proofOf(program: string): Proof {
  write()
  const sources = createSources(root).hashOf(program)
  return { proof: 'one', recorded_at: '2026-01-01T00:00:00.000Z', program, sources }
}

describe('the age of a proof', () => {
  const stateAfter = (program: string, changes: Readonly<Record<string, string>>) => {
    const proof = proofOf(program)
    write(changes)
    return stateOf(proof, createSources(root)).state
  }

  it('follows what a test imports, what it starts, and the statements that these read', () => {
    write()
    assert.deepEqual(createSources(root).of('test/races.test.ts'), [
      'server/src/judge.ts',
      'server/src/storage/migrate.ts',
      'server/src/storage/migrations/0001_first.sql',
      'test/mortal.ts',
      'test/races.test.ts',
    ])
  })

  for (const [what, file, text] of [
    ['a file of money', 'server/src/judge.ts', 'export const judge = (what: string) => what.length > 4\n'],
    ['a statement', 'server/src/storage/migrations/0001_first.sql', 'create table accounts (id uuid);\n'],
    ['a migration more', 'server/src/storage/migrations/0002_second.sql', 'drop table accounts;\n'],
    ['the program that it starts', 'test/mortal.ts', 'export {}\n'],
  ] as const)
    it(`is over when ${what} changes, and no other's is`, () => {
      assert.equal(stateAfter('test/races.test.ts', { [file]: text }), 'stale')
      rmSync(path.join(root, 'server/src/storage/migrations/0002_second.sql'), { force: true })
      assert.equal(stateAfter('test/other.test.ts', { [file]: text }), 'current')
      rmSync(path.join(root, 'server/src/storage/migrations/0002_second.sql'), { force: true })
    })

  for (const [what, file, text] of [
    ['a paper', 'docs/money.md', 'Other words.\n'],
    [
      'a comment',
      'server/src/judge.ts',
      '/** Other words. */\nexport const judge = (what: string) => what.length > 3\n',
    ],
    [
      'a comment in a statement',
      'server/src/storage/migrations/0001_first.sql',
      '-- Other.\ncreate table accounts ();\n',
    ],
  ] as const)
    it(`goes on when ${what} changes`, () => {
      assert.equal(stateAfter('test/races.test.ts', { [file]: text }), 'current')
    })

  it('is unknown without a program, and over when that is gone', () => {
    const { program: _, ...without } = proofOf('test/races.test.ts')
    assert.equal(stateOf(without, createSources(root)).state, 'unknown')
    assert.equal(stateOf({ ...without, program: 'test/gone.test.ts' }, createSources(root)).state, 'stale')
  })

  it('is told of every proof, the stale ones first', () => {
    const all = statusOfProofs()
    assert.ok(all.length > 50)
    const lines = tellStatus(all)
    assert.equal(lines.length, all.length + 1)
    const states = lines.slice(0, -1).map((line) => line.split(' ')[0])
    const rank = ['stale', 'unknown', 'current']
    assert.deepEqual(
      states,
      states.toSorted((a = '', b = '') => rank.indexOf(a) - rank.indexOf(b)),
    )
  })
})

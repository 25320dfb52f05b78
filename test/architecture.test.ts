import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { MIGRATIONS_FOLDER, readMigrations } from '../server/src/storage/migrations.ts'
import { inspectServer, TABLES } from './architecture.ts'

const ROOT = path.resolve(import.meta.dirname, '..')
const dependencies = Object.keys(JSON.parse(readFileSync(path.join(ROOT, 'server/package.json'), 'utf8')).dependencies)

describe('the laws of imports and of tables', () => {
  it('holds in server/src', () => {
    assert.deepEqual(inspectServer(path.join(ROOT, 'server/src'), dependencies).violations, [])
  })

  it('has read every source file that git knows or will know', () => {
    const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', 'server/src'], {
      cwd: ROOT,
      encoding: 'utf8',
    })
    const expected = listed.split('\n').filter((file) => file.endsWith('.ts') && existsSync(path.join(ROOT, file)))
    const read = inspectServer(path.join(ROOT, 'server/src'), dependencies).files.map((file) => `server/src/${file}`)
    assert.ok(expected.length > 5, 'git lists the sources')
    assert.deepEqual(
      expected.filter((file) => !read.includes(file)),
      [],
    )
  })

  it('knows every table that a database has', async () => {
    const sql = (await readMigrations(MIGRATIONS_FOLDER)).map(({ text }) => text).join('\n')
    const made = [...sql.matchAll(/^create (?:unlogged )?table (\w+)/gm)].map(([, table]) => table ?? '')
    assert.deepEqual(Object.keys(TABLES).sort(), [...made, 'schema_migrations'].sort())
  })

  const planted: Readonly<Record<string, readonly [file: string, text: string, expected: RegExp]>> = {
    'an import upwards': [
      'ledger/post.ts',
      "import { render } from '../http/render.ts'\nrender()",
      /ledger may not import http/,
    ],
    'a type import upwards': [
      'ledger/post.ts',
      "import type { A } from '../http/render.ts'\nexport type B = A",
      /ledger may not import http/,
    ],
    'a re-export upwards': [
      'ledger/post.ts',
      "export { render } from '../http/render.ts'",
      /ledger may not import http/,
    ],
    'a dynamic import upwards': ['ledger/post.ts', "await import('../http/render.ts')", /ledger may not import http/],
    'an import sideways': ['ledger/post.ts', "import '../limits/window.ts'", /ledger may not import limits/],
    'configuration read below the top': ['ledger/post.ts', "import '../config.ts'", /ledger may not read config/],
    'the environment read below the top': [
      'ledger/post.ts',
      'export const home = process.env.HOME',
      /reads process\.env/,
    ],
    'the environment through its module': [
      'ledger/post.ts',
      "import { env } from 'node:process'\nexport const home = env.HOME",
      /environment or any module/,
    ],
    'a table of another folder': [
      'links/count.ts',
      'export const COUNT = `select count(*)\n  from charges where true`',
      /links may not name the table charges/,
    ],
    'a table that only stored functions touch': [
      'limits/count.ts',
      "export const CLEAR = 'delete from windows'",
      /limits may not name the table windows/,
    ],
    'a package that is not listed': ['ledger/post.ts', "import 'left-pad'", /does not list/],
    'an import from outside the server': [
      'ledger/post.ts',
      "import '../../../harness/postgres.ts'",
      /outside server\/src/,
    ],
    'a folder that the law does not know': ['helpers/post.ts', 'export const a = 1', /not in the table/],
  }
  for (const [what, [file, text, expected]] of Object.entries(planted)) {
    it(`catches ${what}`, () => {
      const root = mkdtempSync(path.join(tmpdir(), 'farebox-law-'))
      try {
        mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
        writeFileSync(path.join(root, file), text)
        assert.match(inspectServer(root, dependencies).violations.join('\n'), expected)
      } finally {
        rmSync(root, { recursive: true })
      }
    })
  }

  it('refuses an import whose target is only known when it runs', () => {
    const root = mkdtempSync(path.join(tmpdir(), 'farebox-law-'))
    mkdirSync(path.join(root, 'ledger'))
    writeFileSync(path.join(root, 'ledger/post.ts'), 'export const load = (name: string) => import(name)')
    assert.throws(() => inspectServer(root, dependencies), /only known when it runs/)
    rmSync(root, { recursive: true })
  })
})

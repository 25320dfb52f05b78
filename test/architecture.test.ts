import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { filesOfCheckout } from '../harness/checkout-files.ts'
import { MIGRATIONS_FOLDER, readMigrations } from '../server/src/storage/migrations.ts'
import { circlesIn, inspectServer, TABLES } from './architecture.ts'

const ROOT = path.resolve(import.meta.dirname, '..')
const dependencies = Object.keys(JSON.parse(readFileSync(path.join(ROOT, 'server/package.json'), 'utf8')).dependencies)

describe('the laws of imports and of tables', () => {
  it('holds in server/src', () => {
    assert.deepEqual(inspectServer(path.join(ROOT, 'server/src'), dependencies).violations, [])
  })

  it('has read every source file that git knows or will know', () => {
    const expected = filesOfCheckout().filter((file) => file.startsWith('server/src/') && file.endsWith('.ts'))
    const read = inspectServer(path.join(ROOT, 'server/src'), dependencies).files.map((file) => `server/src/${file}`)
    assert.ok(expected.length > 5, 'git lists the sources')
    assert.deepEqual(
      expected.filter((file) => !read.includes(file)),
      [],
    )
  })

  it('knows every table that a database has', async () => {
    const sql = (await readMigrations(MIGRATIONS_FOLDER)).map(({ text }) => text).join('\n')
    const made = Array.from(sql.matchAll(/^create (?:(?:unlogged )?table|view) (\w+)/gm), ([, name = '']) => name)
    assert.deepEqual(Object.keys(TABLES).sort(), [...made, 'schema_migrations'].sort())
  })

  it('has no circle in what runs, nor in what tests and measures it', () => {
    const parts = ['server/src', 'sandbox/src', 'client/src']
    const folders = [...parts, 'harness', 'scripts', 'test', 'bench', 'examples']
    assert.deepEqual(circlesIn(ROOT, folders), [])
  })

  it('catches a circle around three corners, by types alone', () => {
    const texts = {
      'a.ts': "import type { B } from './b.ts'\nexport type A = B",
      'b.ts': "import type { C } from './deep/c.ts'\nexport type B = C",
      'deep/c.ts': "import type { A } from '../a.ts'\nexport type C = A",
      'd.ts': "import type { A } from './a.ts'\nexport type D = A",
    }
    withFiles(texts, (root) => assert.deepEqual(circlesIn(root, ['.']), [['a.ts', 'b.ts', 'deep/c.ts']]))
  })

  it('looks into no package that a bench has installed', () => {
    const texts = { 'bench/peer/node_modules/odd/a.js': 'return', 'bench/a.ts': 'export const a = 1' }
    withFiles(texts, (root) => assert.deepEqual(circlesIn(root, ['bench']), []))
  })

  it('catches a circle across two folders', () => {
    const texts = {
      'test/world.ts': "import { start } from '../harness/start.ts'\nexport const world = () => start()",
      'harness/start.ts': "export const start = async () => (await import('../test/world.ts')).world()",
    }
    const circle = [['harness/start.ts', 'test/world.ts']]
    withFiles(texts, (root) => assert.deepEqual(circlesIn(root, ['harness', 'test']), circle))
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
    'an import back along a wing': [
      'identity/post.ts',
      "import '../grants/grants.ts'",
      /identity may not import grants/,
    ],
    'an import into a wing beside': [
      'ledger/post.ts',
      "import '../budgets/budgets.ts'",
      /ledger may not import budgets/,
    ],
    'configuration read below the top': ['ledger/post.ts', "import '../config.ts'", /ledger may not read config/],
    'what the configuration consists of': [
      'cli/serve.ts',
      "import '../config/sources.ts'",
      /cli may not import what config\.ts consists of/,
    ],
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
    'what one operation makes, where all are served': [
      'calls/end.ts',
      'export type TaskEnd = { readonly videoUrl: Buffer }',
      /calls may not say video/,
    ],
    'a package that is not listed': ['ledger/post.ts', "import 'left-pad'", /does not list/],
    'a package of another folder': [
      'gateway/serve.ts',
      "import type { FastifyReply } from 'fastify'\nexport type A = FastifyReply",
      /gateway may not import fastify/,
    ],
    'an import from outside the server': [
      'ledger/post.ts',
      "import '../../../harness/postgres.ts'",
      /outside server\/src/,
    ],
    'a folder that the law does not know': ['helpers/post.ts', 'export const a = 1', /not in the table/],
  }
  for (const [what, [file, text, expected]] of Object.entries(planted)) {
    it(`catches ${what}`, () => {
      withFiles({ [file]: text }, (root) =>
        assert.match(inspectServer(root, dependencies).violations.join('\n'), expected),
      )
    })
  }

  it('refuses an import whose target is only known when it runs', () => {
    const texts = { 'ledger/post.ts': 'export const load = (name: string) => import(name)' }
    withFiles(texts, (root) => assert.throws(() => inspectServer(root, dependencies), /only known when it runs/))
  })
})

function withFiles(texts: Readonly<Record<string, string>>, look: (root: string) => void): void {
  const root = mkdtempSync(path.join(tmpdir(), 'farebox-law-'))
  try {
    for (const [file, text] of Object.entries(texts)) {
      mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
      writeFileSync(path.join(root, file), text)
    }
    look(root)
  } finally {
    rmSync(root, { recursive: true })
  }
}

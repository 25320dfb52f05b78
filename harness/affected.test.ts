import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { reachedBy } from './affected.ts'
import { filesOfCheckout } from './checkout-files.ts'
import { laneOf } from './lane.ts'
import { FOUNDATION, isSubject, SUBJECTS } from './night-subjects.ts'
import { ROOT } from './root.ts'

const root = mkdtempSync(path.join(tmpdir(), 'farebox-affected-'))
after(() => rmSync(root, { recursive: true }))

const FILES = {
  'server/src/main.ts': `import './pages.ts'\nimport './storage/migrate.ts'\n`,
  'server/src/pages.ts': `export const [assets, guides] = ['assets', '../../docs']\n`,
  'server/src/assets/page.css': 'a {}\n',
  'server/src/storage/migrate.ts': `export const folder = 'migrations'\n`,
  'server/src/storage/migrations/0001_first.sql': 'select 1;\n',
  'test/calls.night.test.ts': `const PROGRAM = 'server/src/main.ts'\n`,
  'test/fixtures.night.test.ts': `const read = (name: string) => name\nread('recorded/one.json')\n`,
  'test/recorded/one.json': '{}\n',
  'test/documents/papers.night.test.ts': `const PAPERS = 'docs'\n`,
  'test/unit.test.ts': `import '../server/src/pages.ts'\n`,
  'docs/guide.md': '# Guide\n',
  'CHANGELOG.md': '# Changes\n',
  'package-lock.json': '{}\n',
  'harness/serve.ts': 'export {}\n',
  'biome.json': '{}\n',
}
for (const [file, text] of Object.entries(FILES)) {
  mkdirSync(path.join(root, path.dirname(file)), { recursive: true })
  writeFileSync(path.join(root, file), text)
}
execFileSync('git', ['init', '--quiet'], { cwd: root })

const all = Object.keys(FILES).filter((file) => file.endsWith('.test.ts'))
const among = all.filter((file) => file.endsWith('.night.test.ts'))
const [calls, fixtures, papers] = among

describe('the subjects of tests of the night', () => {
  const files = filesOfCheckout(ROOT)
  const places = [...FOUNDATION, ...Object.values(SUBJECTS).flat()]

  it('are tests and places that there are', () => {
    const night = files.filter((file) => laneOf(file) === 'night')
    for (const beginning of Object.keys(SUBJECTS))
      assert.ok(
        night.some((file) => file.startsWith(beginning)),
        beginning,
      )
    for (const place of places) assert.ok(existsSync(path.join(ROOT, 'server/src', place)), place)
  })

  it('leave the tests of pages out of a change of the ledger, and the other way round', () => {
    assert.equal(isSubject('test/site/browser.night.test.ts', 'server/src/ledger/verify.ts'), false)
    assert.equal(isSubject('test/ledger/growing.night.test.ts', 'server/src/site/home/index.ts'), false)
    assert.equal(isSubject('test/ledger/growing.night.test.ts', 'server/src/ledger/verify.ts'), true)
    assert.equal(isSubject('test/ledger/growing.night.test.ts', 'server/src/app/worker.ts'), true)
    assert.equal(isSubject('test/ledger/growing.night.test.ts', 'server/src/ledgers/verify.ts'), false)
    assert.equal(isSubject('test/documents/papers-run.night.test.ts', 'server/src/site/home/index.ts'), true)
  })
})

describe('the tests that a change reaches', () => {
  for (const [what, changed, reached] of [
    ['a source: those that start the program', ['server/src/pages.ts'], [calls]],
    ['a statement in a folder that a source names', ['server/src/storage/migrations/0001_first.sql'], [calls]],
    ['a new statement there', ['server/src/storage/migrations/0001_first.sql'], [calls]],
    ['an asset in a folder that a source names', ['server/src/assets/page.css'], [calls]],
    ['a fixture', ['test/recorded/one.json'], [fixtures]],
    ['a test', ['test/fixtures.night.test.ts'], [fixtures]],
    ['a test that is not among them', ['test/unit.test.ts'], []],
    ['a document: the tests of papers, and not all that start a website', ['docs/guide.md'], [papers]],
    ['a paper that nobody names', ['CHANGELOG.md'], [papers]],
    ['what a run records', ['test/night.json', 'test/durations.json'], []],
    ['the lockfile: all', ['package-lock.json'], among],
    ['the harness: all', ['harness/serve.ts'], among],
    ['a file that no test names: all', ['biome.json'], among],
    ['a file that is gone, and that no test names any more: all', ['server/src/gone.ts'], among],
    ['two files: those of either', ['test/recorded/one.json', 'docs/guide.md'], [fixtures, papers]],
  ] as const)
    it(`are, of ${what}`, () => assert.deepEqual(reachedBy(changed, { among, all, root }), reached))
})

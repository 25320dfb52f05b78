import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { temporaryFolder } from '../../harness/postgres.ts'
import { ROOT } from '../../harness/root.ts'
import { type Planted, patched } from './planted-bug.ts'

/** What the tests of the server and of the client need. Packages are those of the project itself. */
const COPIED = [
  ...['server/src', 'server/package.json', 'sandbox/src', 'sandbox/package.json'],
  ...['client/src', 'client/package.json', 'harness', 'test', 'package.json', 'tsconfig.json'],
  // The website's guides, without which a server with that role does not start.
  'docs',
]
const LINKED = 'node_modules'
const MIGRATIONS = 'server/src/storage/migrations'

/** A copy of the project with a bug in it, or with none, to be removed after use. */
export function makeCopy(planted: Planted): { readonly folder: string; readonly remove: () => void } {
  const folder = temporaryFolder('farebox-planted-')
  const remove = () => rmSync(folder, { recursive: true, force: true })
  try {
    for (const place of COPIED) {
      mkdirSync(path.dirname(path.join(folder, place)), { recursive: true })
      cpSync(path.join(ROOT, place), path.join(folder, place), { recursive: true })
    }
    symlinkSync(path.join(ROOT, LINKED), path.join(folder, LINKED))
    plant(folder, planted)
  } catch (error) {
    remove()
    throw error
  }
  return { folder, remove }
}

/** The bug's own SQL is one more migration. */
function plant(folder: string, { edits, sql }: Planted): void {
  for (const file of new Set(edits.map((edit) => edit.file))) {
    const place = path.join(folder, file)
    writeFileSync(place, patched(file, readFileSync(place, 'utf8'), edits))
  }
  if (sql === undefined) return
  const migrations = path.join(folder, MIGRATIONS)
  const number = String(readdirSync(migrations).length + 1).padStart(4, '0')
  writeFileSync(path.join(migrations, `${number}_planted.sql`), sql, { flag: 'wx' })
}

import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { temporaryFolder } from '../../harness/postgres.ts'
import { ROOT } from '../../harness/root.ts'
import { type Edit, patched } from './planted-bug.ts'

/** What the tests of the server and of the client need. Packages are those of the project itself. */
const COPIED = [
  ...['server/src', 'server/package.json', 'sandbox/src', 'sandbox/package.json'],
  ...['client/src', 'client/package.json', 'harness', 'test', 'package.json', 'tsconfig.json'],
  // The website's guides, without which a server with that role does not start.
  'docs',
]
const LINKED = 'node_modules'

/** A copy of the project with a patch applied, to be removed after use. */
export function makeCopy(edits: readonly Edit[]): { readonly folder: string; readonly remove: () => void } {
  const folder = temporaryFolder('farebox-planted-')
  const remove = () => rmSync(folder, { recursive: true, force: true })
  try {
    for (const place of COPIED) {
      mkdirSync(path.dirname(path.join(folder, place)), { recursive: true })
      cpSync(path.join(ROOT, place), path.join(folder, place), { recursive: true })
    }
    symlinkSync(path.join(ROOT, LINKED), path.join(folder, LINKED))
    for (const file of new Set(edits.map((edit) => edit.file))) {
      const place = path.join(folder, file)
      writeFileSync(place, patched(file, readFileSync(place, 'utf8'), edits))
    }
  } catch (error) {
    remove()
    throw error
  }
  return { folder, remove }
}

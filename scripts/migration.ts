import { execFileSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from '../harness/root.ts'
import { scriptArguments } from '../harness/script-arguments.ts'
import { FUNCTIONS } from '../harness/sql-functions.ts'
import { MIGRATIONS_FOLDER } from '../server/src/storage/migrations.ts'

/** `npm run migration -- <what>`: the next numbered migration. It says which functions change with it: with the last migration all become those of their files. */
const { positionals } = scriptArguments(
  'Usage: npm run migration -- <what it does, in a few words>: the next numbered migration, for a change of tables or of functions.',
  {},
  { allowPositionals: true },
)
const what = positionals.join(' ')
const name = what.replaceAll(/[^a-z0-9]+/gi, '_').toLowerCase()
if (name === '') {
  console.error('Say what it does, in a few words: npm run migration -- counted refusals')
  process.exit(1)
}
const count = readdirSync(MIGRATIONS_FOLDER).filter((file) => file.endsWith('.sql')).length
const file = path.join(MIGRATIONS_FOLDER, `${String(count + 1).padStart(4, '0')}_${name}.sql`)
const status = execFileSync('git', ['status', '--porcelain', '--', FUNCTIONS], { cwd: ROOT, encoding: 'utf8' })
const changed = status
  .split('\n')
  .filter((line) => line.endsWith('.sql'))
  .map((line) => path.basename(line, '.sql'))
const functions = changed.length === 0 ? '' : `-- Functions: ${changed.join(', ')}.\n`
writeFileSync(file, `-- ${what}\n${functions}`, { flag: 'wx' })
console.log(`${path.relative(ROOT, file)}: say in it why, and what changes in tables.`)

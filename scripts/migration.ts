import { readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from '../harness/root.ts'
import { scriptArguments } from '../harness/script-arguments.ts'
import { differences, functionFiles } from '../harness/sql-functions.ts'
import { withMigratedDatabase } from '../harness/test-postgres.ts'
import { MIGRATIONS_FOLDER } from '../server/src/storage/migrations.ts'

/** `npm run migration -- <what>`: the next numbered migration, with those functions whose files differ from the migrations so far. */
const { positionals } = scriptArguments(
  'Usage: npm run migration -- <what it does, in a few words>: the next numbered migration, with the functions that changed.',
  {},
  { allowPositionals: true },
)
const what = positionals
  .join('_')
  .replaceAll(/[^a-z0-9]+/gi, '_')
  .toLowerCase()
if (what === '') {
  console.error('Say what it does, in a few words: npm run migration -- counted refusals')
  process.exit(1)
}
const files = functionFiles()
const { changed, gone } = await withMigratedDatabase((client) => differences(client, files))
const number = String(readdirSync(MIGRATIONS_FOLDER).filter((file) => file.endsWith('.sql')).length + 1).padStart(
  4,
  '0',
)
const file = path.join(MIGRATIONS_FOLDER, `${number}_${what}.sql`)
const dropped = gone.map(({ name, takes }) => `drop function ${name}(${takes.replaceAll(/ DEFAULT [^,]+/g, '')});\n`)
if (changed.length + dropped.length === 0)
  console.log(
    `Every function is as the migrations have it. For a change of tables, write ${path.relative(ROOT, file)} yourself.`,
  )
else {
  writeFileSync(file, [...dropped, ...changed.map((name) => files.get(name) ?? '')].join('\n'), { flag: 'wx' })
  console.log(`${path.relative(ROOT, file)}: ${[...gone.map(({ name }) => `drops ${name}`), ...changed].join(', ')}`)
}

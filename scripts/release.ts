import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { writeClientTypes } from '../harness/client-types.ts'
import { writeRecordedContract } from '../harness/recorded-contract.ts'
import { ROOT } from '../harness/root.ts'
import { scriptArguments } from '../harness/script-arguments.ts'
import { checksumOf, functionFiles, functionsIn } from '../harness/sql-functions.ts'
import { withMigratedDatabase } from '../harness/test-postgres.ts'
import { AHEAD_MAX, MIGRATIONS_FOLDER, readMigrations } from '../server/src/storage/migrations.ts'

/**
 * `node scripts/release.ts`: writes docs/releases/<version>.json, by which a clone knows what has landed: migrations that may not
 * be edited, and functions that running processes call. For the version in package.json and the commit that is checked out.
 */
scriptArguments('Usage: node scripts/release.ts: records what this version has landed, under docs/releases/.', {})
const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'))
const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).trim()
const folder = path.join(ROOT, 'docs/releases')
const migrations = await readMigrations(MIGRATIONS_FOLDER)
const record = {
  version,
  commit,
  ahead: AHEAD_MAX,
  migrations: Object.fromEntries(migrations.map(({ file, checksum }) => [file, checksum])),
  functions: Object.fromEntries(
    (await withMigratedDatabase(functionsIn)).map(({ name, takes, gives }) => [name, `(${takes}) returns ${gives}`]),
  ),
  function_files: Object.fromEntries([...functionFiles()].map(([name, text]) => [name, checksumOf(text)])),
}
mkdirSync(folder, { recursive: true })
writeFileSync(path.join(folder, `${version}.json`), `${JSON.stringify(record, null, 2)}\n`, { flag: 'wx' })
writeRecordedContract()
writeClientTypes()
console.log(
  `docs/releases/${version}.json: ${migrations.length} migrations, ${Object.keys(record.functions).length} functions`,
)

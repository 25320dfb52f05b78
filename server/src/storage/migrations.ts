import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'

/** A numbered .sql file. Files are only ever added: one that was applied somewhere never changes again. */
export type Migration = {
  readonly version: number
  readonly file: string
  readonly text: string
  readonly checksum: string
}

/** What a database says was applied to it. */
export type Applied = { readonly version: number; readonly file: string; readonly checksum: string }

/** Beside this file in the source, and beside the bundle where the build copies them. */
export const MIGRATIONS_FOLDER = path.join(import.meta.dirname, 'migrations')

/** Until 0.2.0 there were other migrations. */
const FIRST_OF_0_1_0 = '0001_change_log.sql'
const FILE_NAME = /^(\d{4})_[a-z0-9_]+\.sql$/
const OWN_TRANSACTION = /^\s*(begin|start\s+transaction|commit|rollback|abort)(\s+(work|transaction))?\s*;/im
/**
 * While a new version is rolled out, processes of the one before it must still be able to start: one that crashes, and all of them where
 * somebody goes back. A release has many migrations, and they only expand. So this is as many as lie between two releases at the most, and
 * what a version uses stays for as many after it.
 */
export const AHEAD_MAX = 30

export async function readMigrations(folder: string): Promise<readonly Migration[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.sql')).sort()
  return Promise.all(
    files.map(async (file, index) => {
      const version = Number(FILE_NAME.exec(file)?.[1] ?? Number.NaN)
      if (version !== index + 1)
        throw new Error(`Migration ${file} should be number ${index + 1}, as in 0001_name.sql, without gaps.`)
      const text = (await readFile(path.join(folder, file), 'utf8')).replaceAll('\r\n', '\n')
      if (OWN_TRANSACTION.test(text))
        throw new Error(`Migration ${file} controls transactions; each migration runs in one of its own.`)
      return { version, file, text, checksum: createHash('sha256').update(text).digest('hex') }
    }),
  )
}

/** What every stored function does in this version, from the folder beside that of its migrations. */
export async function readFunctions(migrations: string): Promise<string> {
  const folder = path.join(migrations, '../functions')
  if (!existsSync(folder)) return ''
  const files = (await readdir(folder)).filter((file) => file.endsWith('.sql')).sort()
  return (await Promise.all(files.map((file) => readFile(path.join(folder, file), 'utf8')))).join('\n')
}

/** Which migrations a database still needs; throws where it is not one that this program can work with. */
export function missingFrom(applied: readonly Applied[], migrations: readonly Migration[]): readonly Migration[] {
  if (applied.some(({ file }) => file === FIRST_OF_0_1_0))
    throw new Error('The database is of 0.1.0, from which there is no way up: give this version a new one.')
  const newest = applied.reduce((most, { version }) => Math.max(most, version), 0)
  const ahead = newest - migrations.length
  if (ahead > AHEAD_MAX)
    throw new Error(
      `The database is ${ahead} migrations ahead of this program, which accepts ${AHEAD_MAX}: run a newer version.`,
    )
  const applicable = new Map(applied.map((one) => [one.version, one]))
  for (const { version, file, checksum } of migrations) {
    const there = applicable.get(version)
    if (there !== undefined && there.checksum !== checksum)
      throw new Error(
        `Migration ${file} is not the one that was applied as ${there.file}: restore it, and add a new one.`,
      )
  }
  const missing = migrations.filter(({ version }) => !applicable.has(version))
  const skipped = missing.find(({ version }) => version < newest)
  if (skipped !== undefined)
    throw new Error(`Migration ${skipped.file} was never applied, but a later one was: this is not a database of ours.`)
  return missing
}

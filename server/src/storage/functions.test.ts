import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import type pg from 'pg'
import { z } from 'zod'
import { ROOT } from '../../../harness/root.ts'
import { differences, functionFiles, functionsIn } from '../../../harness/sql-functions.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { withClient } from '../../../test/storage/with-client.ts'
import { AHEAD_MAX, MIGRATIONS_FOLDER, readMigrations } from './migrations.ts'

const database = await freshDatabase()
const inDatabase = <T>(work: (client: pg.Client) => Promise<T>) => withClient(database.url, work)
const against = (files: ReadonlyMap<string, string>) => inDatabase((client) => differences(client, files))
const files = functionFiles()

describe('the files of functions', () => {
  it('say what a fresh database has', async () => {
    assert.deepEqual(await against(files), { changed: [], gone: [] })
  })

  it('are found wanting where one says something else, and where one is missing', async () => {
    const text = files.get('first_id_at') ?? ''
    const other = text.replace('language sql', 'language sql strict')
    assert.notEqual(other, text)
    const changed = await against(new Map([...files, ['first_id_at', other]]))
    assert.deepEqual(changed, { changed: ['first_id_at'], gone: [] })
    const missing = await against(new Map([...files].filter(([name]) => name !== 'first_id_at')))
    assert.deepEqual(
      missing.gone.map(({ name }) => name),
      ['first_id_at'],
    )
  })

  it('may not define anything but the function of their name', async () => {
    const wrong = new Map([['first_id_at', 'drop table accounts']])
    await assert.rejects(against(wrong), /should be comments, then "create or replace function first_id_at/)
  })
})

const release = z.object({
  version: z.string(),
  commit: z.string().regex(/^[0-9a-f]{40}$/),
  migrations: z.record(z.string(), z.string()),
  functions: z.record(z.string(), z.string()),
})

const RELEASES = path.join(ROOT, 'docs/releases')
const byVersion = new Intl.Collator('en', { numeric: true }).compare
const released = readdirSync(RELEASES)
  .filter((file) => file.endsWith('.json'))
  .sort(byVersion)
  .map((file) => release.parse(JSON.parse(readFileSync(path.join(RELEASES, file), 'utf8'))))

describe('what was released', () => {
  it('has migrations that were never edited since', async () => {
    const now = new Map((await readMigrations(MIGRATIONS_FOLDER)).map(({ file, checksum }) => [file, checksum]))
    assert.ok(released.length > 0)
    for (const { version, migrations } of released)
      for (const [file, checksum] of Object.entries(migrations))
        assert.equal(now.get(file), checksum, `${file} of ${version}`)
  })

  it('has at most as many migrations since then as processes of a release accept', async () => {
    const now = await readMigrations(MIGRATIONS_FOLDER)
    assert.ok(now.length - Object.keys(released.at(-1)?.migrations ?? {}).length <= AHEAD_MAX)
  })

  it('has functions that processes of the last release can still call', async () => {
    const last = released.at(-1)
    const now = new Map(
      (await inDatabase(functionsIn)).map(({ name, takes, gives }) => [name, `(${takes}) returns ${gives}`]),
    )
    for (const [name, signature] of Object.entries(last?.functions ?? {})) assert.equal(now.get(name), signature, name)
  })
})

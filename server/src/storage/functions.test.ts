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
  /** How many more migrations than its own its processes accept; 0.1.0 did not say. */
  ahead: z.int().default(1),
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
    const [last] = released.slice(-1)
    // 0.1.0 accepts one, and is known not to start on what came after it: docs/reliability.md says so.
    if (last?.version === '0.1.0') return
    assert.ok(now.length - Object.keys(last?.migrations ?? {}).length <= (last?.ahead ?? 0))
  })

  it('has functions, tables and columns that processes of every release that may start on it can still use', async () => {
    const now = await inDatabase(usableIn)
    const migrations = await readMigrations(MIGRATIONS_FOLDER)
    for (const { version, migrations: own, functions } of released) {
      const count = Object.keys(own).length
      // 0.1.0 is looked at however far behind it is: processes of it go on serving during the upgrade.
      if (migrations.length - count > AHEAD_MAX && version !== released.at(-1)?.version) continue
      const then = await inEmpty(async (client) => {
        for (const { text } of migrations.slice(0, count)) await client.query(text)
        return usableIn(client)
      })
      assert.ok(then.columns.size > 0)
      assert.deepEqual(breaks(then, now), HARMLESS[version] ?? [], version)
      for (const [name, signature] of Object.entries(functions)) assert.equal(now.functions.get(name), signature, name)
    }
  })

  it('is found broken by a column that is renamed, has another type or must be given, and by a function that is gone', async () => {
    const now = await inDatabase(usableIn)
    for (const [change, expected] of [
      ['alter table accounts rename column mode to kind', ['accounts.mode is gone', 'accounts.kind must be given']],
      ['alter table accounts alter column mode type varchar', ['accounts.mode has another type']],
      ['alter table accounts add column more text not null', ['accounts.more must be given']],
      [
        'drop table usage_tail cascade',
        [...now.columns.keys()].filter((name) => name.startsWith('usage_tail.')).map((name) => `${name} is gone`),
      ],
      ['drop function add_up_usage(integer)', ['add_up_usage is gone']],
    ] as const) {
      const then = await inDatabase(async (client) => {
        await client.query('begin')
        await client.query(change)
        return usableIn(client)
      })
      assert.deepEqual(breaks(now, then).toSorted(), [...expected].toSorted(), change)
    }
  })
})

/** 0.1.0 writes a subject as a parameter without a type, and never reads it: what was a UUID may be a text. */
const HARMLESS: Readonly<Record<string, readonly string[]>> = { '0.1.0': ['audit.subject has another type'] }

type Column = { readonly type: string; readonly mustBeGiven: boolean }
type Usable = {
  readonly functions: ReadonlyMap<string, string>
  /** By table and name. */
  readonly columns: ReadonlyMap<string, Column>
}

/** What a process can call, read and write in a database. Days of charges come and go. */
async function usableIn(client: pg.Client): Promise<Usable> {
  const functions = await functionsIn(client)
  const { rows } = await client.query<Column & { readonly name: string }>(
    `select relname || '.' || attname as name, format_type(atttypid, atttypmod) as type,
       attnotnull and not atthasdef and attidentity = '' as "mustBeGiven"
     from pg_attribute join pg_class on pg_class.oid = attrelid
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v') and not relispartition and attnum > 0 and not attisdropped
     order by 1`,
  )
  return {
    functions: new Map(functions.map(({ name, takes, gives }) => [name, `(${takes}) returns ${gives}`])),
    columns: new Map(rows.map(({ name, ...column }) => [name, column])),
  }
}

/** What a process of then can no longer do with a database of now. */
function breaks(then: Usable, now: Usable): readonly string[] {
  const tables = new Set([...then.columns.keys()].map((name) => name.split('.')[0]))
  const columns = [...then.columns].flatMap(([name, { type }]) => {
    const column = now.columns.get(name)
    if (column === undefined) return [`${name} is gone`]
    return column.type === type ? [] : [`${name} has another type`]
  })
  const given = [...now.columns].filter(
    ([name, { mustBeGiven }]) =>
      mustBeGiven && tables.has(name.split('.')[0]) && then.columns.get(name)?.mustBeGiven !== true,
  )
  const functions = [...then.functions].flatMap(([name, signature]) => {
    if (!now.functions.has(name)) return [`${name} is gone`]
    return now.functions.get(name) === signature ? [] : [`${name} takes or gives something else`]
  })
  return [...columns, ...given.map(([name]) => `${name} must be given`), ...functions]
}

/** In a database that has nothing, of which nothing stays. */
function inEmpty<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  return inDatabase(async (client) => {
    await client.query('begin')
    await client.query('drop schema public cascade')
    await client.query('create schema public')
    return work(client)
  })
}

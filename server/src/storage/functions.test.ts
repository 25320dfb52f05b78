import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type pg from 'pg'
import { type Release, releases } from '../../../harness/releases.ts'
import { checksumOf, definesItself, functionFiles, functionsIn } from '../../../harness/sql-functions.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { withClient } from '../../../test/storage/with-client.ts'
import { AHEAD_MAX, MIGRATIONS_FOLDER, readMigrations } from './migrations.ts'

const database = await freshDatabase()
const inDatabase = <T>(work: (client: pg.Client) => Promise<T>) => withClient(database.url, work)

describe('the files of functions', () => {
  const files = functionFiles()

  it('are the functions of a database, each in a file of its name', async () => {
    const names = (await inDatabase(functionsIn)).map(({ name }) => name)
    assert.deepEqual(names.toSorted(), [...files.keys()].toSorted())
    for (const [name, text] of files) assert.ok(definesItself(name, text), name)
  })

  it('may not define anything but the function of their name', () => {
    const text = files.get('first_id_at') ?? ''
    assert.equal(definesItself('first_id_at', `${text}drop table accounts;\ncreate table accounts (id uuid);\n`), false)
    assert.equal(definesItself('second_id_at', text), false)
  })
})

const released = releases()

describe('what was released', () => {
  it('has migrations that were never edited since', async () => {
    const now = new Map((await readMigrations(MIGRATIONS_FOLDER)).map(({ file, checksum }) => [file, checksum]))
    for (const { version, migrations } of released)
      for (const [file, checksum] of Object.entries(migrations))
        assert.equal(now.get(file), checksum, `${file} of ${version}`)
  })

  it('has at most as many migrations since then as processes of a release accept', async () => {
    const now = await readMigrations(MIGRATIONS_FOLDER)
    for (const { migrations, ahead } of released.slice(-1))
      assert.ok(now.length - Object.keys(migrations).length <= ahead)
  })

  it('has functions that changed since then with a migration, and with calls_may_fit where calls are written by statements too', async () => {
    const { length } = await readMigrations(MIGRATIONS_FOLDER)
    for (const release of released.slice(-1))
      assert.deepEqual(unlawful(release, { files: functionFiles(), migrations: length }), [])
  })

  it('is found unlawful where a function changed without a migration, or the way of calls without calls_may_fit', () => {
    const files = functionFiles()
    const function_files = Object.fromEntries([...files].map(([name, text]) => [name, checksumOf(text)]))
    const release = { migrations: { '0001_baseline.sql': '' }, function_files }
    const changed = (...names: readonly string[]) =>
      new Map([...files].map(([name, text]) => [name, names.includes(name) ? `-- Changed.\n${text}` : text]))
    for (const [names, migrations, expected] of [
      [[], 1, []],
      [['first_id_at'], 2, []],
      [['first_id_at'], 1, ['first_id_at changed, and no migration says so']],
      [['give_back'], 2, ['give_back changed, and calls_may_fit did not']],
      [['give_back', 'calls_may_fit'], 2, []],
    ] as const)
      assert.deepEqual(unlawful(release, { files: changed(...names), migrations }), expected)
  })

  it('has functions, tables and columns that processes of every release that may start on it can still use', async () => {
    const now = await inDatabase(usableIn)
    const migrations = await readMigrations(MIGRATIONS_FOLDER)
    for (const { version, migrations: own, functions } of released) {
      const count = Object.keys(own).length
      if (migrations.length - count > AHEAD_MAX && version !== released.at(-1)?.version) continue
      const { columns } = await inEmpty(async (client) => {
        for (const { text } of migrations.slice(0, count)) await client.query(text)
        return usableIn(client)
      })
      assert.ok(columns.size > 0)
      assert.deepEqual(breaks({ columns, functions: new Map(Object.entries(functions)) }, now), [], version)
    }
  })

  it('is found broken by a column that is renamed, has another type or must be given, and by a function that is gone', async () => {
    const now = await inDatabase(usableIn)
    for (const [change, expected] of [
      ['alter table accounts rename column mode to kind', ['accounts.mode is gone', 'accounts.kind must be given']],
      ['alter table accounts alter column mode type varchar', ['accounts.mode has another type']],
      ['alter table accounts add column more text not null', ['accounts.more must be given']],
      ['alter type call_to_end add attribute more text', ['call_to_end.more must be given']],
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

/** What processes write for calls by statements of their own, which a function that says it otherwise would contradict. */
const WRITE_CALLS = ['begin_attributed_calls', 'end_attributed_calls', 'meter_budget', 'give_back']

/** What changed since a release against the law of CONTRIBUTING.md. */
function unlawful(
  release: Pick<Release, 'migrations' | 'function_files'>,
  now: { readonly files: ReadonlyMap<string, string>; readonly migrations: number },
): readonly string[] {
  const changed = [...now.files]
    .filter(([name, text]) => release.function_files[name] !== checksumOf(text))
    .map(([name]) => name)
  const isUntold = now.migrations === Object.keys(release.migrations).length
  const isLeft = !changed.includes('calls_may_fit')
  return [
    ...changed.filter(() => isUntold).map((name) => `${name} changed, and no migration says so`),
    ...changed
      .filter((name) => isLeft && WRITE_CALLS.includes(name))
      .map((name) => `${name} changed, and calls_may_fit did not`),
  ]
}

type Column = { readonly type: string; readonly mustBeGiven: boolean }
type Usable = {
  readonly functions: ReadonlyMap<string, string>
  /** By table and name. */
  readonly columns: ReadonlyMap<string, Column>
}

/** What a process can call, read and write in a database. Days of charges come and go. Of a composite type, a process writes all fields by place. */
async function usableIn(client: pg.Client): Promise<Usable> {
  const functions = await functionsIn(client)
  const { rows } = await client.query<Column & { readonly name: string }>(
    `select relname || '.' || attname as name, format_type(atttypid, atttypmod) as type,
       relkind = 'c' or attnotnull and not atthasdef and attidentity = '' as "mustBeGiven"
     from pg_attribute join pg_class on pg_class.oid = attrelid
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'c') and not relispartition and attnum > 0 and not attisdropped
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

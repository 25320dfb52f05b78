import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, beforeEach, describe, it } from 'node:test'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { withClient } from '../../../test/storage/with-client.ts'
import { Secret } from '../kernel/secret.ts'
import { silentLog } from '../telemetry/log.ts'
import { migrate, requireMigrated } from './migrate.ts'
import { AHEAD_MAX } from './migrations.ts'
import { createPools } from './pools.ts'

const { url } = await freshDatabase()
const pools = createPools({ url: new Secret(url), log: silentLog })
after(() => pools.close())

const ONE = { '0001_one.sql': 'create table one (n int);\ninsert into one values (1);' }
const TWO = { ...ONE, '0002_two.sql': 'create table two (n int);\r\ninsert into two values (2);' }
const THREE = { ...TWO, '0003_three.sql': 'create table three (n int);' }

const temporary = mkdtempSync(path.join(tmpdir(), 'farebox-migrations-'))
after(() => rmSync(temporary, { recursive: true }))

/** A version of the program, as what it can do to a database. */
function program(files: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(path.join(temporary, 'version-'))
  for (const [file, text] of Object.entries(files)) writeFileSync(path.join(folder, file), text)
  const parts = { url: new Secret(url), log: silentLog, folder }
  return {
    migrate: (more: { turnTimeoutMs?: number; lockTimeoutMs?: number; statementTimeoutMs?: number } = {}) =>
      migrate({ ...parts, ...more }),
    start: () => requireMigrated(pools.rest, folder),
  }
}

beforeEach(() => pools.rest.query('drop schema public cascade; create schema public'))

async function exists(table: string): Promise<boolean> {
  const { rows } = await pools.rest.query('select to_regclass($1) is not null as there', [table])
  return rows[0].there
}

describe('migrating', () => {
  it('applies what is missing in order, once, and notes text and time of each', async () => {
    assert.deepEqual(await program(ONE).migrate(), ['0001_one.sql'])
    assert.deepEqual(await program(THREE).migrate(), ['0002_two.sql', '0003_three.sql'])
    assert.deepEqual(await program(THREE).migrate(), [])
    await program(THREE).start()
    const { rows } = await pools.rest.query(
      `select version, file, length(checksum) as length, applied_at <= clock_timestamp() as past
       from schema_migrations order by version`,
    )
    assert.deepEqual(
      rows,
      Object.keys(THREE).map((file, index) => ({ version: index + 1, file, length: 64, past: true })),
    )
  })

  it('is done once when five processes start at once, and all of them succeed', async () => {
    const slowly = { ...ONE, '0002_slow.sql': 'create table slow (n int); select pg_sleep(0.3);' }
    const applied = await Promise.all(Array.from({ length: 5 }, () => program(slowly).migrate()))
    assert.deepEqual(applied.flat(), ['0001_one.sql', '0002_slow.sql'])
    assert.equal(applied.filter((files) => files.length > 0).length, 1)
    const { rows } = await pools.rest.query('select count(*) as count from one')
    assert.deepEqual(rows, [{ count: 1n }])
  })

  it('gives up with a reason when another process takes too long', async () => {
    await withClient(url, async (client) => {
      await client.query('select pg_advisory_lock(1)')
      const slow = program({ '0001_slow.sql': 'select pg_advisory_xact_lock(1);' }).migrate()
      const migrates = `select from pg_locks
        where database = (select oid from pg_database where datname = current_database()) and objid = 1 and not granted`
      await until(async () => (await client.query(migrates)).rowCount === 1, PATIENCE_MS, 'the migration')
      await assert.rejects(program(ONE).migrate({ turnTimeoutMs: 150 }), {
        message: 'Another process has been migrating the database for 150 ms: look at it, or wait.',
      })
      await client.query('select pg_advisory_unlock(1)')
      await slow
    })
  })

  it("leaves no half of a file that fails, says PostgreSQL's reason with the line, and goes on once it is mended", async () => {
    const broken = { ...ONE, '0002_two.sql': 'create table two (n int);\n\ninsert into two values (2, 3);' }
    await assert.rejects(program(broken).migrate(), {
      message:
        'Migration 0002_two.sql failed and was rolled back: INSERT has more expressions than target columns (42601, line 3)',
    })
    assert.ok(await exists('one'))
    assert.ok(!(await exists('two')))
    await assert.rejects(program(broken).start(), {
      message: 'Migration 0002_two.sql has not been applied to the database: run farebox migrate.',
    })
    assert.deepEqual(await program(TWO).migrate(), ['0002_two.sql'])
    await program(TWO).start()
  })

  it('does not make others queue behind it for a lock', async () => {
    await program(ONE).migrate()
    const altering = { ...ONE, '0002_alter.sql': 'alter table one add column m int;' }
    await withClient(url, async (client) => {
      await client.query('begin; select * from one')
      await assert.rejects(
        program(altering).migrate({ lockTimeoutMs: 200, statementTimeoutMs: 5_000 }),
        /0002_alter.sql .* lock timeout \(55P03\)/,
      )
      await client.query('commit')
    })
    assert.deepEqual(await program(altering).migrate(), ['0002_alter.sql'])
  })

  it('ends a statement that takes longer than it may', async () => {
    const endless = program({ ...ONE, '0002_endless.sql': 'select pg_sleep(600);' })
    await program(ONE).migrate()
    await assert.rejects(
      endless.migrate({ statementTimeoutMs: 2_000 }),
      /0002_endless.sql .* statement timeout \(57014\)/,
    )
  })

  it('survives the loss of its connection, and is repeated', async () => {
    const suicidal = program({ ...ONE, '0002_two.sql': 'select pg_terminate_backend(pg_backend_pid());' })
    await assert.rejects(suicidal.migrate(), {
      message: 'Migration 0002_two.sql was interrupted: run farebox migrate again.',
    })
    assert.deepEqual(await program(TWO).migrate(), ['0002_two.sql'])
  })

  it('refuses files with gaps, odd names or transactions of their own', async () => {
    await assert.rejects(program({ ...ONE, '0003_three.sql': '' }).migrate(), /0003_three.sql should be number 2/)
    await assert.rejects(program({ ...ONE, '0001_two.sql': '' }).migrate(), /0001_two.sql should be number 2/)
    await assert.rejects(program({ '1_one.sql': '' }).migrate(), /1_one.sql should be number 1/)
    await assert.rejects(program({ '0001_one.sql': 'select 1;\ncommit;' }).migrate(), /controls transactions/)
    assert.ok(!(await exists('schema_migrations')))
  })

  it('does not mind how the lines of a file end', async () => {
    await program(TWO).migrate()
    await program({ ...TWO, '0002_two.sql': TWO['0002_two.sql'].replace('\r', '') }).start()
  })
})

describe('a server', () => {
  it('refuses to start on a database that was never migrated', async () => {
    await assert.rejects(program(TWO).start(), {
      message: 'Migration 0001_one.sql and 1 more has not been applied to the database: run farebox migrate.',
    })
  })

  it('refuses to start on a missing migration', async () => {
    await program(ONE).migrate()
    await assert.rejects(program(TWO).start(), {
      message: 'Migration 0002_two.sql has not been applied to the database: run farebox migrate.',
    })
  })

  it('refuses to start, and to migrate, where an applied migration was another', async () => {
    await program(TWO).migrate()
    const changed = program({ ...THREE, '0001_one.sql': 'create table one (n bigint);' })
    const message =
      'Migration 0001_one.sql is not the one that was applied as 0001_one.sql: restore it, and add a new one.'
    await assert.rejects(changed.start(), { message })
    await assert.rejects(changed.migrate(), { message })
    assert.ok(!(await exists('three')))
  })

  const newer = (more: number) => ({
    ...ONE,
    ...Object.fromEntries(
      Array.from({ length: more }, (_, at) => [`${String(at + 2).padStart(4, '0')}_more.sql`, 'select 1;']),
    ),
  })

  it('starts on a database of the next version, with all its migrations, as while that is rolled out', async () => {
    for (const more of [1, AHEAD_MAX]) {
      await program(newer(more)).migrate()
      await program(ONE).start()
      assert.deepEqual(await program(ONE).migrate(), [])
    }
  })

  it('refuses to start on a database that is further ahead than a version can be', async () => {
    await program(newer(AHEAD_MAX + 1)).migrate()
    const message = 'The database is 31 migrations ahead of this program, which accepts 30: run a newer version.'
    await assert.rejects(program(ONE).start(), { message })
    await assert.rejects(program(ONE).migrate(), { message })
  })

  it('refuses a database in which a migration before an applied one is missing', async () => {
    await program(THREE).migrate()
    await pools.rest.query('delete from schema_migrations where version = 2')
    await assert.rejects(program(THREE).start(), /0002_two.sql was never applied, but a later one was/)
    await assert.rejects(program(THREE).migrate(), /0002_two.sql was never applied, but a later one was/)
  })
})

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type Postgres, startPostgres } from '../../../harness/postgres.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { withClient } from '../../../test/storage/with-client.ts'
import { Secret } from '../kernel/secret.ts'
import { silentLog } from '../telemetry/log.ts'
import { createPools } from './pools.ts'
import { checkSafety, type Settings, unsafeSettings } from './safety.ts'

/** What a server that starts now would say of this database; undefined when it would start. */
async function verdict(url: string): Promise<string | undefined> {
  const pools = createPools({ url: new Secret(url), log: silentLog })
  try {
    await checkSafety(pools)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : 'not an error'
  } finally {
    await pools.close()
  }
}

function withOption(url: string, option: string): string {
  return `${url}?options=${encodeURIComponent(`-c ${option}`)}`
}

const { url } = await freshDatabase()
const STANDBY = 'PostgreSQL: this server is a standby and takes no writes; point database.url at the primary.'

describe('the safety check', () => {
  const database = new URL(url).pathname.slice(1)

  it('accepts a PostgreSQL that keeps what it acknowledged', async () => {
    assert.equal(await verdict(url), undefined)
  })

  it('accepts synchronous_commit = remote_apply, and local and remote_write where no standby is synchronous', async () => {
    for (const value of ['remote_apply', 'local', 'remote_write'])
      assert.equal(await verdict(withOption(url, `synchronous_commit=${value}`)), undefined, value)
  })

  it('refuses synchronous_commit = off in the database URL', async () => {
    assert.equal(
      await verdict(withOption(url, 'synchronous_commit=off')),
      'PostgreSQL: synchronous_commit is off, so a crash loses what was acknowledged; remove synchronous_commit from the database URL.',
    )
  })

  const levels = [
    ['database', `database "${database}"`],
    ['role in this database', `role "farebox" in database "${database}"`],
  ] as const
  for (const [level, target] of levels) {
    it(`refuses a ${level} that turns synchronous_commit off`, async () => {
      await withClient(url, (client) => client.query(`alter ${target} set synchronous_commit = off`))
      const message = await verdict(url)
      await withClient(url, (client) => client.query(`alter ${target} reset synchronous_commit`))
      assert.equal(
        message,
        `PostgreSQL: synchronous_commit is off, so a crash loses what was acknowledged; run: alter ${target} reset synchronous_commit.`,
      )
      assert.equal(await verdict(url), undefined)
    })
  }

  it('refuses another default isolation than read committed', async () => {
    assert.match(
      (await verdict(withOption(url, 'default_transaction_isolation=serializable'))) ?? '',
      /^PostgreSQL: default_transaction_isolation is serializable, [^\n]+\.$/,
    )
  })

  it('refuses connections for money that lost the settings of their plans', async () => {
    const pools = createPools({ url: new Secret(url), log: silentLog })
    // As behind a pooler that ignores the options of a connection that starts: those of another pool have none of them but one.
    const lost = ['bitmapscan', 'hashagg', 'hashjoin', 'mergejoin', 'seqscan'].map((way) => `enable_${way} is on`)
    await assert.rejects(checkSafety({ rest: pools.rest, money: pools.rest }), {
      message: [
        `PostgreSQL: connections lose the settings that we start them with (${lost.join(', ')}, plan_cache_mode is auto),`,
        'so accounts may be locked out of order; let the connection pooler pass on startup options, or connect without it.',
      ].join(' '),
    })
    await pools.close()
  })

  const safe: Settings = {
    database: 'd',
    role: 'r',
    isInRecovery: false,
    values: {
      server_version_num: { value: '150000', source: 'default' },
      fsync: { value: 'on', source: 'default' },
      full_page_writes: { value: 'on', source: 'default' },
      synchronous_commit: { value: 'on', source: 'default' },
      synchronous_standby_names: { value: '', source: 'default' },
      default_transaction_isolation: { value: 'read committed', source: 'default' },
    },
  }

  it('refuses a version older than 15', () => {
    assert.deepEqual(unsafeSettings(safe), [])
    const older = { ...safe.values, server_version_num: { value: '140012', source: 'default' } }
    assert.deepEqual(unsafeSettings({ ...safe, values: older }), [
      'PostgreSQL: server_version is 14, which is too old; install 15 or newer.',
    ])
  })

  it('refuses a standby', () => {
    assert.deepEqual(unsafeSettings({ ...safe, isInRecovery: true }), [STANDBY])
  })
})

describe('the safety check of a standby', () => {
  it('says where to point instead', async () => {
    const postgres = await startPostgres()
    try {
      await postgres.stop()
      // With this file in its folder, a server comes up as one that waits for more from a primary.
      writeFileSync(path.join(postgres.folder, 'data/standby.signal'), '')
      await postgres.start()
      assert.equal(await verdict(postgres.url()), STANDBY)
    } finally {
      await postgres.remove()
    }
  })
})

describe('the safety check of a server with unsafe settings', () => {
  let postgres: Postgres
  before(async () => {
    postgres = await startPostgres({
      settings: { fsync: 'off', full_page_writes: 'off', synchronous_standby_names: 'standby' },
    })
  })
  after(() => postgres.remove())

  const FSYNC =
    'PostgreSQL: fsync is off, so a crash of the machine loses or corrupts what was committed; start PostgreSQL with fsync=on.'
  const PAGES =
    'PostgreSQL: full_page_writes is off, so a crash of the machine can leave torn pages; start PostgreSQL with full_page_writes=on.'

  it('says what to change, one line for each setting', async () => {
    assert.equal(await verdict(postgres.url()), `${FSYNC}\n${PAGES}`)
  })

  it('refuses local and remote_write where a standby is synchronous', async () => {
    for (const value of ['local', 'remote_write'])
      assert.equal(
        await verdict(withOption(postgres.url(), `synchronous_commit=${value}`)),
        `${FSYNC}\n${PAGES}\nPostgreSQL: synchronous_commit is ${value}, so a failover to a standby loses what was acknowledged; remove synchronous_commit from the database URL.`,
      )
  })

  it('refuses a role that turns synchronous_commit off', async () => {
    await withClient(withOption(postgres.url(), 'synchronous_commit=local'), (client) =>
      client.query('alter role farebox set synchronous_commit = off'),
    )
    assert.match((await verdict(postgres.url())) ?? '', /; run: alter role "farebox" reset synchronous_commit\.$/)
  })
})

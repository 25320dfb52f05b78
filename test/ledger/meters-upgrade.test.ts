import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { CREDENTIAL_JOINS } from '../../server/src/identity/credential.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { MIGRATIONS_FOLDER } from '../../server/src/storage/migrations.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { callOf, makeParty, openSession, outcomesOf, periodsOf, postOf, windowOf } from './session.ts'
import { connect, ids, makeAllowance, pg } from './world.ts'

/** A database of before, with calls that are open, is brought to this version while others begin and end some. */
const NEXT = '0038_meters_of_credentials.sql'
const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const folder = mkdtempSync(path.join(tmpdir(), 'farebox-before-'))
after(async () => {
  rmSync(folder, { recursive: true })
  await pools.close()
})
for (const file of readdirSync(MIGRATIONS_FOLDER))
  if (file < NEXT) cpSync(path.join(MIGRATIONS_FOLDER, file), path.join(folder, file))
await pool.query('drop schema public cascade; create schema public')
await migrate({ url: new Secret(database.url), log: silentLog, folder })

const ALL = { group: 'all', seconds: 60, requestLimit: 4, tokenLimit: 100 }
const OTHER = { group: 'deep_research', seconds: 60, requestLimit: 5, tokenLimit: null }
const SLOT = { scope: 'concurrency', key: 'all', limit: 3, fingerprint: '', keepSeconds: 0, endsWithOwner: true }

const codeOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => 'done',
    (error: unknown) => (error instanceof pg.DatabaseError ? error.code : String(error)),
  )

describe('the migration that moves what a credential has of its own into its row', () => {
  it('finds every open call, window and period where it is from then on, and lets nobody count where it was', async () => {
    const party = await makeParty(pool, 1_000n)
    const allowance = await makeAllowance(pool, party.accountId, 'month', 500n)
    const asks = { hold: 10n, tokens: 5, windows: [ALL, OTHER], allowances: [allowance], claims: [SLOT] }
    const [first, second, late] = [callOf(party, asks), callOf(party, asks), callOf(party, asks)]
    const other = await makeParty(pool, 1_000n)
    const orphan = callOf(other, { claims: [SLOT] })
    const sessions = await Promise.all([1, 2, 3, 4, 5, 6].map(() => openSession(database.url)))
    const [session, reader, beginner, ender, looker, sweeper] = sessions
    assert.ok(session && reader && beginner && ender && looker && sweeper)
    assert.deepEqual(await outcomesOf(session.begin(first, second, orphan)), ['begun', 'begun', 'begun'])
    // As calls have it that were begun before holds said so.
    await pool.query('update holds set at_once = false, claims = true where id = $1', [first.id])
    await pool.query(
      `insert into claims (credential_id, scope, key, call_id, fingerprint, keep_seconds, ends_with_owner)
       values ($1, 'concurrency', 'all', $2, '', 0, true)`,
      [party.credentialId, first.id],
    )

    // Whoever waits while the migration does goes on by the text that there was before.
    await reader.query('begin')
    await reader.query('select from accounts limit 1')
    const migrated = migrate({ url: new Secret(database.url), log: silentLog, lockTimeoutMs: PATIENCE_MS })
    await until(async () => (await waiting('farebox migrate')) > 0, PATIENCE_MS, 'the wait of the migration')
    const waiters = [beginner, ender, looker, sweeper]
    const [begun, ended] = [codeOf(beginner.begin(late)), codeOf(ender.end(postOf(second, 4n, { inputTokens: 3 })))]
    // Locks credentials first, and accounts later, as every look-up of a key does.
    const found = codeOf(looker.query(`select k.id from api_keys k ${CREDENTIAL_JOINS} where k.id = $1`, [ids.next()]))
    const swept = codeOf(sweeper.query('select mark_unsettled(array[$1::uuid], null)', [orphan.id]))
    await until(
      async () => (await Promise.all(waiters.map((one) => one.waits(pool)))).every((waits) => waits),
      PATIENCE_MS,
      'the wait of the calls and of the look-up',
    )
    await reader.query('commit')
    await migrated
    assert.deepEqual(await Promise.all([begun, ended, found, swept]), ['55P03', '55P03', 'done', 'done'])

    assert.deepEqual(await verifyLedger(pool, [party.accountId, other.accountId]), [])
    assert.equal((await pool.query('select from holds where at_once')).rowCount, 2)
    const { requests, tokens } = (await windowOf(pool, party, 'all')) ?? {}
    assert.deepEqual({ requests, tokens }, { requests: 2, tokens: 10n })
    assert.equal((await windowOf(pool, party, 'deep_research'))?.requests, 2)

    assert.deepEqual(await outcomesOf(beginner.begin(late, callOf(party, asks))), ['begun', 'claim_taken'])
    await ender.end(postOf(first, 4n, { inputTokens: 3 }), postOf(second, 4n, { inputTokens: 3 }))
    assert.equal((await windowOf(pool, party, 'all'))?.tokens, 11n)
    assert.deepEqual(await outcomesOf(session.begin(callOf(party, asks), callOf(party, asks))), [
      'begun',
      'requests_spent',
    ])
    assert.deepEqual(await periodsOf(pool, allowance), [{ charged: 8n, held: 20n }])
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
    await Promise.all(sessions.map((one) => one.close()))
  })
})

async function waiting(applicationName: string): Promise<number> {
  const { rowCount } = await pool.query(
    "select from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock' and datname = current_database()",
    [applicationName],
  )
  return rowCount ?? 0
}

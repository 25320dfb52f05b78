import assert from 'node:assert/strict'
import { it } from 'node:test'
import pg from 'pg'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { withClient } from '../storage/with-client.ts'
import { callOf, makeParty, openSession, postOf } from './session.ts'
import { bookAnew } from './usage-rows.ts'
import { connect, ids } from './world.ts'

const database = await freshDatabase()

it('leaves no connection in its transaction where PostgreSQL does not answer in time', async () => {
  const pool = new pg.Pool({ connectionString: database.url, max: 1, query_timeout: 200 })
  try {
    await withClient(database.url, async (other) => {
      await other.query('begin')
      await other.query('lock table accounts in access exclusive mode')
      await assert.rejects(verifyLedger(pool), /Query read timeout/)
      await other.query('rollback')
    })
    const write = () =>
      pool.query('create table if not exists written_afterwards ()').then(
        () => true,
        // Short for this statement too.
        (error: unknown) => {
          assert.match(String(error), /Query read timeout/)
          return false
        },
      )
    await until(write, PATIENCE_MS, 'a statement in time')
  } finally {
    await pool.end()
  }
})

it('finds usage that stands under an account which is not that of its charges', async () => {
  const { pools } = connect(database.url)
  const session = await openSession(database.url)
  try {
    const [party, other] = [await makeParty(pools.rest, 1_000n), await makeParty(pools.rest, 1_000n)]
    const endUser = { id: ids.next(), label: 'somebody' }
    const attribution = { model: 'gpt', endUser, tags: [{ name: 'team', value: 'search' }] }
    const call = callOf(party, { hold: 10n, attribution })
    await session.begin(call)
    await session.end(postOf(call, 7n))
    const moved = (table: string) =>
      session.query(`update ${table} set account_id = case account_id when $1 then $2::uuid else $1 end`, [
        party.accountId,
        other.accountId,
      ])
    const foundIn = async (table: string) => {
      await moved(table)
      for (const accounts of [null, [party.accountId], [other.accountId]])
        assert.notDeepEqual(await verifyLedger(pools.rest, accounts), [], `${table} of ${accounts ?? 'all'}`)
      await moved(table)
      assert.deepEqual(await verifyLedger(pools.rest), [])
    }
    await foundIn('usage_tail')
    await addUpUsage(pools.rest)
    for (const table of ['usage_totals', 'usage_sums']) await foundIn(table)
    // As if the call had been made the day before yesterday.
    await session.query('set session_replication_role = replica')
    await session.query("update charges set ended_at = ended_at - interval '48 hours'")
    await session.query('reset session_replication_role')
    await bookAnew((text) => session.query(text))
    await addUpUsage(pools.rest)
    await session.query('select combine_usage_days(most => 100)')
    assert.ok((await session.query("select from usage_sums where grain = 'day'")).length > 0)
    await foundIn('usage_sums')
  } finally {
    await Promise.all([session.close(), pools.close()])
  }
})

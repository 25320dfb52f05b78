import assert from 'node:assert/strict'
import { it } from 'node:test'
import pg from 'pg'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { withClient } from '../storage/with-client.ts'

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
    await pool.query('create table written_afterwards ()')
  } finally {
    await pool.end()
  }
})

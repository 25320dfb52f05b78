import assert from 'node:assert/strict'
import { it } from 'node:test'
import pg from 'pg'
import { startPostgres } from '../../harness/postgres.ts'

it('runs on the PostgreSQL that npm brought, where the machine has none', async () => {
  const postgres = await startPostgres({ from: ['npm'] })
  try {
    const client = new pg.Client(postgres.url())
    await client.connect()
    const { rows } = await client.query('show server_version_num')
    await client.end()
    assert.ok(Number(rows[0]?.server_version_num) >= 180_000)
  } finally {
    await postgres.remove()
  }
})

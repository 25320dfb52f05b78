import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import pg from 'pg'
import { measure } from './figures.ts'
import { freshDatabase } from './test-postgres.ts'

const LIMIT = { unit: 'ms', atMost: 100, rounds: 9 } as const

describe('a fresh database', () => {
  it('is there, with all migrations, in less than 100 ms', async () => {
    await freshDatabase()
    await measure('fresh-database', 'a fresh database with all migrations', LIMIT, async () => {
      const startedAtMs = performance.now()
      const { url } = await freshDatabase()
      const tookMs = performance.now() - startedAtMs
      assert.ok((await migrationsIn(url)) > 0)
      return tookMs
    })
  })
})

async function migrationsIn(url: string): Promise<number> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    const { rows } = await client.query('select count(*)::integer as count from schema_migrations')
    return rows[0].count
  } finally {
    await client.end()
  }
}

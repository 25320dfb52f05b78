import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { Secret } from '../kernel/secret.ts'
import { silentLog } from '../telemetry/log.ts'
import { createPools, type Pools } from './pools.ts'
import { inTransaction } from './transaction.ts'

const { url } = await freshDatabase()

describe('a transaction', () => {
  let pools: Pools
  before(async () => {
    pools = createPools({ url: new Secret(url), log: silentLog, restConnections: 1 })
    await pools.rest.query('create table notes (text text unique)')
  })
  after(() => pools.close())

  async function notes(): Promise<unknown[]> {
    const { rows } = await pools.rest.query('delete from notes returning text')
    return rows.map(({ text }) => text)
  }

  it('commits what its work did, and gives back what it returned', async () => {
    const result = await inTransaction(pools.rest, async (query) => {
      await query('insert into notes values ($1)', ['kept'])
      return 'result'
    })
    assert.equal(result, 'result')
    assert.deepEqual(await notes(), ['kept'])
  })

  it('rolls back when its work throws, and keeps the connection', async () => {
    const { rows: before } = await pools.rest.query('select pg_backend_pid() as pid')
    const work = inTransaction(pools.rest, async (query) => {
      await query(`insert into notes values ('lost')`)
      throw new Error('refused')
    })
    await assert.rejects(work, { message: 'refused' })
    assert.deepEqual(await notes(), [])
    assert.deepEqual((await pools.rest.query('select pg_backend_pid() as pid')).rows, before)
  })

  it('rejects when a statement in it failed and nobody minded', async () => {
    const work = inTransaction(pools.rest, async (query) => {
      await query(`insert into notes values ('lost')`)
      await query('select 1 / 0').catch(() => {})
    })
    await assert.rejects(work, /rolled back/)
    assert.deepEqual(await notes(), [])
  })

  it('gives up a connection that was lost in it, and leaves nothing behind', async () => {
    const work = inTransaction(pools.rest, async (query) => {
      await query(`insert into notes values ('lost')`)
      await query('select pg_terminate_backend(pg_backend_pid())')
    })
    await assert.rejects(work)
    assert.deepEqual(await notes(), [])
  })
})

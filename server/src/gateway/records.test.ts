import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { connect } from '../../../test/ledger/world.ts'
import { rowsRead } from '../../../test/storage/rows-read.ts'
import { pruneRecords } from './records.ts'

const { url } = await freshDatabase()
const { pools } = connect(url)
const pool = pools.rest
after(() => pools.close())

/** Records of calls of so many days ago. */
async function keep(count: number, days: number): Promise<void> {
  await pool.query(
    `insert into request_records (id, detail)
     select overlay(first_id_at(now() - make_interval(days => $2))::text placing lpad(to_hex(n), 12, '0') from 25)::uuid, '{}'
     from generate_series(1, $1) n`,
    [count, days],
  )
}

const kept = async () => (await pool.query('select from request_records')).rowCount

describe('records of calls', () => {
  it('are forgotten when they are older than they are kept', async () => {
    await keep(1_200, 31)
    await keep(5_000, 29)
    assert.equal(await pruneRecords(pool, 30), 1_200)
    assert.equal(await kept(), 5_000)
  })

  it('are not read to find that none is old', async () => {
    const read = await rowsRead(url, 'request_records', (one) => pruneRecords(one, 30))
    assert.ok(read < 10, `${read} of ${await kept()} were read`)
  })
})

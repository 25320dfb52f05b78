import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { charges } from '../../server/src/account/export-charges.ts'
import { nodesOf } from '../acceptance/plan-nodes.ts'
import { connect } from '../ledger/world.ts'
import { makeTeam } from './house.ts'

/** Which rows of charges an export reads. */

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

const DAYS = 5
const OF_DAY = 260
const KEYS = 450
/** Of the keys, the first of every so many is used. */
const USED = 11

const team = await makeTeam(pool, [])
const neighbour = await makeTeam(pool, [])
await pool.query('select make_charge_partition(current_date - day) from generate_series(1, $1::integer) day', [DAYS])
for (const [{ accountId }, ofDay] of [
  [team, OF_DAY],
  [neighbour, 20 * OF_DAY],
] as const) {
  await pool.query("update accounts set created_at = clock_timestamp() - interval '20 days' where id = $1", [accountId])
  await pool.query(
    'insert into credentials (id, account_id) select gen_random_uuid(), $1 from generate_series(1, $2::integer)',
    [accountId, KEYS],
  )
  await pool.query(
    `insert into charges (id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost, executed, failed,
       input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at)
     select (substr(first_id_at(at)::text, 1, 13) || '-7' || substr(gen_random_uuid()::text, 16))::uuid, $1, key.id, 'tag_detail', 'posted', 5, 5, 0, 0, 5, 0,
       true, false, 1, 1, 0, 0, '{}', at, at
     from generate_series(0, $2::integer * $3::integer - 1) n
     cross join lateral (select date_trunc('day', clock_timestamp(), 'UTC') - (n / $3) * interval '1 day' + (n % $3) / 100 * interval '1 microsecond' as at) moment
     join (select id, row_number() over (order by id) - 1 as place from credentials where account_id = $1) key on key.place = n % 40 * $4::integer`,
    [accountId, DAYS, ofDay, USED],
  )
}
await pool.query('vacuum (analyze)')

type Sent = { readonly text: string; readonly values: unknown[] }
const sent: Sent[] = []
const spy = new Proxy(pool, {
  get(target, name) {
    if (name !== 'query') return Reflect.get(target, name)
    return (asked: string | Sent, values: unknown[] = []) => {
      const statement = typeof asked === 'string' ? { text: asked, values } : asked
      if (/from charges/.test(statement.text)) sent.push(statement)
      return target.query(statement.text, statement.values)
    }
  },
})

const told: string[] = []
const asOf = new Date()
const own = { pool: spy, mode: 'test', accountId: team.accountId } as const
for await (const lines of charges({
  ...{ ...own, export: { asOf, asOfUs: BigInt(asOf.getTime()) * 1_000n } },
  inTurn: (read) => read(),
}))
  for (const { text } of lines) told.push(JSON.parse(text).id)

const number = (value: unknown) => Number(value ?? 0)

describe('an export of days of charges', () => {
  it('has every charge once', async () => {
    const { rows } = await pool.query<{ id: string }>('select id from charges where account_id = $1', [team.accountId])
    assert.equal(rows.length, DAYS * OF_DAY)
    assert.deepEqual(told.toSorted(), rows.map(({ id }) => id).toSorted())
  })

  it('reads no day as a whole, and for a page about as many rows as it shows', async () => {
    assert.ok(sent.length > 3)
    for (const { text, values } of sent) {
      const { rows } = await pool.query(`explain (analyze, timing off, format json) ${text}`, values)
      const scans = nodesOf(Object(rows[0])['QUERY PLAN'][0].Plan)
        .filter((node) => String(node['Relation Name']).startsWith('charges'))
        .map((node) => ({
          ...{ kind: node['Node Type'], day: node['Relation Name'] },
          rows: (number(node['Actual Rows']) + number(node['Rows Removed by Filter'])) * number(node['Actual Loops']),
        }))
        .filter((scan) => scan.rows > 0)
      assert.deepEqual(
        scans.filter(({ kind }) => kind === 'Seq Scan'),
        [],
      )
      const read = scans.reduce((sum, scan) => sum + scan.rows, 0)
      assert.ok(read <= 2 * DAYS * OF_DAY, `${read} rows: ${text}`)
    }
  })
})

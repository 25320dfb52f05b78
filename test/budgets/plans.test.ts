import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type pg from 'pg'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { readBudget, readBudgets, readPeriods } from '../../server/src/ledger/balance.ts'
import { ids } from '../acceptance/installation.ts'
import { nodesOf } from '../acceptance/plan-nodes.ts'
import { makeParty } from '../ledger/session.ts'
import { connect } from '../ledger/world.ts'

const KEYS = 20_000
const PORTION = 500

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

const { accountId } = await makeParty(pool, 1_000n)
const { rows } = await pool.query<{ id: Id }>(
  `with made as (
     insert into allowances (id, account_id, period, amount)
     select gen_random_uuid(), $1, 'month', 1000 from generate_series(1, $2::integer) returning id
   ), keys as (
     insert into credentials (id, account_id, active, budget_id, budget_starts_at, budget_ends_at, budget_ceiling, budget_amount, budget_charged, budget_held)
     select gen_random_uuid(), $1, true, id, period_start('month', now()), 'infinity', 1000, 1000, 7, 0 from made
   )
   select id from made limit $3`,
  [accountId, KEYS, PORTION],
)
const budgets = rows.map(({ id }) => id)
await pool.query(
  `insert into kept_periods (allowance_id, starts_at, amount, charged, held)
   select a.id, period_start('month', now() - n * interval '32 days'), 1000, 5, 0
   from (select id from allowances limit $1) a cross join generate_series(1, 12) n`,
  [PORTION],
)
await pool.query('analyze')

/** Every statement that is sent by way of it. */
function recorder(): {
  readonly through: pg.Pool
  readonly sent: { readonly text: string; readonly values: unknown[] }[]
} {
  const sent: { readonly text: string; readonly values: unknown[] }[] = []
  const query = (text: string, values: unknown[]) => {
    sent.push({ text, values })
    return pool.query(text, values)
  }
  return { through: Object.assign(Object.create(pool), { query }), sent }
}

const READS = {
  'one budget': async (through: pg.Pool) => [await readBudget(through, budgets[0] ?? ids.next())],
  'a portion of budgets': async (through: pg.Pool) => [...(await readBudgets(through, budgets)).values()],
  'the periods of one': async (through: pg.Pool) =>
    [...(await readPeriods(through, budgets.slice(0, 1))).values()].flat(),
  'the periods of a portion': async (through: pg.Pool) => [...(await readPeriods(through, budgets)).values()].flat(),
} as const

/** By what the two places of periods are looked up, and by what of them. */
const CONDITIONS = {
  credentials_of_budget: /budget_id = a\.id/,
  kept_periods_pkey: /allowance_id = a\.id.*starts_at = /,
}
const TABLES = new Set(['credentials', 'kept_periods'])

describe(`of ${KEYS} keys that have called, each with a budget of its own`, () => {
  for (const [name, read] of Object.entries(READS))
    it(`${name} is found by an index, without reading those of everybody`, async () => {
      const { through, sent } = recorder()
      const states = await read(through)
      assert.equal(states.length, name.includes('portion') ? PORTION : 1)
      assert.deepEqual(new Set(states.map((one) => one?.spent)), new Set([7n]))
      assert.equal(sent.length, 1)
      for (const { text, values } of sent) {
        const plan = await pool.query(`explain (format json) ${text}`, values)
        const nodes = nodesOf(Object(plan.rows[0])['QUERY PLAN'][0].Plan)
        for (const [index, condition] of Object.entries(CONDITIONS)) {
          const scans = nodes.filter((one) => one['Index Name'] === index)
          assert.ok(scans.length > 0, `by ${index}: ${JSON.stringify(nodes)}`)
          for (const scan of scans) assert.match(String(scan['Index Cond']), condition)
        }
        assert.deepEqual(
          nodes.filter((one) => one['Node Type'] === 'Seq Scan' && TABLES.has(String(one['Relation Name']))),
          [],
        )
      }
    })
})

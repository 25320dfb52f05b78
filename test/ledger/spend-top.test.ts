import assert from 'node:assert/strict'
import { after, it } from 'node:test'
import { seed } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { readSpendTop, SPEND_GROUPS, type SpendGroup } from '../../server/src/ledger/spend-top.ts'
import { createRandom } from '../contract/generate.ts'
import { callOf, makeParty, openSession, postOf } from './session.ts'
import { bookAnew } from './usage-rows.ts'
import { connect, ids } from './world.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

const HOUR = 3_600
const CALLS = 400
const thisHour = Math.floor(Date.now() / 1_000 / HOUR) * HOUR
const { below, chance, pick } = createRandom(seed)

const COLUMN: Readonly<Record<SpendGroup, string>> = {
  customer: 'account_id',
  model: 'model',
  operation: 'operation',
  upstream: 'route',
}

/** By the charges and entries themselves. */
async function reckon(by: SpendGroup, from: number, to: number) {
  const { rows } = await pool.query(
    `select item, sum(charged)::text as charged, sum(cost)::text as cost, sum(requests)::integer as requests from (
       select ${COLUMN[by]}::text as item, amount as charged, upstream_cost as cost, executed::integer as requests, ended_at as at from charges
       union all select ${COLUMN[by]}::text, charged, 0, 0, entered_at from entries where credential_id is not null and charged <> 0
     ) of_all where at >= to_timestamp($1) and at < to_timestamp($2)
     group by item having sum(charged) <> 0 or sum(cost) <> 0 or sum(requests) <> 0`,
    [from, to],
  )
  return new Map(rows.map(({ item, charged, cost, requests }) => [item, [charged, cost, requests]]))
}

it('who and what was charged most is to the nano what charges and refunds are, by whatever it is grouped, in any window', async () => {
  const parties = await Promise.all(Array.from({ length: 6 }, () => makeParty(pool, 10n ** 12n)))
  for (let made = 0; made < CALLS; made += 1) {
    const model = pick(['gpt', 'claude', null])
    const operation = pick(['chat', 'tag_detail', 'rerank'])
    const party = pick(parties)
    const call = callOf(party, { hold: 100_000n, operation, attribution: { model, endUser: null, tags: [] } })
    await session.begin(call)
    await session.end(postOf(call, BigInt(below(100_000))))
    if (chance(0.2))
      await session.query(
        'select reverse_charge(reversal_id => $1, charge_id => $2, most => $3, reversal_kind => $4)',
        [ids.next(), call.id, below(50_000), 'charge_reversal'],
      )
  }
  // Over the last days, and a part of it in no sum yet.
  await session.query('set session_replication_role = replica')
  const anyTime = `to_timestamp(${thisHour + HOUR - 1} - floor(random() * ${5 * 24 * HOUR}))`
  await session.query(
    `update charges set ended_at = ${anyTime}, upstream_cost = floor(random() * 2) * floor(random() * 90000), route = (array['openai', 'anthropic', null])[1 + floor(random() * 3)]`,
  )
  await session.query(
    `update entries e set entered_at = ${anyTime}, route = c.route from charges c where c.id = e.corrects`,
  )
  await session.query('reset session_replication_role')
  await bookAnew((text) => session.query(text))
  await addUpUsage(pool)

  for (let window = 0; window < 20; window += 1) {
    const to = thisHour + HOUR - below(40) * HOUR
    const from = to - (1 + below(100)) * HOUR
    for (const by of SPEND_GROUPS) {
      const query = { by, mode: 'live', fromSeconds: from, toSeconds: to } as const
      const { top, others, all } = await readSpendTop(pool, { ...query, most: 100 })
      const shown = new Map(
        top.map(({ item, charged, cost, requests }) => [item, [String(charged), String(cost), requests]]),
      )
      const expected = await reckon(by, from, to)
      const inOrder = (some: ReadonlyMap<unknown, unknown>) =>
        [...some].toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1))
      assert.deepEqual(inOrder(shown), inOrder(expected), `${by} of ${(to - from) / HOUR} hours`)
      assert.equal(others, null)
      assert.deepEqual(
        top.map(({ charged }) => charged),
        top.map(({ charged }) => charged).toSorted((a, b) => Number(b - a)),
      )
      const cut = await readSpendTop(pool, { ...query, most: 1 })
      assert.deepEqual(cut.all, all)
      const rest = (cut.others?.charged ?? 0n) + (cut.top[0]?.charged ?? 0n)
      assert.equal(rest, all.charged, 'the first one and the others are all')
    }
  }
})

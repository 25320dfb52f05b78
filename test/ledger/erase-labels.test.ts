import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { eraseLabels } from '../../server/src/ledger/erase-labels.ts'
import { reverseCharge } from '../../server/src/ledger/reverse.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { callOf, makeParty, openSession, postOf } from './session.ts'
import { connect, ids } from './world.ts'

const { url } = await freshDatabase()
const { pools } = connect(url)
const pool = pools.rest
const session = await openSession(url)
after(async () => {
  await session.close()
  await pools.close()
})

/** More than one portion, of two end users, with one call given back. */
const CALLS = 2_100
const AT_ONCE = 300

async function makeLabelled() {
  const party = await makeParty(pool, 1_000_000n)
  const users = ['zoe', 'yan'].map((label) => ({ id: ids.next(), label }))
  const calls = Array.from({ length: CALLS }, (_, at) => {
    const endUser = users[at % users.length] ?? null
    return callOf(party, { hold: 10n, attribution: { model: null, endUser, tags: [] } })
  })
  for (let from = 0; from < CALLS; from += AT_ONCE) {
    const some = calls.slice(from, from + AT_ONCE)
    await session.begin(...some)
    await session.end(...some.map((one) => postOf(one, 7n)))
  }
  return { ...party, first: calls[0]?.id ?? '' }
}

const labelsOf = async (accountId: string) => {
  const { rows } = await pool.query(
    `select (select count(*)::integer from charges where account_id = $1 and end_user_label is not null) as charges,
       (select count(*)::integer from entries where account_id = $1 and end_user_label is not null) as entries,
       (select count(*)::integer from usage_sums where account_id = $1 and subject_label is not null) as hours,
       (select count(*)::integer from usage_days where account_id = $1 and label is not null) as days,
       (select count(*)::integer from usage_tail where account_id = $1 and end_user_label is not null) as waiting`,
    [accountId],
  )
  return rows[0]
}

describe('labels of end users', () => {
  it('are erased everywhere, of one account alone, and nothing of money changes', async () => {
    const [one, other] = [await makeLabelled(), await makeLabelled()]
    await addUpUsage(pool)
    for (const { first } of [one, other]) await reverseCharge(pool, ids.next(), first, nanos(3n))
    const before = await labelsOf(one.accountId)
    assert.deepEqual(
      [before.charges, before.entries > 0, before.days > 0, before.waiting > 0],
      [CALLS, true, true, true],
    )
    const kept = await labelsOf(other.accountId)
    const money = () =>
      pool
        .query('select id, amount, end_user from charges where account_id = $1 order by id', [one.accountId])
        .then(({ rows }) => rows)
    const charged = await money()
    await eraseLabels(pool, one.accountId)
    assert.deepEqual(await labelsOf(one.accountId), { charges: 0, entries: 0, hours: 0, days: 0, waiting: 0 })
    assert.deepEqual(await labelsOf(other.accountId), kept)
    assert.deepEqual(await money(), charged)
    await addUpUsage(pool)
    assert.deepEqual(await labelsOf(one.accountId), { charges: 0, entries: 0, hours: 0, days: 0, waiting: 0 })
    assert.deepEqual(await verifyLedger(pool), [])
  })

  it('are all that can be taken from a charge or an entry, and nothing can be put in their place', async () => {
    const { accountId, first } = await makeLabelled()
    await reverseCharge(pool, ids.next(), first, nanos(3n))
    for (const table of ['charges', 'entries'])
      for (const change of [
        "end_user_label = 'another'",
        'end_user_label = null, end_user = null',
        'end_user_label = null, promo = promo + 1',
        'promo = promo + 1',
      ])
        await assert.rejects(
          pool.query(`update ${table} set ${change} where account_id = $1 and end_user_label is not null`, [accountId]),
          /are immutable/,
          `${table} ${change}`,
        )
    await assert.rejects(pool.query('delete from charges where account_id = $1', [accountId]), /are immutable/)
  })
})

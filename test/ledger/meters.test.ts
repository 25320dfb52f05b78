import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { readBudget, readPeriods } from '../../server/src/ledger/balance.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { callOf, extensionOf, makeParty, openSession, outcomesOf, type Party, periodsOf, postOf } from './session.ts'
import { connect, ids, makeAllowance, makeCredential } from './world.ts'

/** The running period of a credential's own budget stands in the credential's row, and counts as it did where it was. */
const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

async function meter({ credentialId }: Party, allowance: Id): Promise<boolean | undefined> {
  const { rows } = await pool.query<{ done: boolean }>(
    'select meter_budget(credential => $1, allowance => $2) as done',
    [credentialId, allowance],
  )
  return rows[0]?.done
}

/** What stands in the row, and how many periods of the allowance are kept elsewhere. */
async function standing({ credentialId }: Party, allowance: Id) {
  const { rows } = await pool.query<{ charged: bigint; held: bigint; kept: number }>(
    `select budget_charged as charged, budget_held as held,
       (select count(*)::integer from kept_periods where allowance_id = $2) as kept
     from credentials where id = $1 and budget_id = $2`,
    [credentialId, allowance],
  )
  return rows[0]
}

const agrees = async ({ accountId }: Party) => assert.deepEqual(await verifyLedger(pool, [accountId]), [])

async function makeMetered(period: 'day' | 'month' | 'total', amount: bigint) {
  const party = await makeParty(pool, 1_000n)
  const allowance = await makeAllowance(pool, party.accountId, period, amount)
  return { party, allowance, asks: { hold: 30n, allowances: [allowance] } }
}

describe('a budget that stands with its credential', () => {
  it('is taken with what is held and charged of it, bounds calls as before, and is charged and given back there', async () => {
    const { party, allowance, asks } = await makeMetered('month', 100n)
    const [first, second, third] = [callOf(party, asks), callOf(party, asks), callOf(party, asks)]
    await session.begin(first, second)
    await session.end(postOf(first, 20n))
    assert.equal(await meter(party, allowance), true)
    assert.equal(await meter(party, allowance), false, 'it stands there')
    assert.deepEqual(await standing(party, allowance), { charged: 20n, held: 30n, kept: 0 })
    assert.deepEqual(await outcomesOf(session.begin(third, callOf(party, asks))), ['begun', 'allowance_spent'])
    assert.deepEqual(await outcomesOf(session.extend(extensionOf(third, 50n))), ['extended'])
    assert.deepEqual(await outcomesOf(session.extend(extensionOf(third, 51n))), ['allowance_spent'])
    assert.deepEqual(await standing(party, allowance), { charged: 20n, held: 80n, kept: 0 })
    await session.end(postOf(second, 10n), postOf(third, 15n))
    await session.query('select reverse_charge($1, $2, 5)', [ids.next(), first.id])
    assert.deepEqual(await standing(party, allowance), { charged: 40n, held: 0n, kept: 0 })
    assert.deepEqual(await periodsOf(pool, allowance), [{ charged: 40n, held: 0n }])
    assert.equal((await readBudget(pool, allowance))?.spent, 40n)
    assert.equal((await readPeriods(pool, [allowance])).get(allowance)?.length, 1)
    await agrees(party)
  })

  it('is lowered to what is spoken for, stays lowered when some of that comes free, and is raised', async () => {
    const { party, allowance, asks } = await makeMetered('total', 100n)
    await meter(party, allowance)
    const call = callOf(party, { ...asks, hold: 60n })
    await session.begin(call)
    await pool.query('select change_allowance(allowance => $1, new_amount => 50)', [allowance])
    await agrees(party)
    await session.end(postOf(call, 40n))
    assert.deepEqual(await outcomesOf(session.begin(callOf(party, { ...asks, hold: 11n }))), ['allowance_spent'])
    assert.deepEqual(await outcomesOf(session.begin(callOf(party, { ...asks, hold: 10n }))), ['begun'])
    await pool.query('select change_allowance(allowance => $1, new_amount => 60)', [allowance])
    assert.deepEqual(await outcomesOf(session.begin(callOf(party, { ...asks, hold: 10n }))), ['begun'])
    await agrees(party)
  })

  it('keeps its period when the next one begins, in which calls of before still end', async () => {
    const { party, allowance, asks } = await makeMetered('day', 100n)
    await meter(party, allowance)
    const [before, later] = [callOf(party, asks), callOf(party, asks)]
    await session.begin(before, later)
    for (const sql of [
      "update holds set begun_at = begun_at - interval '1 day' where credential_id = $1",
      "update credentials set budget_starts_at = budget_starts_at - interval '1 day', budget_ends_at = budget_ends_at - interval '1 day' where id = $1",
    ])
      await pool.query(sql, [party.credentialId])
    const now = callOf(party, { ...asks, hold: 100n })
    assert.deepEqual(await outcomesOf(session.begin(now)), ['begun'])
    assert.deepEqual(await standing(party, allowance), { charged: 0n, held: 60n, kept: 1 })
    assert.deepEqual(await outcomesOf(session.extend(extensionOf(before, 40n))), ['extended'])
    await session.end(postOf(before, 25n))
    assert.deepEqual(await standing(party, allowance), { charged: 25n, held: 30n, kept: 1 })
    assert.equal(await meter(party, allowance), true)
    assert.deepEqual(await standing(party, allowance), { charged: 0n, held: 100n, kept: 1 })
    await session.end(postOf(later, 5n), postOf(now, 70n))
    assert.deepEqual(await periodsOf(pool, allowance), [
      { charged: 30n, held: 0n },
      { charged: 70n, held: 0n },
    ])
    await agrees(party)
  })

  it('makes room for another one of the same credential, and is none of another credential', async () => {
    const { party, allowance, asks } = await makeMetered('month', 100n)
    const other = { ...party, credentialId: await makeCredential(pool, party.accountId) }
    const next = await makeAllowance(pool, party.accountId, 'day', 100n)
    await meter(party, allowance)
    const call = callOf(other, asks)
    await session.begin(call)
    assert.equal(await meter(other, allowance), false)
    assert.equal(await meter(await makeParty(pool, 1n), next), false, 'of another account')
    assert.equal(await meter(party, next), true)
    assert.equal(await standing(party, allowance), undefined)
    assert.equal(await meter(other, allowance), true)
    await session.end(postOf(call, 10n))
    assert.deepEqual(await standing(other, allowance), { charged: 10n, held: 0n, kept: 0 })
    await agrees(party)
  })

  it('never exceeds its amount, whatever a statement does', async () => {
    const { party, allowance } = await makeMetered('month', 100n)
    await meter(party, allowance)
    for (const change of [
      ...['budget_held = 101', 'budget_charged = 101', 'budget_held = -1', 'budget_charged = -1'],
      ...['budget_id', 'budget_starts_at', 'budget_ends_at', 'budget_ceiling'].map((column) => `${column} = null`),
    ])
      await assert.rejects(
        pool.query(`update credentials set ${change} where id = $1`, [party.credentialId]),
        /violates check constraint "(no_overspend|budget_is_sound)"/,
      )
  })

  it('is found where it stands in two places, with another amount, or with somebody else', async () => {
    const found = async (sql: string) => {
      const { party, allowance } = await makeMetered('month', 100n)
      await meter(party, allowance)
      await pool.query(sql, [allowance])
      return (await verifyLedger(pool, [party.accountId])).map(({ promise }) => promise)
    }
    const promise =
      'a period of an allowance stands in one place, with a credential of its account or among those that are kept'
    for (const sql of [
      `insert into kept_periods (allowance_id, starts_at, amount) values ($1, period_start('month', clock_timestamp()), 100)`,
      'update allowances set amount = 99 where id = $1',
      'update allowances set credential_id = null where id = $1',
    ])
      assert.deepEqual(await found(sql), [promise], sql)
    // The table refuses these by itself.
    await pool.query('alter table credentials drop constraint budget_is_sound')
    for (const column of ['budget_ends_at', 'budget_ceiling'])
      assert.deepEqual(await found(`update credentials set ${column} = null where budget_id = $1`), [promise], column)
  })
})

import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { callOf, makeParty, moneyOf, openSession, outcomesOf, type Party, periodsOf, postOf } from './session.ts'
import { connect, ids, makeAllowance } from './world.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

/** Makes all that the account has begun a thing of the day or the month before. */
async function intoThePast({ accountId }: Party, allowanceId: Id, period: 'day' | 'month'): Promise<void> {
  const by = `1 ${period}`
  await pool.query('update holds set begun_at = begun_at - $2::interval where account_id = $1', [accountId, by])
  await pool.query('update kept_periods set starts_at = starts_at - $2::interval where allowance_id = $1', [
    allowanceId,
    by,
  ])
}

const agrees = async ({ accountId }: Party) => assert.deepEqual(await verifyLedger(pool, [accountId]), [])

for (const period of ['day', 'month'] as const) {
  describe(`an allowance by the ${period}`, () => {
    async function begunBefore(hold: bigint) {
      const party = await makeParty(pool, 1_000n)
      const allowance = await makeAllowance(pool, party.accountId, period, 100n)
      const call = callOf(party, { hold, allowances: [allowance] })
      assert.deepEqual(await outcomesOf(session.begin(call)), ['begun'])
      await intoThePast(party, allowance, period)
      return { party, allowance, call }
    }

    it('is charged in the period in which the call began, though it ends in the next', async () => {
      const { party, allowance, call } = await begunBefore(80n)
      assert.deepEqual(await outcomesOf(session.end(postOf(call, 30n))), ['posted'])
      assert.deepEqual(await periodsOf(pool, allowance), [{ charged: 30n, held: 0n }])
      await agrees(party)
    })

    it('is whole again in the next period, whatever was spent and is still held of the one before', async () => {
      const { party, allowance, call } = await begunBefore(80n)
      const next = callOf(party, { hold: 100n, allowances: [allowance] })
      const oneMore = callOf(party, { hold: 1n, allowances: [allowance] })
      assert.deepEqual(await outcomesOf(session.begin(next, oneMore)), ['begun', 'allowance_spent'])
      assert.deepEqual(await periodsOf(pool, allowance), [
        { charged: 0n, held: 80n },
        { charged: 0n, held: 100n },
      ])
      assert.deepEqual(await outcomesOf(session.end(postOf(call, 80n))), ['posted'])
      assert.deepEqual(
        await outcomesOf(session.begin(oneMore)),
        ['allowance_spent'],
        'a charge of before frees nothing',
      )
      await agrees(party)
    })

    it('is charged for each call of a batch in its own period', async () => {
      const { party, allowance, call } = await begunBefore(80n)
      const next = callOf(party, { hold: 60n, allowances: [allowance] })
      await session.begin(next)
      assert.deepEqual(await outcomesOf(session.end(postOf(next, 10n), postOf(call, 70n))), ['posted', 'posted'])
      assert.deepEqual(await periodsOf(pool, allowance), [
        { charged: 70n, held: 0n },
        { charged: 10n, held: 0n },
      ])
      await agrees(party)
    })

    it('gets back what a void releases, and what a reversal returns, in the period in which the call began', async () => {
      const { party, allowance, call } = await begunBefore(50n)
      const [next, posted] = [50n, 40n].map((hold) => callOf(party, { hold, allowances: [allowance] }))
      assert.ok(next !== undefined && posted !== undefined)
      await session.begin(next)
      assert.deepEqual(await outcomesOf(session.end(voidOf(call))), ['voided'])
      await session.begin(posted)
      await joinThePast(posted.id)
      await session.end(postOf(posted, 25n))
      await session.query('select reverse_charge($1, $2, 20)', [ids.next(), posted.id])
      const periods = await periodsOf(pool, allowance)
      assert.deepEqual(periods, [
        { charged: 5n, held: 0n },
        { charged: 0n, held: 50n },
      ])
      assert.deepEqual(await moneyOf(pool, party), { credited: 1_000n, debt: 0n, charged: 5n, held: 50n, promo: 0n })
      await agrees(party)
    })

    /** Moves one call, and what it holds of its allowance, into the period before, which is there already. */
    async function joinThePast(id: Id): Promise<void> {
      await pool.query(
        `with call as (update holds set begun_at = begun_at - $2::interval where id = $1 returning amount, allowances[1] as allowance_id)
         update kept_periods row
         set held = held + case when row.starts_at = (select min(starts_at) from kept_periods p where p.allowance_id = call.allowance_id) then call.amount else -call.amount end
         from call where row.allowance_id = call.allowance_id`,
        [id, `1 ${period}`],
      )
    }
  })
}

describe('an allowance in total', () => {
  it('has one period for ever', async () => {
    const party = await makeParty(pool, 1_000n)
    const allowance = await makeAllowance(pool, party.accountId, 'total', 100n)
    const call = callOf(party, { hold: 80n, allowances: [allowance] })
    await session.begin(call)
    await pool.query("update holds set begun_at = begun_at - interval '400 days' where id = $1", [call.id])
    const next = callOf(party, { hold: 21n, allowances: [allowance] })
    assert.deepEqual(await outcomesOf(session.begin(next)), ['allowance_spent'])
    assert.deepEqual(await outcomesOf(session.end(postOf(call, 79n))), ['posted'])
    assert.deepEqual(await outcomesOf(session.begin(next)), ['begun'])
    assert.deepEqual(await periodsOf(pool, allowance), [{ charged: 79n, held: 21n }])
    await agrees(party)
  })
})

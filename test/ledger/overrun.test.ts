import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Ending } from '../../server/src/calls/call.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { callOf, makeParty, moneyOf, openSession, outcomesOf, type Party, periodsOf, postOf } from './session.ts'
import { connect, makeAllowance } from './world.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

async function begun(hold: bigint, allowed: bigint) {
  const party = await makeParty(pool, 1_000n)
  const allowance = await makeAllowance(pool, party.accountId, 'total', allowed)
  const call = callOf(party, { hold, allowances: [allowance] })
  assert.deepEqual(await outcomesOf(session.begin(call)), ['begun'])
  return { party, allowance, call }
}

async function endedAs(ending: Ending) {
  const batch = session.end(ending)
  const [outcome = ''] = await outcomesOf(batch)
  const { charged, overrun } = (await batch.catch(() => []))[0] ?? {}
  return { outcome, charged, overrun }
}

describe('what an upstream used beyond the hold', () => {
  for (const [room, allowed] of [
    ['has room for it', 500n],
    ['is spent by the hold alone', 100n],
  ] as const) {
    it(`is overrun, and neither the account nor an allowance that ${room} is charged for it`, async () => {
      const { party, allowance, call } = await begun(100n, allowed)
      assert.deepEqual(await endedAs(postOf(call, 130n)), { outcome: 'posted', charged: 100n, overrun: 30n })
      assert.equal((await moneyOf(pool, party)).charged, 100n)
      assert.deepEqual(await periodsOf(pool, allowance), [{ charged: 100n, held: 0n }])
      assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
    })
  }

  it('is overrun in each call of a batch by itself: what one leaves of its hold pays for no other', async () => {
    const { party, allowance, call } = await begun(100n, 500n)
    const thrifty = callOf(party, { hold: 100n, allowances: [allowance] })
    await session.begin(thrifty)
    const settlements = await session.end(postOf(call, 130n), postOf(thrifty, 10n))
    assert.deepEqual(
      settlements.map(({ charged, overrun }) => [charged, overrun]),
      [
        [100n, 30n],
        [10n, 0n],
      ],
    )
    assert.deepEqual(await periodsOf(pool, allowance), [{ charged: 110n, held: 0n }])
  })
})

describe('a call whose caller got nothing', () => {
  it('is voided, and all of it is overrun', async () => {
    const { party, allowance, call } = await begun(100n, 500n)
    const ending = { ...postOf(call, 60n), forgiven: true }
    assert.deepEqual(await endedAs(ending), { outcome: 'voided', charged: 0n, overrun: 60n })
    assert.deepEqual(await moneyOf(pool, party), { credited: 1_000n, debt: 0n, charged: 0n, held: 0n, promo: 0n })
    assert.deepEqual(await periodsOf(pool, allowance), [{ charged: 0n, held: 0n }])
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })

  it('tells, where it had been charged before, what it was charged and that this did not end it', async () => {
    const { call } = await begun(100n, 500n)
    await session.end(postOf(call, 60n))
    const [settlement] = await session.end({ ...postOf(call, 60n), forgiven: true })
    assert.equal(settlement?.charged, 60n)
    assert.equal(settlement?.endedNow, false)
  })
})

describe('a settlement that comes after a void', () => {
  it('charges nothing where the call was held, and nothing where it never was: it is overrun, once', async () => {
    const { party, call } = await begun(100n, 500n)
    const never = callOf(party, { hold: 100n })
    await session.end(voidOf(call))
    for (const sending of [1, 2])
      assert.deepEqual(await endedAs(postOf(call, 60n)), { outcome: 'voided', charged: 0n, overrun: 0n }, `${sending}`)
    assert.deepEqual(await lateOverrunOf(party), [60n])
    assert.deepEqual(await endedAs(postOf(never, 60n)), { outcome: 'voided', charged: 0n, overrun: 60n })
    assert.deepEqual(await endedAs(postOf(never, 60n)), { outcome: 'voided', charged: 0n, overrun: 60n })
    assert.deepEqual(await lateOverrunOf(party), [60n])
    assert.equal((await moneyOf(pool, party)).charged, 0n)
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })

  it('corrects the loss that was booked when nobody knew better', async () => {
    const { party, call } = await begun(100n, 500n)
    await session.end({ ...postOf(call, 100n), forgiven: true })
    await session.end(postOf(call, 70n))
    assert.deepEqual(await lateOverrunOf(party), [-30n])
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })
})

async function lateOverrunOf({ accountId }: Party): Promise<readonly bigint[]> {
  const { rows } = await pool.query("select overrun from entries where account_id = $1 and kind = 'late_settlement'", [
    accountId,
  ])
  return rows.map(({ overrun }) => overrun)
}

import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { reversePayment } from '../../server/src/ledger/reverse.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { callOf, makeParty, moneyOf, openSession, outcomesOf, type Party, postOf } from './session.ts'
import { connect, ids } from './world.ts'

/**
 * Debt arises only from a reversed payment, and whatever frees or adds money pays it first. A dollar that comes free pays
 * one dollar of debt, once.
 */
const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

const BALANCE = 100n

/** An account whose money is all held by calls of these amounts when its payment is reversed in part. */
async function inDebt(debt: bigint, ...holds: readonly bigint[]) {
  const party = await makeParty(pool, BALANCE)
  const calls = holds.map((hold) => callOf(party, { hold }))
  assert.deepEqual(new Set(await outcomesOf(session.begin(...calls))), new Set(['begun']))
  const { rows } = await pool.query("select id from entries where account_id = $1 and kind = 'payment'", [
    party.accountId,
  ])
  const reversal = {
    reversalId: ids.next(),
    paymentId: rows[0]?.id,
    kind: 'payment_reversal',
    most: nanos(debt),
  } as const
  assert.equal(await reversePayment(pool, reversal), debt)
  const [first = callOf(party), second = callOf(party)] = calls
  return { party, first, second }
}

const debtOf = async (party: Party) => {
  assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  const { credited, debt, charged, held } = await moneyOf(pool, party)
  return { debt, free: credited + debt - charged - held }
}

describe('an account in debt', () => {
  it('starts no call', async () => {
    const { party } = await inDebt(50n, 100n)
    assert.deepEqual(await outcomesOf(session.begin(callOf(party, { hold: 0n }))), ['account_suspended'])
  })

  it('still pays for its open calls in full', async () => {
    const { party, first } = await inDebt(50n, 100n)
    const [settlement] = await session.end(postOf(first, 100n))
    assert.equal(settlement?.charged, 100n)
    assert.equal(settlement?.free, 0n)
    assert.deepEqual(await debtOf(party), { debt: 50n, free: 0n })
  })

  it('pays its debt with what an ending releases, and keeps the rest', async () => {
    const { party, first } = await inDebt(50n, 100n)
    const [settlement] = await session.end(postOf(first, 30n))
    assert.equal(settlement?.free, 20n)
    assert.deepEqual(await debtOf(party), { debt: 0n, free: 20n })
    assert.deepEqual(await outcomesOf(session.begin(callOf(party, { hold: 20n }))), ['begun'])
  })

  it('pays its debt once with what two endings of one batch release', async () => {
    const { party, first, second } = await inDebt(50n, 50n, 50n)
    const batch = session.end(postOf(first, 10n), voidOf(second))
    assert.deepEqual(await outcomesOf(batch), ['posted', 'voided'])
    assert.deepEqual(
      (await batch).map(({ free }) => free),
      [40n, 40n],
    )
    assert.deepEqual(await debtOf(party), { debt: 0n, free: 40n })
  })

  it('pays as much of its debt as two endings of one batch release, and no more', async () => {
    const { party, first, second } = await inDebt(90n, 50n, 50n)
    assert.deepEqual(await outcomesOf(session.end(postOf(first, 20n), postOf(second, 40n))), ['posted', 'posted'])
    assert.deepEqual(await debtOf(party), { debt: 50n, free: 0n })
  })

  it('pays nothing twice when an ending that has paid is sent again beside another', async () => {
    const { party, first, second } = await inDebt(90n, 50n, 50n)
    await session.end(postOf(first, 20n))
    assert.deepEqual(await debtOf(party), { debt: 60n, free: 0n })
    assert.deepEqual(await outcomesOf(session.end(postOf(first, 20n), postOf(second, 45n))), ['posted', 'posted'])
    assert.deepEqual(await debtOf(party), { debt: 55n, free: 0n })
  })

  it('pays its debt first with a credit, and with a charge that is given back', async () => {
    const { party, first } = await inDebt(50n, 100n)
    await session.end(postOf(first, 100n))
    const credit = { entryId: ids.next(), accountId: party.accountId, kind: 'payment', amount: nanos(20n) } as const
    await creditAccount(pool, credit)
    await creditAccount(pool, credit)
    assert.deepEqual(await debtOf(party), { debt: 30n, free: 0n })
    await session.query('select reverse_charge($1, $2, 45)', [ids.next(), first.id])
    assert.deepEqual(await debtOf(party), { debt: 0n, free: 15n })
  })

  it('pays nobody else’s debt', async () => {
    const { party, first } = await inDebt(50n, 100n)
    const neighbour = await inDebt(70n, 100n)
    await session.end(postOf(first, 40n), postOf(neighbour.first, 90n))
    assert.deepEqual(await debtOf(party), { debt: 0n, free: 10n })
    assert.deepEqual(await debtOf(neighbour.party), { debt: 60n, free: 0n })
  })
})

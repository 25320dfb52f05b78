import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS } from '../../harness/until.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { dropOldCharges } from '../../server/src/ledger/retention.ts'
import { type PaymentReversal, reversePayment } from '../../server/src/ledger/reverse.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { callOf, makeParty, moneyOf, openSession, outcomesOf, postOf, whileLocked } from './session.ts'
import { connect, ids } from './world.ts'

/** What only a planted bug showed to be missing from the tests. */
const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

const PAID = 100n

/** An account with two payments, so that one reversed beyond what was paid would find the money of the other. */
async function paidTwice() {
  const party = await makeParty(pool, PAID)
  const paymentId = ids.next()
  await creditAccount(pool, {
    entryId: paymentId,
    accountId: party.accountId,
    kind: 'payment',
    amount: nanos(PAID),
  })
  return { party, paymentId }
}

describe('a payment that is refunded and disputed', () => {
  const take = (paymentId: string, kind: PaymentReversal['kind'], most: bigint) => ({
    reversalId: ids.next(),
    paymentId,
    kind,
    most: nanos(most),
  })

  it('is taken back once, though the account has the money of another payment', async () => {
    const { party, paymentId } = await paidTwice()
    assert.equal(await reversePayment(pool, take(paymentId, 'payment_reversal', 30n)), 30n)
    assert.equal(await reversePayment(pool, take(paymentId, 'dispute', PAID)), 70n)
    assert.equal((await moneyOf(pool, party)).credited, PAID)
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })

  it('is taken back once when both come at once', async () => {
    const { party, paymentId } = await paidTwice()
    const sql = 'select reverse_payment($1, $2, $3, $4) as amount'
    const [dispute] = await whileLocked(
      { url: database.url, observer: pool, accountId: party.accountId },
      (holder) => holder.query(sql, [ids.next(), paymentId, 30n, 'payment_reversal']),
      (waiter) => waiter.query(sql, [ids.next(), paymentId, PAID, 'dispute']),
    )
    assert.equal(dispute?.amount, 70n)
    assert.equal((await moneyOf(pool, party)).credited, PAID)
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })
})

describe('a flush', () => {
  it('awaits what collects behind the batch that is in flight', async () => {
    const ENDINGS = 50
    const slow = connect(database.url, { batchLimit: 1 })
    try {
      const party = await makeParty(pool, PAID)
      const calls = Array.from({ length: ENDINGS }, () => callOf(party))
      assert.deepEqual(new Set(await outcomesOf(session.begin(...calls))), new Set(['begun']))
      const endings = Promise.all(calls.map((call) => slow.calls.end(postOf(call, 1n))))
      assert.equal(await slow.calls.flush(PATIENCE_MS), true)
      const { charged, held } = await moneyOf(pool, party)
      assert.deepEqual({ charged, held }, { charged: BigInt(ENDINGS), held: 0n })
      await endings
    } finally {
      await slow.pools.close()
    }
  })
})

describe('a day of charges', () => {
  it('is kept for as long as its last charge is to be kept', async () => {
    await dropOldCharges({ pool, log: silentLog, keepDays: 1 })
    const { rows } = await pool.query<{ days: number }>(
      `select (clock_timestamp() at time zone 'UTC')::date - min(to_date(right(inhrelid::regclass::text, 8), 'YYYYMMDD')) as days
       from pg_inherits where inhparent = 'charges'::regclass`,
    )
    assert.equal(rows[0]?.days, 1)
  })
})

import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Call } from '../../server/src/calls/call.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { creditAccount, expirePromotions } from '../../server/src/ledger/credit.ts'
import { reverseCharge, reversePayment } from '../../server/src/ledger/reverse.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { callOf, makeParty, moneyOf, openSession, outcomesOf, type Party, postOf } from './session.ts'
import { connect, ids } from './world.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

async function promoted(cash: bigint, promotion: bigint, ...holds: readonly bigint[]) {
  const party = await makeParty(pool, cash)
  const { accountId } = party
  await creditAccount(pool, { entryId: ids.next(), accountId, kind: 'promotion', amount: nanos(promotion) })
  const calls = holds.map((hold) => callOf(party, { hold }))
  assert.deepEqual(new Set(await outcomesOf(session.begin(...calls))), new Set(['begun']))
  const [first = callOf(party), second = callOf(party), third = callOf(party)] = calls
  return { party, first, second, third }
}

/** What promotional credit paid of each call, and what is left of it. */
async function promotionOf(party: Party, ...calls: readonly Call[]) {
  assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  const { rows } = await pool.query<{ promo: bigint }>(
    'select promo from unnest($1::uuid[]) with ordinality one (id, place) join charges using (id) order by place',
    [calls.map(({ id }) => id)],
  )
  return { paid: rows.map(({ promo }) => promo), left: (await moneyOf(pool, party)).promo }
}

async function grant({ accountId }: Party, amount: bigint, expiresInSeconds: number): Promise<Id> {
  const expiresAt = new Date(Date.now() + expiresInSeconds * 1000)
  const entryId = ids.next()
  await creditAccount(pool, { entryId, accountId, kind: 'promotion', amount: nanos(amount), expiresAt })
  return entryId
}

/** Lets a grant expire now, and takes what has expired. */
async function expire(grantId: Id): Promise<void> {
  await pool.query('update promotions set expires_at = clock_timestamp() where id = $1', [grantId])
  await expirePromotions(pool)
}

/** What is left of each grant, in the order in which they were made. */
async function remainingOf(party: Party): Promise<bigint[]> {
  await pool.query('select count_promotions($1)', [party.accountId])
  const { rows } = await pool.query<{ remaining: bigint }>(
    'select remaining from promotions where account_id = $1 order by id',
    [party.accountId],
  )
  return rows.map(({ remaining }) => remaining)
}

const freeOf = async (party: Party) => {
  assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  const { credited, debt, charged, held } = await moneyOf(pool, party)
  return credited + debt - charged - held
}

describe('promotional credit', () => {
  it('pays first for a call that costs as much as it held', async () => {
    const { party, first } = await promoted(100n, 30n, 50n)
    await session.end(postOf(first, 50n))
    assert.deepEqual(await promotionOf(party, first), { paid: [30n], left: 0n })
  })

  it('pays first for a call that costs less than it held, though there is cash for all of it', async () => {
    const { party, first } = await promoted(100n, 30n, 50n)
    await session.end(postOf(first, 20n))
    assert.deepEqual(await promotionOf(party, first), { paid: [20n], left: 10n })
  })

  it('is spent in the order of the calls of a batch, and never twice', async () => {
    const { party, first, second, third } = await promoted(100n, 30n, 40n, 40n, 40n)
    await session.end(postOf(first, 20n), postOf(second, 40n), postOf(third, 1n))
    assert.deepEqual(await promotionOf(party, first, second, third), { paid: [20n, 10n, 0n], left: 0n })
  })

  it('pays nothing of what is overrun, voided or forgiven', async () => {
    const { party, first, second, third } = await promoted(100n, 30n, 10n, 40n, 40n)
    await session.end(postOf(first, 25n), voidOf(second), { ...postOf(third, 40n), forgiven: true })
    assert.deepEqual(await promotionOf(party, first, second, third), { paid: [10n, 0n, 0n], left: 20n })
  })

  it('is not touched by an ending that is sent again beside another', async () => {
    const { party, first, second } = await promoted(100n, 30n, 40n, 40n)
    await session.end(postOf(first, 12n))
    await session.end(postOf(first, 12n), postOf(second, 12n))
    assert.deepEqual(await promotionOf(party, first, second), { paid: [12n, 12n], left: 6n })
  })

  it('is spent from the grant that expires first, whichever was made first', async () => {
    const party = await makeParty(pool, 100n)
    await grant(party, 10n, 3_000)
    await grant(party, 20n, 2_000)
    await grant(party, 20n, 1_000)
    const call = callOf(party, { hold: 25n })
    await session.begin(call)
    await session.end(postOf(call, 25n))
    assert.deepEqual(await remainingOf(party), [10n, 15n, 0n])
  })

  it('comes back with a charge that is given back, until the last of the grants expires', async () => {
    const party = await makeParty(pool, 100n)
    const first = await grant(party, 20n, 1_000)
    const last = await grant(party, 20n, 2_000)
    const call = callOf(party, { hold: 30n })
    await session.begin(call)
    await session.end(postOf(call, 30n))
    assert.equal(await reverseCharge(pool, ids.next(), call.id, nanos(25n)), 25n)
    assert.deepEqual(await remainingOf(party), [0n, 35n])
    await expire(first)
    assert.equal(await freeOf(party), 135n)
    await expire(last)
    assert.equal(await freeOf(party), 100n)
  })
})

describe('promotional credit that expires while calls hold it', () => {
  /** An account that has paid 40 and was granted 30, all of it held when the grant expires. */
  async function lapsed() {
    const party = await makeParty(pool, 40n)
    const grantId = await grant(party, 30n, 1_000)
    const [first, second] = [callOf(party, { hold: 20n }), callOf(party, { hold: 50n })]
    await session.begin(first, second)
    await expire(grantId)
    assert.equal(await freeOf(party), 0n)
    return { party, first, second }
  }

  it('can still be spent by them', async () => {
    const { party, second } = await lapsed()
    await session.end(postOf(second, 50n))
    assert.deepEqual(await promotionOf(party, second), { paid: [30n], left: 0n })
    assert.equal(await freeOf(party), 0n)
  })

  it('is taken when they release it, as much as each releases', async () => {
    const { party, first, second } = await lapsed()
    await session.end(voidOf(first))
    assert.equal(await freeOf(party), 0n)
    await session.end(voidOf(second))
    assert.equal(await freeOf(party), 40n)
  })

  it('is taken from what they release and from no money that came meanwhile', async () => {
    const { party, first } = await lapsed()
    const { accountId } = party
    await creditAccount(pool, { entryId: ids.next(), accountId, kind: 'payment', amount: nanos(100n) })
    await session.end(voidOf(first))
    assert.equal(await freeOf(party), 100n)
  })

  it('waits for debt, which is paid first', async () => {
    const { party, first, second } = await lapsed()
    const { rows } = await pool.query("select id from entries where account_id = $1 and kind = 'payment'", [
      party.accountId,
    ])
    const reversal = { reversalId: ids.next(), paymentId: rows[0]?.id, kind: 'dispute', most: nanos(40n) } as const
    assert.equal(await reversePayment(pool, reversal), 40n)
    await session.end(voidOf(first))
    assert.equal((await moneyOf(pool, party)).debt, 20n)
    await session.end(voidOf(second))
    assert.deepEqual(await moneyOf(pool, party), { credited: 0n, debt: 0n, charged: 0n, held: 0n, promo: 0n })
  })

  it('leaves an account as if it had never been held, when nothing is charged', async () => {
    const held = await lapsed()
    await session.end(voidOf(held.first), voidOf(held.second))
    const free = await makeParty(pool, 40n)
    await expire(await grant(free, 30n, 1_000))
    assert.deepEqual(await moneyOf(pool, held.party), await moneyOf(pool, free))
  })
})

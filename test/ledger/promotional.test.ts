import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Call } from '../../server/src/calls/call.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
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
})

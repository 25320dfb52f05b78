import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { callOf, makeParty, moneyOf, openSession, outcomesOf, type Party, periodsOf, postOf } from './session.ts'
import { connect, makeAllowance, makeCredential } from './world.ts'

const database = await freshDatabase()
const { pools, calls } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

const agrees = async ({ accountId }: Party) => assert.deepEqual(await verifyLedger(pool, [accountId]), [])

describe('the calls of a batch', () => {
  it('are judged in the order of arrival, each against what the ones before it have left', async () => {
    const party = await makeParty(pool, 100n)
    const judgements = await session.begin(...[60n, 30n, 20n, 10n].map((hold) => callOf(party, { hold })))
    assert.deepEqual(
      judgements.map(({ outcome, free }) => [outcome, free]),
      [
        ['begun', 40n],
        ['begun', 10n],
        ['money_spent', 10n],
        ['begun', 0n],
      ],
    )
    await agrees(party)
  })

  it('are not shadowed by a large one that is refused: by money', async () => {
    const party = await makeParty(pool, 100n)
    const batch = [101n, 50n, 1_000n, 50n, 1n].map((hold) => callOf(party, { hold }))
    assert.deepEqual(await outcomesOf(session.begin(...batch)), [
      'money_spent',
      'begun',
      'money_spent',
      'begun',
      'money_spent',
    ])
    assert.equal((await moneyOf(pool, party)).held, 100n)
  })

  it('are not shadowed by a large one that is refused: by an allowance', async () => {
    const party = await makeParty(pool, 100n)
    const [narrow, wide] = [
      await makeAllowance(pool, party.accountId, 'total', 40n),
      await makeAllowance(pool, party.accountId, 'day', 80n),
    ]
    const batch = [60n, 30n, 30n, 10n].map((hold) => callOf(party, { hold, allowances: [wide, narrow] }))
    const outcomes = await outcomesOf(session.begin(...batch, callOf(party, { hold: 40n, allowances: [wide] })))
    assert.deepEqual(outcomes, ['allowance_spent', 'begun', 'allowance_spent', 'begun', 'begun'])
    assert.deepEqual(await periodsOf(pool, narrow), [{ charged: 0n, held: 40n }])
    assert.deepEqual(await periodsOf(pool, wide), [{ charged: 0n, held: 80n }])
    await agrees(party)
  })

  it('are all counted, though many belong to one account and one allowance, by two keys', async () => {
    const [party, other] = [await makeParty(pool, 1_000n), await makeParty(pool, 1_000n)]
    const secondKey = { ...party, credentialId: await makeCredential(pool, party.accountId) }
    const allowance = await makeAllowance(pool, party.accountId, 'total', 1_000n)
    const batch = Array.from({ length: 20 }, (_, n) =>
      n % 3 === 0
        ? callOf(other, { hold: 10n })
        : callOf(n % 3 === 1 ? party : secondKey, { hold: 10n, allowances: [allowance] }),
    )
    assert.deepEqual(new Set(await outcomesOf(session.begin(...batch))), new Set(['begun']))
    assert.equal((await moneyOf(pool, party)).held, 130n)
    assert.equal((await moneyOf(pool, other)).held, 70n)
    assert.deepEqual(await periodsOf(pool, allowance), [{ charged: 0n, held: 130n }])
    assert.deepEqual(
      new Set(await outcomesOf(session.end(...batch.slice(0, 10).map((call) => postOf(call, 4n))))),
      new Set(['posted']),
    )
    assert.deepEqual(await moneyOf(pool, party), { credited: 1_000n, debt: 0n, charged: 24n, held: 70n, promo: 0n })
    assert.deepEqual(await moneyOf(pool, other), { credited: 1_000n, debt: 0n, charged: 16n, held: 30n, promo: 0n })
    assert.deepEqual(await periodsOf(pool, allowance), [{ charged: 24n, held: 70n }])
    await agrees(party)
    await agrees(other)
  })
})

describe('an id that is sent many times at once', () => {
  it('is begun once, and every sender is told so', async () => {
    const party = await makeParty(pool, 100n)
    const call = callOf(party, { hold: 30n })
    const judgements = await Promise.all(Array.from({ length: 20 }, () => calls.begin(call)))
    assert.deepEqual(new Set(judgements.map(({ outcome }) => outcome)), new Set(['begun']))
    assert.equal((await moneyOf(pool, party)).held, 30n)
    await agrees(party)
  })

  it('is charged once, and every settler is told the same', async () => {
    const party = await makeParty(pool, 100n)
    const call = callOf(party, { hold: 30n })
    await calls.begin(call)
    const settlements = await Promise.all(Array.from({ length: 20 }, () => calls.end(postOf(call, 20n))))
    assert.deepEqual(new Set(settlements.map(({ charged }) => BigInt(charged))), new Set([20n]))
    assert.equal(settlements.filter(({ endedNow }) => endedNow).length, 1)
    assert.deepEqual(await moneyOf(pool, party), { credited: 100n, debt: 0n, charged: 20n, held: 0n, promo: 0n })
    await agrees(party)
  })
})

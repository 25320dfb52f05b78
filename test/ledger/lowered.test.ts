import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { readBudget } from '../../server/src/ledger/balance.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { callOf, makeParty, openSession, outcomesOf, postOf } from './session.ts'
import { connect, ids, makeAllowance } from './world.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

describe('an allowance that was lowered below what was spoken for', () => {
  for (const [what, free] of [
    ['voided', (call: ReturnType<typeof callOf>) => session.end(voidOf(call))],
    [
      'given back',
      async (call: ReturnType<typeof callOf>) => {
        await session.end(postOf(call, 50n))
        await session.query('select reverse_charge($1, $2, 50)', [ids.next(), call.id])
      },
    ],
  ] as const) {
    it(`stays lowered when some of that is ${what}`, async () => {
      const party = await makeParty(pool, 1_000n)
      const allowance = await makeAllowance(pool, party.accountId, 'total', 100n)
      const call = callOf(party, { hold: 50n, allowances: [allowance] })
      assert.deepEqual(await outcomesOf(session.begin(call)), ['begun'])
      await session.query('select change_allowance($1, 5)', [allowance])
      await free(call)
      assert.deepEqual(await outcomesOf(session.begin(callOf(party, { hold: 6n, allowances: [allowance] }))), [
        'allowance_spent',
      ])
      assert.deepEqual(await outcomesOf(session.begin(callOf(party, { hold: 5n, allowances: [allowance] }))), ['begun'])
      assert.equal((await readBudget(pool, allowance))?.amount, 5n)
    })
  }
})

describe('an entry', () => {
  it('of a credit is not answered for another account, kind or amount', async () => {
    const [one, other] = [await makeParty(pool, 0n), await makeParty(pool, 0n)]
    const credit = { entryId: ids.next(), accountId: one.accountId, kind: 'payment', amount: nanos(70n) } as const
    assert.equal(await creditAccount(pool, credit), true)
    assert.equal(await creditAccount(pool, credit), false)
    for (const wrong of [{ accountId: other.accountId }, { amount: nanos(9_999n) }, { kind: 'promotion' as const }])
      await assert.rejects(creditAccount(pool, { ...credit, ...wrong }), /is something else/)
  })
})

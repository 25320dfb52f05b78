import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Call } from '../../server/src/calls/call.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { connect, holdOf, ids, makeAccount, makeAllowance, makeCredential } from '../ledger/world.ts'

const database = await freshDatabase()
const { pools, calls } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

async function makeParty() {
  const accountId = await makeAccount(pool, 1_000n)
  const credentialId = await makeCredential(pool, accountId)
  const callOf = (amount: bigint, allowances: readonly Id[]): Call => ({
    ...{ id: ids.next(), accountId, credentialId, operation: 'tightest', hold: holdOf(amount, allowances) },
    ...{ tokens: 0, windows: [], claims: [] },
  })
  return { accountId, callOf }
}

describe('several allowances of a call', () => {
  it('are told by the tightest that is in the way, in whichever order, alone and among others', async () => {
    const { accountId, callOf } = await makeParty()
    const [wide, tight, other] = [
      await makeAllowance(pool, accountId, 'week', 90n),
      await makeAllowance(pool, accountId, 'day', 40n),
      await makeAllowance(pool, accountId, 'total', 60n),
    ]
    for (const order of [
      [wide, tight, other],
      [other, wide, tight],
      [tight, other, wide],
    ]) {
      const judgement = await calls.begin(callOf(95n, order))
      assert.ok(judgement.outcome === 'allowance_spent')
      assert.deepEqual([judgement.allowanceId, judgement.left, judgement.refusing], [tight, 40n, order])
    }
    const among = await Promise.all(
      [callOf(50n, [wide, tight]), callOf(10n, [wide]), callOf(41n, [tight, wide]), callOf(40n, [wide, tight])].map(
        calls.begin,
      ),
    )
    assert.deepEqual(
      among.map((one) => [one.outcome, one.outcome === 'allowance_spent' ? one.refusing : null]),
      [
        ['allowance_spent', [tight]],
        ['begun', null],
        ['allowance_spent', [tight]],
        ['begun', null],
      ],
    )
  })

  it('are told by the tightest when the hold is to grow, and nothing is taken of the others', async () => {
    const { accountId, callOf } = await makeParty()
    const [wide, tight] = [
      await makeAllowance(pool, accountId, 'total', 50n),
      await makeAllowance(pool, accountId, 'week', 30n),
    ]
    for (const order of [
      [wide, tight],
      [tight, wide],
    ]) {
      const call = callOf(5n, order)
      assert.equal((await calls.begin(call)).outcome, 'begun')
      const grown = await calls.extend({ id: call.id, accountId, windows: [], amount: nanos(80n), tokens: 0 })
      assert.ok(grown.outcome === 'allowance_spent')
      assert.equal(grown.allowanceId, tight)
      assert.equal(grown.held, 5n)
      const { rows } = await pool.query(
        'select distinct held::text from allowance_periods where allowance_id = any ($1)',
        [order],
      )
      assert.equal(rows.length, 1, 'both hold the same')
    }
  })

  it('are at most eight: more is a mistake of ours, and nothing is held', async () => {
    const { accountId, callOf } = await makeParty()
    const nine = await Promise.all(Array.from({ length: 9 }, () => makeAllowance(pool, accountId, 'total', 50n)))
    await assert.rejects(calls.begin(callOf(1n, nine)), /at most 8 allowances/)
    assert.equal((await calls.begin(callOf(1n, nine.slice(1)))).outcome, 'begun')
  })
})

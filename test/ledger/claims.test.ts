import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Call, Judgement } from '../../server/src/calls/call.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { ALL, CALLS_AT_ONCE } from '../../server/src/limits/ask.ts'
import { callOf, makeParty, openSession, outcomesOf, type Party, passTime, postOf } from './session.ts'
import { connect } from './world.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

const HOUR = 3_600
const KEY = { scope: 'idempotency', key: 'one', limit: 1, fingerprint: 'same', keepSeconds: HOUR, endsWithOwner: false }
const SLOT = { scope: CALLS_AT_ONCE, key: ALL, limit: 2, fingerprint: '', keepSeconds: 0, endsWithOwner: true }

const claiming = (party: Party, ...claims: Call['claims']) => callOf(party, { claims })
/** What came of each call, and which call has the claim that it was refused. */
const claimsOf = (judgements: readonly Judgement[]) =>
  judgements.map((one) => [one.outcome, 'holder' in one ? one.holder : null])
const begin = async (...calls: readonly Call[]) => await outcomesOf(session.begin(...calls))

describe('an idempotency key', () => {
  for (const [how, keepSeconds, seconds] of [
    ['longer than keys are kept', HOUR, 2 * HOUR],
    ['for a day', 1, 24 * HOUR],
  ] as const) {
    it(`stays taken while its call is open, ${how}`, async () => {
      const party = await makeParty(pool, 100n)
      const key = { ...KEY, keepSeconds }
      const call = claiming(party, key)
      assert.deepEqual(await begin(call), ['begun'])
      await passTime(pool, party, seconds)
      assert.deepEqual(claimsOf(await session.begin(claiming(party, key))), [['claim_taken', call.id]])
      await session.end(postOf(call, 1n))
      assert.deepEqual(await begin(claiming(party, key)), ['claim_taken'], 'and after it was charged')
    })
  }

  it('is kept after a charged call, from its end and not from its begin', async () => {
    const party = await makeParty(pool, 100n)
    const call = claiming(party, KEY)
    await begin(call)
    await passTime(pool, party, 2 * HOUR)
    await session.end(postOf(call, 1n))
    await passTime(pool, party, HOUR - 60)
    assert.deepEqual(await begin(claiming(party, KEY)), ['claim_taken'])
    await passTime(pool, party, 60)
    assert.deepEqual(await begin(claiming(party, KEY)), ['begun'])
  })

  it('is free again after a call that was not charged: voided, forgiven or worth nothing', async () => {
    const party = await makeParty(pool, 100n)
    const [first, second, third, fourth] = [1, 2, 3, 4].map(() => claiming(party, KEY))
    assert.ok(first && second && third && fourth)
    assert.deepEqual(await begin(first), ['begun'])
    await session.end(voidOf(first))
    assert.deepEqual(await begin(second), ['begun'])
    await session.end({ ...postOf(second, 1n), forgiven: true })
    assert.deepEqual(await begin(third), ['begun'])
    await session.end(postOf(third, 0n))
    assert.deepEqual(await begin(fourth), ['begun'])
  })

  it('is taken by the first of a batch, who is named to the others, and differs where their request does', async () => {
    const party = await makeParty(pool, 100n)
    const first = claiming(party, KEY)
    const others = [claiming(party, KEY), claiming(party, { ...KEY, fingerprint: 'other' })]
    assert.deepEqual(claimsOf(await session.begin(first, ...others)), [
      ['begun', null],
      ['claim_taken', first.id],
      ['claim_differs', first.id],
    ])
  })

  it('belongs to one credential and one scope', async () => {
    const [party, other] = [await makeParty(pool, 100n), await makeParty(pool, 100n)]
    const calls = [claiming(party, KEY), claiming(other, KEY), claiming(party, { ...KEY, scope: 'quote' })]
    assert.deepEqual(await begin(...calls), ['begun', 'begun', 'begun'])
  })

  it('is not touched by the end of a call that was refused it', async () => {
    const party = await makeParty(pool, 100n)
    const [call, refused] = [claiming(party, KEY), claiming(party, KEY)]
    assert.deepEqual(await begin(call, refused), ['begun', 'claim_taken'])
    await session.end(voidOf(refused))
    assert.deepEqual(await begin(claiming(party, KEY)), ['claim_taken'])
  })
})

async function countOf({ credentialId }: Party): Promise<number | undefined> {
  const { rows } = await pool.query<{ calls: number }>('select calls_at_once as calls from credentials where id = $1', [
    credentialId,
  ])
  return rows[0]?.calls
}

describe('a slot', () => {
  it('is given to no more calls than there are, and ends with its call, charged or not', async () => {
    const party = await makeParty(pool, 100n)
    const [first, second, third] = [1, 2, 3].map(() => claiming(party, SLOT))
    assert.ok(first && second && third)
    assert.deepEqual(await begin(first, second, third), ['begun', 'begun', 'claim_taken'])
    await session.end(postOf(first, 1n))
    assert.deepEqual(await begin(third, claiming(party, SLOT)), ['begun', 'claim_taken'])
    await session.end(voidOf(second))
    assert.deepEqual(await begin(claiming(party, SLOT), claiming(party, SLOT)), ['begun', 'claim_taken'])
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })

  it('is each credential’s own in a batch of several, and the only one says who has it', async () => {
    const [one, other] = [await makeParty(pool, 100n), await makeParty(pool, 100n)]
    const only = { ...SLOT, limit: 1 }
    const [first, second] = [claiming(one, only), claiming(other, only)]
    const told = await session.begin(first, second, claiming(one, only), claiming(other, only), claiming(one, KEY))
    assert.deepEqual(claimsOf(told), [
      ['begun', null],
      ['begun', null],
      ['claim_taken', first.id],
      ['claim_taken', second.id],
      ['begun', null],
    ])
    const again = await session.begin(claiming(other, only), claiming(one, only))
    assert.deepEqual(claimsOf(again), [
      ['claim_taken', second.id],
      ['claim_taken', first.id],
    ])
    await session.end(postOf(first, 1n), voidOf(second))
    assert.deepEqual(await begin(claiming(one, only), claiming(other, only)), ['begun', 'begun'])
  })

  it('is no row of its own, but counted with its credential', async () => {
    const party = await makeParty(pool, 100n)
    const [first, second] = [claiming(party, SLOT), claiming(party, SLOT)]
    await begin(first, second)
    const { rowCount } = await pool.query('select from claims where credential_id = $1', [party.credentialId])
    assert.equal(rowCount, 0)
    assert.equal(await countOf(party), 2)
    await session.end(postOf(first, 1n))
    assert.equal(await countOf(party), 1)
    await session.end(postOf(second, 1n), voidOf(claiming(party, SLOT)))
    assert.equal(await countOf(party), 0)
  })

  it('is refused to nobody by a count that is too high: that is found, and put right', async () => {
    const party = await makeParty(pool, 100n)
    const setCount = (calls: number) =>
      pool.query('update credentials set calls_at_once = $2 where id = $1', [party.credentialId, calls])
    await setCount(7)
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [
      {
        promise: 'a credential has as many calls at once as it has open holds with a place',
        rows: [party.credentialId],
      },
    ])
    const call = () => claiming(party, SLOT)
    assert.deepEqual(await begin(call(), call(), call()), ['begun', 'begun', 'claim_taken'])
    assert.equal(await countOf(party), 2)
    await setCount(3)
    const other = await makeParty(pool, 100n)
    assert.deepEqual(await begin(call(), claiming(other, SLOT)), ['claim_taken', 'begun'])
    assert.equal(await countOf(party), 2)
    assert.deepEqual(await verifyLedger(pool, [party.accountId, other.accountId]), [])
  })

  it('is found where nobody runs its call', async () => {
    const party = await makeParty(pool, 100n)
    const call = claiming(party, SLOT)
    await begin(call)
    await pool.query('update holds set unsettled_at = clock_timestamp() where id = $1', [call.id])
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [
      { promise: 'no call that nobody runs has a place among the calls at once', rows: [call.id] },
    ])
  })

  it('stays taken while its call is open, however long', async () => {
    const party = await makeParty(pool, 100n)
    await begin(claiming(party, SLOT), claiming(party, SLOT))
    await passTime(pool, party, 100 * HOUR)
    assert.deepEqual(await begin(claiming(party, SLOT)), ['claim_taken'])
  })
})

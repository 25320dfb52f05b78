import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { createCalls, voidOf } from '../../server/src/calls/calls.ts'
import { createMoneyQuery, Unanswered } from '../../server/src/calls/money-query.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { callOf, makeParty, moneyOf, postOf } from './session.ts'
import { connect, ids, makeAllowance } from './world.ts'

const database = await freshDatabase()
const { pools, calls } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

const WINDOW = { group: 'all', seconds: 60, requestLimit: 10, tokenLimit: null }
const SLOT = { scope: 'concurrency', key: 'all', limit: 5, fingerprint: '', keepSeconds: 0, endsWithOwner: true }

describe('a caller of the ledger that is mistaken', () => {
  it('can not end a call for another account, and the call stays as it is', async () => {
    const [owner, other] = [await makeParty(pool, 100n), await makeParty(pool, 100n)]
    const call = callOf(owner, { hold: 60n })
    await calls.begin(call)
    await assert.rejects(calls.end({ ...postOf(call, 50n), accountId: other.accountId }), { code: 'internal_error' })
    assert.equal((await moneyOf(pool, owner)).held, 60n)
    assert.equal((await calls.end(postOf(call, 50n))).charged, 50n)
    assert.deepEqual(await verifyLedger(pool, [owner.accountId, other.accountId]), [])
  })

  it('does not take the neighbours in its batch with it', async () => {
    const [owner, other] = [await makeParty(pool, 100n), await makeParty(pool, 100n)]
    const [mine, theirs] = [callOf(owner, { hold: 60n }), callOf(other, { hold: 60n })]
    await Promise.all([calls.begin(mine), calls.begin(theirs)])
    const [wrong, right] = await Promise.allSettled([
      calls.end({ ...postOf(mine, 50n), accountId: other.accountId }),
      calls.end(postOf(theirs, 40n)),
    ])
    assert.equal(wrong?.status, 'rejected')
    assert.equal(right?.status === 'fulfilled' && right.value.charged, 40n)
    await calls.end(voidOf(mine))
    assert.deepEqual(await verifyLedger(pool, [owner.accountId, other.accountId]), [])
  })

  it('can not begin a call again under another account', async () => {
    const [owner, other] = [await makeParty(pool, 100n), await makeParty(pool, 100n)]
    const call = callOf(owner, { hold: 60n })
    await calls.begin(call)
    assert.equal((await calls.begin({ ...callOf(other, { hold: 60n }), id: call.id })).outcome, 'ended')
    assert.equal((await moneyOf(pool, other)).held, 0n)
    await calls.end(voidOf(call))
  })

  it('can not end a call of another account that has ended, nor one of an account that does not exist', async () => {
    const [owner, other] = [await makeParty(pool, 100n), await makeParty(pool, 100n)]
    const call = callOf(owner, { hold: 60n })
    await calls.begin(call)
    await calls.end(postOf(call, 50n))
    const misplaced = {
      code: 'internal_error',
      cause: new Error('a call can only be ended for the account that it was begun for'),
    }
    for (const accountId of [other.accountId, ids.next()])
      await assert.rejects(calls.end({ ...postOf(call, 50n), accountId }), misplaced)
    // In one batch, of which no account exists.
    const unknown = () => calls.end({ ...postOf(callOf(owner), 1n), accountId: ids.next() })
    await Promise.all([assert.rejects(unknown(), misplaced), assert.rejects(unknown(), misplaced)])
    assert.deepEqual(await verifyLedger(pool, [owner.accountId, other.accountId]), [])
  })

  it('names a window and a claim once', async () => {
    const party = await makeParty(pool, 100n)
    const twice = { ...callOf(party, { hold: 1n }), windows: [WINDOW, WINDOW] }
    await assert.rejects(calls.begin(twice), /names a window once/)
    await assert.rejects(calls.begin({ ...twice, windows: [], claims: [SLOT, SLOT] }), /names a claim once/)
  })

  it('can not claim without a hold, since nothing would end the claim', async () => {
    const party = await makeParty(pool, 100n)
    const asked = { ...callOf(party, {}), hold: null, claims: [SLOT] }
    assert.equal((await calls.begin(asked)).outcome, 'begun')
    assert.deepEqual((await pool.query('select from claims where call_id = $1', [asked.id])).rows, [])
  })

  it('is held against an allowance once, however often it names it', async () => {
    const party = await makeParty(pool, 100n)
    const allowance = await makeAllowance(pool, party.accountId, 'total', 60n)
    const call = callOf(party, { hold: 60n, allowances: [allowance, allowance] })
    assert.equal((await calls.begin(call)).outcome, 'begun')
    const second = await calls.begin(callOf(party, { hold: 1n, allowances: [allowance, allowance] }))
    assert.equal(second.outcome, 'allowance_spent')
    await calls.end(postOf(call, 60n))
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })

  it('has what it was charged in the usage report, whether or not it said that the call was executed', async () => {
    const party = await makeParty(pool, 100n)
    const call = callOf(party, { hold: 60n })
    await calls.begin(call)
    const ending = postOf(call, 50n)
    await calls.end({ ...ending, usage: { ...ending.usage, executed: false } })
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })
})

describe('an admission whose answer is lost', () => {
  it('is not sent again, and counts once', async () => {
    const party = await makeParty(pool, 100n)
    const real = createMoneyQuery(pools.money)
    let sent = 0
    const losing = createCalls({
      query: async (statement) => {
        sent += 1
        await real(statement)
        throw new Unanswered(new Error('the answer was lost'))
      },
      ownerId: ids.next(),
      clock: systemClock,
      log: silentLog,
    })
    const admission = { ...callOf(party, {}), hold: null, windows: [WINDOW] }
    await assert.rejects(losing.begin(admission), { code: 'billing_dependency_timeout' })
    assert.equal(sent, 1)
    const { rates } = await calls.begin({ ...callOf(party, { hold: 1n }), windows: [WINDOW] })
    assert.equal(rates.requests?.left, 8)
  })
})

describe('two claims whose names would join to the same text', () => {
  it('are two claims', async () => {
    const party = await makeParty(pool, 100n)
    const claim = (scope: string, key: string) => ({
      scope,
      key,
      limit: 1,
      fingerprint: '',
      keepSeconds: 0,
      endsWithOwner: true,
    })
    const answers = await Promise.all([
      calls.begin({ ...callOf(party, { hold: 1n }), claims: [claim('a b', 'c')] }),
      calls.begin({ ...callOf(party, { hold: 1n }), claims: [claim('a', 'b c')] }),
    ])
    assert.deepEqual(
      answers.map(({ outcome }) => outcome),
      ['begun', 'begun'],
    )
  })
})

describe('a charge that is forgiven', () => {
  it('is given back once, promotional credit as such, and frees the key of its call', async () => {
    const party = await makeParty(pool, 40n)
    const promotion = {
      entryId: ids.next(),
      accountId: party.accountId,
      kind: 'promotion',
      amount: nanos(30n),
    } as const
    await creditAccount(pool, promotion)
    const key = { scope: 'once', key: 'k', limit: 1, fingerprint: '', keepSeconds: 60, endsWithOwner: false }
    const call = { ...callOf(party, { hold: 50n }), claims: [key] }
    await calls.begin(call)
    await calls.end(postOf(call, 50n))
    for (const expected of [50n, 50n]) {
      const { rows } = await pool.query('select forgive_charge($1, $2) as given', [call.id, 50n])
      assert.equal(rows[0]?.given, expected)
    }
    const { rows } = await pool.query('select charged, promo from accounts where id = $1', [party.accountId])
    assert.deepEqual(rows[0], { charged: 0n, promo: 30n })
    const again = { ...callOf(party, { hold: 50n }), claims: [key] }
    assert.equal((await calls.begin(again)).outcome, 'begun')
    await calls.end(voidOf(again))
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })
})

import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { budgetsOf } from '../../server/src/budgets/account-budgets.ts'
import { createFindEndUser, otherEndUsers, pruneEndUsers } from '../../server/src/budgets/end-users.ts'
import { createMakeAllowances } from '../../server/src/budgets/made-allowances.ts'
import { changeBudget, listBudgets } from '../../server/src/budgets/set-budgets.ts'
import { createAttribute } from '../../server/src/gateway/attribution.ts'
import { createCeilingsFor } from '../../server/src/gateway/ceilings.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { ACTOR, type Customer, makeCustomer } from '../acceptance/installation.ts'
import { connect, holdOf, ids } from '../ledger/world.ts'
import { set } from './setting.ts'

/** Budgets of end users of an account that has as many of them as it may: here two. */
const database = await freshDatabase()
const { pools, calls } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

let nowMs = Date.now()
const clock = { monotonicMs: () => nowMs }
const DAY_MS = 86_400_000

/** What a process does with a call that names an end user: it finds out whose it is, what it counts against, and begins it. */
function processOf({ accountId, workspaceId, keyId }: Customer) {
  const attribute = createAttribute({ findEndUser: createFindEndUser({ pool, clock, limit: 2 }) })
  const ceilingsFor = createCeilingsFor({
    makeAllowances: createMakeAllowances({ pool, clock }),
    time: { nowMs: () => nowMs },
  })
  return async (endUser: string, amount = 1n): Promise<string> => {
    const attribution = await attribute({ caller: { accountId, tags: [] }, endUser }, {})
    const { ofCalls } = budgetsOf(accountId, await listBudgets(pool, workspaceId, 'test'))
    const ceilings = await ceilingsFor({ accountId, ceilings: [], budgetsOfCalls: ofCalls }, attribution)
    const hold = holdOf(
      amount,
      ceilings.map(({ allowanceId }) => allowanceId),
    )
    const call = { id: ids.next(), accountId, credentialId: keyId, operation: 'beyond', hold }
    return (await calls.begin({ ...call, tokens: 0, windows: [], claims: [], attribution })).outcome
  }
}

const forget = async (accountId: string, label: string) => {
  await pool.query(
    "update end_users set seen_at = clock_timestamp() - interval '91 days' where account_id = $1 and label = $2",
    [accountId, label],
  )
  assert.equal(await pruneEndUsers(pool), 1)
}

const [BEGUN, SPENT] = ['begun', 'allowance_spent']

describe('an end user for whom the account has no place', () => {
  it('is held to a budget of its own all the same', async () => {
    const customer = await makeCustomer(pool)
    const begin = processOf(customer)
    await set(pool, customer, { kind: 'end_user', subject: 'carol', amount: 1n })
    assert.deepEqual([await begin('alice'), await begin('bob')], [BEGUN, BEGUN])
    assert.deepEqual([await begin('carol'), await begin('carol')], [BEGUN, SPENT])
    assert.equal(await begin('dora', 100n), BEGUN, 'who has no budget is held to none')
    const { rows } = await pool.query('select distinct end_user from holds where end_user_label = $1', ['other'])
    assert.deepEqual(rows, [{ end_user: otherEndUsers(customer.accountId).id }], 'reports have both as one')
  })

  it('shares the amount of everybody with all others who have no place', async () => {
    const customer = await makeCustomer(pool)
    const begin = processOf(customer)
    await set(pool, customer, { kind: 'end_user', subject: '*', amount: 2n })
    assert.deepEqual([await begin('alice', 2n), await begin('bob', 2n)], [BEGUN, BEGUN])
    assert.deepEqual([await begin('carol'), await begin('dora'), await begin('erin')], [BEGUN, BEGUN, SPENT])
  })

  it('does not spend the amount of everybody once with the others and once more when it gets a place', async () => {
    const customer = await makeCustomer(pool)
    const begin = processOf(customer)
    const other = processOf(customer)
    await set(pool, customer, { kind: 'end_user', subject: '*', amount: 2n, period: 'day' })
    assert.deepEqual([await begin('alice', 2n), await begin('bob'), await begin('carol', 2n)], [BEGUN, BEGUN, BEGUN])
    await forget(customer.accountId, 'alice')
    nowMs += 60_001
    assert.equal(await begin('carol'), SPENT, 'by the process that knew it as one of the others')
    assert.equal(await other('carol'), SPENT, 'by another')
    assert.equal(await begin('bob'), BEGUN, 'who always had a place has its own amount')
    const { rows } = await pool.query('select late_at is not null as late from end_users where label = $1', ['carol'])
    assert.deepEqual(rows, [{ late: true }])
    const late = processOf(customer)
    nowMs += 2 * DAY_MS
    assert.equal(await late('carol'), BEGUN, 'in a period that began when it had its place, it counts alone')
  })

  it('does not spend it once more with the others when it has lost its place', async () => {
    const customer = await makeCustomer(pool)
    await set(pool, customer, { kind: 'end_user', subject: '*', amount: 2n })
    const before = processOf(customer)
    assert.deepEqual([await before('alice', 2n), await before('bob')], [BEGUN, BEGUN])
    await forget(customer.accountId, 'alice')
    assert.equal(await before('carol'), BEGUN)
    const begin = processOf(customer)
    assert.equal(await begin('alice'), SPENT)
    assert.equal(await begin('dora'), BEGUN, 'the others have what they share')
  })
})

describe('the amount of everybody', () => {
  it('is one row: who follows it meets a new amount at once, and an amount of its own survives', async () => {
    const customer = await makeCustomer(pool)
    const begin = processOf(customer)
    const every = await set(pool, customer, { kind: 'end_user', subject: '*', amount: 5n })
    await set(pool, customer, { kind: 'end_user', subject: 'bob', amount: 3n })
    assert.deepEqual([await begin('alice'), await begin('bob')], [BEGUN, BEGUN])
    const rowsOf = async () => (await pool.query('select ctid, xmin, * from allowances order by id')).rows
    const untouched = await rowsOf()
    await changeBudget({ pool }, ACTOR, every.id, nanos(1n))
    assert.deepEqual(await rowsOf(), untouched, 'nothing is written for each of them')
    assert.equal(await begin('alice'), SPENT)
    assert.deepEqual([await begin('bob', 2n), await begin('bob')], [BEGUN, SPENT])
    await changeBudget({ pool }, ACTOR, every.id, nanos(3n))
    assert.deepEqual([await begin('alice', 2n), await begin('alice')], [BEGUN, SPENT])
  })

  it('is met first while a call of the account is being judged, without waiting for it', async () => {
    const customer = await makeCustomer(pool)
    const every = await set(pool, customer, { kind: 'end_user', subject: '*', amount: 5n })
    const client = await pool.connect()
    try {
      await client.query('begin')
      await client.query('select from accounts where id = $1 for no key update', [customer.accountId])
      const make = createMakeAllowances({ pool, clock })
      const one = (allowanceId: string) => ({
        ...({ allowanceId, kind: 'end_user', subject: 'x', follows: every.id } as const),
        budget: { period: 'total', amount: nanos(5n) } as const,
      })
      const asked = Array.from({ length: 50 }, () => one(ids.next()))
      const made = await Promise.all(asked.map((ceiling) => make([ceiling])))
      assert.deepEqual(made.flat(), asked)
    } finally {
      await client.query('rollback')
      client.release()
    }
  })
})

import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { createTestCredit } from '../../server/src/ledger/test-credit.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { createWorkspace } from '../../server/src/workspaces/workspaces.ts'
import { ACTOR } from '../identity/customers.ts'
import { connect, ids } from './world.ts'

const { url } = await freshDatabase()
const worlds = [connect(url), connect(url)]
const pool = (worlds[0] ?? connect(url)).pools.rest
after(() => Promise.all(worlds.map(({ pools }) => pools.close())))

const FIVE = nanos(5_000_000_000n)
const DAY_MS = 86_400_000
const time = { at: 20_000 * DAY_MS, nowMs: () => time.at }

/** As processes of the gateway have it, each with a pool of its own. */
const processes = (amount = FIVE) =>
  worlds.map(({ pools }) => createTestCredit({ pool: pools.rest, amount, time: { nowMs: () => time.at } }))

async function accounts() {
  const { liveAccountId, testAccountId } = await createWorkspace({ pool, ids }, ACTOR, { name: 'Empty' })
  return { live: liveAccountId, test: testAccountId }
}

async function moneyOf(accountId: Id) {
  const { rows } = await pool.query(
    `select credited, paid, (select count(*)::integer from entries where account_id = accounts.id) as entries,
       (select count(*)::integer from audit where action = 'account.credited' and subject in
         (select id::text from entries where account_id = accounts.id)) as recorded
     from accounts where id = $1`,
    [accountId],
  )
  return rows[0]
}

describe('test money', () => {
  it('is given once a day, however many calls of however many processes are refused at once, and never counts as paid', async () => {
    const { test } = await accounts()
    const [one, other] = processes()
    assert.ok(one !== undefined && other !== undefined)
    const refused = Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? one : other).refill(test, FIVE))
    assert.deepEqual(new Set(await Promise.all(refused)), new Set([true]), 'each call is begun again')
    assert.deepEqual(await moneyOf(test), { credited: FIVE, paid: 0n, entries: 1, recorded: 1 })
    assert.equal(one.isKnownGiven(test), true)
    assert.equal(await processes()[0]?.atHand(test), 0n, 'also for a process that has not given it')
    time.at += DAY_MS
    assert.equal(one.isKnownGiven(test), false)
    assert.equal(await one.atHand(test), FIVE)
    await one.refill(test, FIVE)
    await other.refill(test, FIVE)
    assert.deepEqual(await moneyOf(test), { credited: 2n * FIVE, paid: 0n, entries: 2, recorded: 2 })
    assert.deepEqual(await verifyLedger(pool), [])
  })

  it('is not given a second time on a day on which the setting changed', async () => {
    const { test } = await accounts()
    await processes()[0]?.refill(test, FIVE)
    await processes(nanos(7_000_000_000n))[1]?.refill(test, FIVE)
    assert.equal((await moneyOf(test))?.credited, FIVE)
  })

  it('is not given where it would not do, to a live account, and where the operator gives none', async () => {
    const { live, test } = await accounts()
    assert.equal(await processes()[0]?.refill(test, nanos(FIVE + 1n)), false)
    await processes()[0]?.refill(live, FIVE)
    await processes(nanos(0n))[0]?.refill(test, nanos(0n))
    for (const account of [live, test]) assert.equal((await moneyOf(account))?.entries, 0)
  })
})

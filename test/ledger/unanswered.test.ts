import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { type Calls, createCalls } from '../../server/src/calls/calls.ts'
import { createMoneyQuery, Unanswered } from '../../server/src/calls/money-query.ts'
import type { Query } from '../../server/src/calls/query.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { callOf, extensionOf, makeParty, moneyOf, postOf } from './session.ts'
import { connect, ids } from './world.ts'

/**
 * The module over a way to PostgreSQL that loses answers on demand: the statement is carried out or never arrives, and
 * either way nobody says which.
 */
const database = await freshDatabase()
const { pools, calls: direct } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

type Way = 'open' | 'loses answers' | 'loses statements'
/** Long enough for a few tries; most of it passes between them. */
const DEADLINE_MS = 400

/** `ways` are those of the first statements; all after them find the last one, until it is opened. */
function overBadWay(
  ways: readonly Way[],
  deadlineMs = DEADLINE_MS,
  extendDeadlineMs = deadlineMs,
): { readonly calls: Calls; readonly open: () => void } {
  const real = createMoneyQuery(pools.money)
  let sent = 0
  let isOpen = false
  const query: Query = async (statement) => {
    const way = isOpen ? 'open' : (ways[sent] ?? ways.at(-1))
    sent += 1
    const rows = way === 'loses statements' ? [] : await real(statement)
    if (way !== 'open') throw new Unanswered(new Error(`the way ${way}`))
    return rows
  }
  const calls = createCalls({
    query,
    ownerId: ids.next(),
    clock: systemClock,
    log: silentLog,
    beginDeadlineMs: deadlineMs,
    extendDeadlineMs,
    endDeadlineMs: deadlineMs,
  })
  return {
    calls,
    open: () => {
      isOpen = true
    },
  }
}

describe('a begin that PostgreSQL may have carried out', () => {
  for (const [title, ways] of [
    ['was carried out and its answer lost', ['loses answers', 'loses statements']],
    ['never arrived', ['loses statements']],
  ] as const) {
    it(`(it ${title}) is voided when its deadline passes between two tries, so that nothing stays held`, async () => {
      const party = await makeParty(pool, 100n)
      const call = callOf(party, { hold: 60n })
      const { calls, open } = overBadWay(ways)
      await assert.rejects(calls.begin(call), { code: 'billing_dependency_timeout' })
      open()
      assert.ok(await calls.flush(PATIENCE_MS))
      assert.equal((await moneyOf(pool, party)).held, 0n)
      assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
      assert.equal((await direct.begin(call)).outcome, 'ended', 'a late hold meets the tombstone')
    })
  }

  it('is begun by the same id sent again, and holds once', async () => {
    const party = await makeParty(pool, 100n)
    const { calls } = overBadWay(['loses answers', 'open'], PATIENCE_MS)
    assert.equal((await calls.begin(callOf(party, { hold: 60n }))).outcome, 'begun')
    assert.equal((await moneyOf(pool, party)).held, 60n)
  })

  it('that holds nothing leaves no row behind when its deadline passes', async () => {
    const party = await makeParty(pool, 100n)
    const call = callOf(party, { hold: null })
    const { calls, open } = overBadWay(['loses statements'])
    await assert.rejects(calls.begin(call), { code: 'billing_dependency_timeout' })
    open()
    assert.ok(await calls.flush(PATIENCE_MS))
    assert.equal((await pool.query('select from charges where id = $1', [call.id])).rowCount, 0)
  })
})

describe('a call that was refused after a sending was lost', () => {
  it('is not begun again under its id, which is being voided or was', async () => {
    const party = await makeParty(pool, 100n)
    const call = callOf(party, { hold: 200n })
    const { calls, open } = overBadWay(['loses statements', 'open'], PATIENCE_MS)
    assert.equal((await calls.begin(call)).outcome, 'money_spent')
    open()
    const smaller = { ...callOf(party, { id: call.id, hold: 50n }) }
    await assert.rejects(calls.begin(smaller), { code: 'billing_dependency_timeout' })
    assert.equal(await calls.flush(PATIENCE_MS), true)
    assert.equal((await calls.begin(smaller)).outcome, 'ended')
    assert.equal((await moneyOf(pool, party)).held, 0n)
  })
})

describe('an end that PostgreSQL may have carried out', () => {
  for (const [title, ways] of [
    ['was carried out and its answer lost', ['loses answers', 'loses statements']],
    ['never arrived', ['loses statements']],
  ] as const) {
    it(`(it ${title}) charges nothing once its caller was told that it failed`, async () => {
      const party = await makeParty(pool, 100n)
      const call = callOf(party, { hold: 60n })
      await direct.begin(call)
      const { calls, open } = overBadWay(ways)
      await assert.rejects(calls.end(postOf(call, 40n)), { code: 'settlement_timeout' })
      open()
      await until(
        async () => {
          const { charged, held } = await moneyOf(pool, party)
          return charged + held === 0n
        },
        PATIENCE_MS,
        'the money’s return',
      ).catch(() => {})
      assert.deepEqual(await moneyOf(pool, party), { credited: 100n, debt: 0n, charged: 0n, held: 0n, promo: 0n })
      assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
    })
  }

  it('is answered as the first time by the same id sent again, and charges once', async () => {
    const party = await makeParty(pool, 100n)
    const call = callOf(party, { hold: 60n })
    await direct.begin(call)
    const { calls } = overBadWay(['loses answers', 'open'], PATIENCE_MS)
    const { outcome, charged, free } = await calls.end(postOf(call, 40n))
    assert.deepEqual({ outcome, charged, free }, { outcome: 'posted', charged: 40n, free: 60n })
    assert.equal((await moneyOf(pool, party)).charged, 40n)
  })
})

describe('an extension that PostgreSQL may have carried out', () => {
  /** Only the deadline of the extension may pass. */
  async function begunOver(ways: readonly Way[], extendDeadlineMs = DEADLINE_MS) {
    const party = await makeParty(pool, 100n)
    const call = callOf(party, { hold: 10n })
    const way = overBadWay(['open', ...ways], PATIENCE_MS, extendDeadlineMs)
    assert.equal((await way.calls.begin(call)).outcome, 'begun')
    return { party, call, ...way }
  }

  for (const first of ['loses answers', 'loses statements'] as const) {
    it(`is sent again where the way ${first}, and is granted once`, async () => {
      const { party, call, calls } = await begunOver([first, 'open'], PATIENCE_MS)
      const growth = await calls.extend(extensionOf(call, 60n))
      assert.ok(growth.outcome === 'extended')
      assert.equal(growth.held, 60n)
      assert.equal((await moneyOf(pool, party)).held, 60n)
      assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
    })

    it(`trap: the store of reservations is down, and calls go on without one: counts as not granted where the way ${first} until its deadline, and the end settles whichever it was`, async () => {
      const { party, call, calls, open } = await begunOver([first])
      assert.deepEqual(await calls.extend(extensionOf(call, 60n)), { outcome: 'unanswered' })
      const wanted = first === 'loses answers' ? 60n : 10n
      await until(async () => (await moneyOf(pool, party)).held === wanted, PATIENCE_MS, 'what is held')
      open()
      const { charged, free } = await calls.end(postOf(call, 10n))
      assert.deepEqual([charged, free], [10n, 90n])
      assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
    })
  }

  it('does nothing where it arrives after the end', async () => {
    const { party, call, calls, open } = await begunOver(['loses statements'])
    assert.deepEqual(await calls.extend(extensionOf(call, 60n)), { outcome: 'unanswered' })
    open()
    await calls.end(postOf(call, 5n))
    let outcome = ''
    const isAnswered = async () => {
      outcome = (await calls.extend(extensionOf(call, 60n))).outcome
      return outcome !== 'unanswered'
    }
    await until(isAnswered, PATIENCE_MS, 'an answer to an extension')
    assert.equal(outcome, 'ended')
    const { charged, held } = await moneyOf(pool, party)
    assert.deepEqual([charged, held], [5n, 0n])
  })
})

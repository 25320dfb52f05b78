import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import { skewedClock, systemClock } from '../../server/src/kernel/clock.ts'
import { createIds } from '../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { callOf, makeParty, moneyOf, openSession, outcomesOf, postOf } from './session.ts'
import { connect, ids } from './world.ts'

const DAY_MS = 86_400_000
const daysAway = (days: number) => createIds({ clock: skewedClock(systemClock, days * DAY_MS) })
const yesterday = daysAway(-1)
const tomorrow = daysAway(1)

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

describe('a call whose id carries another day than today', () => {
  for (const [day, from] of [
    ['yesterday', yesterday],
    ['tomorrow', tomorrow],
  ] as const) {
    it(`(${day}) is charged once, however often it is ended`, async () => {
      const party = await makeParty(pool, 100n)
      const call = callOf(party, { id: from.next(), hold: 60n })
      assert.deepEqual(await outcomesOf(session.begin(call)), ['begun'])
      assert.deepEqual(await outcomesOf(session.end(postOf(call, 40n))), ['posted'])
      assert.deepEqual(await outcomesOf(session.end(postOf(call, 40n))), ['posted'])
      assert.equal((await moneyOf(pool, party)).charged, 40n)
      assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
    })

    it(`(${day}) holds nothing once it has ended, or was voided before it came`, async () => {
      const party = await makeParty(pool, 100n)
      const [ended, voided] = [callOf(party, { id: from.next() }), callOf(party, { id: from.next() })]
      await session.begin(ended)
      await session.end(postOf(ended, 1n))
      await session.end(voidOf(voided))
      assert.deepEqual(await outcomesOf(session.begin(ended, voided)), ['ended', 'ended'])
      assert.equal((await moneyOf(pool, party)).held, 0n)
    })
  }

  it('is known whatever way to write a date whoever made the days has', async () => {
    const maker = await pool.connect()
    await maker.query("set datestyle = 'German'")
    await maker.query('select make_charge_partitions()')
    maker.release(true)
    const party = await makeParty(pool, 100n)
    for (const from of [yesterday, ids, tomorrow]) {
      const call = callOf(party, { id: from.next(), hold: 10n })
      assert.deepEqual(await outcomesOf(session.begin(call)), ['begun'])
      await session.end(postOf(call, 1n))
      assert.deepEqual(await outcomesOf(session.begin(call)), ['ended'])
    }
  })

  it('shares a batch with calls of other days, each of which answers as the first time', async () => {
    const party = await makeParty(pool, 100n)
    const [old, now, next] = [yesterday, ids, tomorrow].map((from) => callOf(party, { id: from.next(), hold: 10n }))
    assert.ok(old !== undefined && now !== undefined && next !== undefined)
    await session.begin(old, now, next)
    await session.end(postOf(old, 1n), postOf(next, 3n))
    const again = await session.end(postOf(next, 9n), postOf(now, 2n), postOf(old, 9n))
    assert.deepEqual(
      again.map(({ charged, endedNow }) => ({ charged, endedNow })),
      [
        { charged: 3n, endedNow: false },
        { charged: 2n, endedNow: true },
        { charged: 1n, endedNow: false },
      ],
    )
    const { rows } = await pool.query(
      `select array_agg(charge.tableoid::regclass::text = 'charges_' || to_char(clock_timestamp() at time zone 'UTC' + make_interval(days => days), 'YYYYMMDD') order by days) as places
       from charges charge join unnest($1::uuid[], array[-1, 0, 1]) one (id, days) on one.id = charge.id`,
      [[old.id, now.id, next.id]],
    )
    assert.deepEqual(rows, [{ places: [true, true, true] }])
  })

  it('is refused before anything is held where there is no place for its charge', async () => {
    const party = await makeParty(pool, 100n)
    const call = callOf(party, { id: daysAway(30).next(), hold: 60n })
    await assert.rejects(session.begin(call), { code: '42P01' })
    assert.equal((await moneyOf(pool, party)).held, 0n)
  })
})

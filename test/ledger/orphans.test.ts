import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { voidOf } from '../../server/src/calls/calls.ts'
import { resolveCall, resolveOverdue } from '../../server/src/calls/orphans.ts'
import { forgetOwners } from '../../server/src/calls/upkeep.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { keyOf, SLOT } from './mortal.ts'
import { createSweeper, LONG_SECONDS, type OrphanWorld, openOrphanWorld } from './mortal-orphans.ts'
import { callOf, makeParty, moneyOf, outcomesOf, periodsOf, postOf, whileLocked } from './session.ts'
import { ids, makeAllowance } from './world.ts'

const BALANCE = 1_000_000n

let world: OrphanWorld

/** A test with a database of its own, since a sweep finds what others left. */
function itInWorld(title: string, work: () => Promise<void>): void {
  it(title, async () => {
    world = await openOrphanWorld()
    try {
      await work()
    } finally {
      await world.close()
    }
  })
}

const only = <T>(items: readonly T[]): T => {
  assert.equal(items.length, 1)
  return items[0] as T
}

describe('a sweep', () => {
  async function oneOrphan(claims: Parameters<typeof callOf>[1] = {}) {
    const party = await makeParty(world.pool, BALANCE)
    const ownerId = await world.newOwner('is dead')
    const call = callOf(party, { hold: 60n, ...claims })
    await world.beginAs(ownerId, call)
    return { party, ownerId, call }
  }

  async function sweepAs(ownerId: Id, graceSeconds = 0): Promise<readonly Id[]> {
    const sweeper = createSweeper(world.url, ownerId)
    try {
      return await sweeper.sweep(graceSeconds)
    } finally {
      await sweeper.close()
    }
  }

  /** A grace that is over since PostgreSQL started, and is not since the test did: half of how long it is up. */
  async function youngerThanPostgres(): Promise<number> {
    const { rows } = await world.pool.query<{ up: number }>(
      'select extract(epoch from clock_timestamp() - pg_postmaster_start_time())::float8 as up',
    )
    return only(rows).up / 2
  }

  /** Lets so much time pass for a lease that is held. */
  async function holdFor(ownerId: Id, seconds: number): Promise<void> {
    const sql = 'update owners set held_since = held_since - make_interval(secs => $2) where id = $1'
    await world.pool.query(sql, [ownerId, seconds])
  }

  /** A lease that was always renewed in time since long ago. */
  async function longHeldLease(): Promise<Id> {
    const ownerId = await world.newOwner('lives')
    await world.pool.query("update owners set held_since = held_since - interval '1 year' where id = $1", [ownerId])
    return ownerId
  }

  itInWorld(
    'marks the call of a dead process: the money stays held, its slot is free again, its key is not',
    async () => {
      const key = keyOf('one')
      const { party, call } = await oneOrphan({ claims: [{ ...SLOT, limit: 1 }, key] })
      assert.deepEqual(await sweepAs(await world.newOwner('lives')), [call.id])
      assert.equal((await moneyOf(world.pool, party)).held, 60n)
      assert.equal((await world.calls.begin(callOf(party, { claims: [{ ...SLOT, limit: 1 }] }))).outcome, 'begun')
      const again = await world.calls.begin(callOf(party, { claims: [key] }))
      assert.deepEqual([again.outcome, 'holder' in again && again.holder], ['claim_taken', call.id])
      assert.deepEqual(await sweepAs(await world.newOwner('lives')), [], 'it is swept once')
      await world.agrees()
    },
  )

  itInWorld('takes nothing from a process that lives, or that renewed just before the mark', async () => {
    const { party, ownerId, call } = await oneOrphan()
    const sweeper = await world.newOwner('lives')
    const swept = await whileLocked(
      { url: world.url, observer: world.pool, accountId: party.accountId },
      () => world.renew(ownerId, LONG_SECONDS),
      (waiter) => waiter.query('select id from sweep_orphans($1, 0, 100)', [sweeper]),
    )
    assert.deepEqual(swept, [])
    assert.deepEqual(await sweepAs(sweeper), [])
    assert.deepEqual(await world.unsettled(), [])
    assert.equal((await world.calls.end(postOf(call, 10n))).charged, 10n)
    await world.agrees()
  })

  itInWorld(
    'is not for who has no lease, whose lease has ended, or whose lease is younger than the grace',
    async () => {
      await oneOrphan()
      const young = await world.newOwner('lives')
      assert.deepEqual(await sweepAs(ids.next()), [])
      assert.deepEqual(await sweepAs(await world.newOwner('is dead')), [])
      const grace = await youngerThanPostgres()
      assert.deepEqual(await sweepAs(young, grace), [])
      await holdFor(young, grace)
      assert.equal((await sweepAs(young, grace)).length, 1, 'it is old enough now')
    },
  )

  itInWorld(
    'is not for who renewed after its lease had ended, until it has held it for as long as the grace',
    async () => {
      await oneOrphan()
      const sweeper = await longHeldLease()
      await world.pool.query(
        "update owners set lease_until = now() - interval '1 second', renew_by = now() - interval '6 seconds' where id = $1",
        [sweeper],
      )
      await world.renew(sweeper, LONG_SECONDS)
      const grace = await youngerThanPostgres()
      assert.deepEqual(await sweepAs(sweeper, grace), [])
      await holdFor(sweeper, grace)
      assert.equal((await sweepAs(sweeper, grace)).length, 1)
    },
  )

  itInWorld('is not for who could not renew in time itself, although its lease has not ended', async () => {
    await oneOrphan()
    const sweeper = await longHeldLease()
    // As after an outage of six seconds that began just after its renewal.
    const leaseOfTen =
      "update owners set lease_until = now() + interval '4 seconds', renew_by = now() - interval '1 second' where id = $1"
    await world.pool.query(leaseOfTen, [sweeper])
    const grace = await youngerThanPostgres()
    assert.deepEqual(await sweepAs(sweeper, grace), [], 'it has not renewed yet')
    await world.renew(sweeper, LONG_SECONDS)
    assert.deepEqual(await sweepAs(sweeper, grace), [], 'the others have not had the time')
    await holdFor(sweeper, grace)
    assert.equal((await sweepAs(sweeper, grace)).length, 1)
  })

  itInWorld('waits for as long as the grace after a start of PostgreSQL, whatever leases say', async () => {
    await oneOrphan()
    const sweeper = await longHeldLease()
    const grace = await youngerThanPostgres()
    assert.deepEqual(await sweepAs(sweeper, 2 * grace + LONG_SECONDS), [])
    assert.equal((await sweepAs(sweeper, grace)).length, 1)
  })

  itInWorld('finds a call that was settled while it waited ended, and it is charged once', async () => {
    const { party, call } = await oneOrphan()
    const sweeper = await world.newOwner('lives')
    const swept = await whileLocked(
      { url: world.url, observer: world.pool, accountId: party.accountId },
      async (holder) => assert.deepEqual(await outcomesOf(holder.end(postOf(call, 25n))), ['posted']),
      (waiter) => waiter.query('select id from sweep_orphans($1, 0, 100)', [sweeper]),
    )
    assert.deepEqual(swept, [])
    assert.deepEqual(await moneyOf(world.pool, party), {
      credited: BALANCE,
      debt: 0n,
      charged: 25n,
      held: 0n,
      promo: 0n,
    })
    await world.agrees()
  })

  itInWorld('that comes first leaves the settlement to post, once, and to its allowance', async () => {
    const { party, allowance, call } = await oneOrphanWithAllowance()
    const sweeper = await world.newOwner('lives')
    const settled = await whileLocked(
      { url: world.url, observer: world.pool, accountId: party.accountId },
      async (holder) =>
        assert.equal((await holder.query('select id from sweep_orphans($1, 0, 100)', [sweeper])).length, 1),
      (waiter) => waiter.end(postOf(call, 25n)),
    )
    const { outcome, charged } = only(settled)
    assert.deepEqual({ outcome, charged }, { outcome: 'posted', charged: 25n })
    assert.equal((await world.calls.end(postOf(call, 25n))).endedNow, false)
    assert.deepEqual(await moneyOf(world.pool, party), {
      credited: BALANCE,
      debt: 0n,
      charged: 25n,
      held: 0n,
      promo: 0n,
    })
    assert.deepEqual(await periodsOf(world.pool, allowance), [{ charged: 25n, held: 0n }])
    await world.agrees()
  })

  async function oneOrphanWithAllowance() {
    const party = await makeParty(world.pool, BALANCE)
    const allowance = await makeAllowance(world.pool, party.accountId, 'day', 100n)
    const call = callOf(party, { hold: 60n, allowances: [allowance] })
    await world.beginAs(await world.newOwner('is dead'), call)
    return { party, allowance, call }
  }
})

describe('a process that ended long ago', () => {
  const owners = async () =>
    (await world.pool.query<{ id: Id }>('select id from owners order by id')).rows.map(({ id }) => id)

  itInWorld('is forgotten when it has nothing open, and not before', async () => {
    const [gone, remembered, living] = [
      await world.newOwner('is dead'),
      await world.newOwner('is dead'),
      await world.newOwner('lives'),
    ]
    const call = callOf(await makeParty(world.pool, BALANCE))
    await world.beginAs(remembered, call)
    await forgetOwners(world.pool, 60)
    assert.equal((await owners()).length, 3, 'none of them has ended for so long')
    await forgetOwners(world.pool, 0)
    assert.deepEqual(await owners(), [remembered, living])
    assert.ok(!(await owners()).includes(gone))
    await world.calls.end(postOf(call, 1n))
    await forgetOwners(world.pool, 0)
    assert.deepEqual(await owners(), [living])
  })

  itInWorld('and began a call after it was forgotten is found, unless it renews its lease', async () => {
    const party = await makeParty(world.pool, BALANCE)
    const [slept, woke] = [callOf(party), callOf(party)]
    const wokenOwner = ids.next()
    await world.beginAs(ids.next(), slept)
    await world.beginAs(wokenOwner, woke)
    await forgetOwners(world.pool, 0)
    await world.renew(wokenOwner, LONG_SECONDS)
    const sweeper = createSweeper(world.url, await world.newOwner('lives'))
    assert.deepEqual(await sweeper.sweep(), [slept.id])
    await sweeper.close()
    await world.agrees()
  })
})

describe('an unsettled call', () => {
  async function unsettledCall(claims: Parameters<typeof callOf>[1] = {}) {
    const party = await makeParty(world.pool, 100n)
    const call = callOf(party, { hold: 60n, ...claims })
    await world.beginAs(await world.newOwner('is dead'), call)
    const sweeper = createSweeper(world.url, await world.newOwner('lives'))
    assert.deepEqual(await sweeper.sweep(), [call.id])
    await sweeper.close()
    return { party, call }
  }

  const overdue = (seconds: number) => resolveOverdue({ pool: world.pool, log: silentLog }, seconds)

  itInWorld(
    'is voided after the deadline and not before: the bound is our loss, money and key are free again',
    async () => {
      const key = keyOf('one')
      const { party, call } = await unsettledCall({ claims: [key] })
      // A deadline counts from the mark, however long ago the call began.
      await world.pool.query("update holds set begun_at = begun_at - interval '1 hour'")
      assert.equal(await overdue(1_800), 0)
      assert.equal((await moneyOf(world.pool, party)).held, 60n)
      await world.pool.query("update holds set unsettled_at = unsettled_at - interval '1 hour'")
      assert.equal(await overdue(1_800), 1)
      assert.equal(await overdue(1_800), 0)
      const { rows } = await world.pool.query('select outcome, amount, overrun, executed from charges where id = $1', [
        call.id,
      ])
      assert.deepEqual(only(rows), { outcome: 'voided', amount: 0n, overrun: 60n, executed: false })
      assert.equal((await world.calls.begin(callOf(party, { hold: 100n, claims: [key] }))).outcome, 'begun')
      await world.agrees()
    },
  )

  itInWorld(
    'is resolved once: by a charge of at most what it held, the rest our loss, and its key is kept',
    async () => {
      const key = keyOf('one')
      const { party, call } = await unsettledCall({ claims: [key] })
      assert.deepEqual(await resolveCall(world.pool, call.id, nanos(75n)), {
        outcome: 'posted',
        charged: 60n,
        overrun: 15n,
      })
      assert.equal(await resolveCall(world.pool, call.id, nanos(75n)), undefined)
      assert.deepEqual(await moneyOf(world.pool, party), {
        credited: 100n,
        debt: 0n,
        charged: 60n,
        held: 0n,
        promo: 0n,
      })
      assert.equal((await world.calls.begin(callOf(party, { claims: [key] }))).outcome, 'claim_taken')
      assert.equal(await overdue(-1), 0)
      await world.agrees()
    },
  )

  itInWorld('is resolved once by many at a time, operators and deadline', async () => {
    const { party, call } = await unsettledCall()
    const attempts = [
      ...Array.from({ length: 5 }, () => resolveCall(world.pool, call.id, nanos(10n)).then((one) => (one ? 1 : 0))),
      ...Array.from({ length: 5 }, () => resolveCall(world.pool, call.id, null).then((one) => (one ? 1 : 0))),
      overdue(-1),
      overdue(-1),
    ]
    const resolved = (await Promise.all(attempts)).filter((times) => times > 0)
    assert.deepEqual(resolved, [1])
    assert.equal((await moneyOf(world.pool, party)).held, 0n)
    await world.agrees()
  })
})

describe('an operator', () => {
  itInWorld('can not resolve a call that somebody runs, that has ended, or that never was', async () => {
    const party = await makeParty(world.pool, 100n)
    const [running, ended, voided] = [1, 2, 3].map(() => callOf(party, { hold: 10n }))
    assert.ok(running && ended && voided)
    for (const call of [running, ended, voided]) assert.equal((await world.calls.begin(call)).outcome, 'begun')
    await world.calls.end(postOf(ended, 4n))
    await world.calls.end(voidOf(voided))
    for (const id of [running.id, ended.id, voided.id, ids.next()]) {
      assert.equal(await resolveCall(world.pool, id, nanos(10n)), undefined)
      assert.equal(await resolveCall(world.pool, id, null), undefined)
    }
    assert.deepEqual(await moneyOf(world.pool, party), { credited: 100n, debt: 0n, charged: 4n, held: 10n, promo: 0n })
    await world.agrees()
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { count, recordProof } from '../../harness/proof.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { resolveOverdue } from '../../server/src/calls/orphans.ts'
import type { Query } from '../../server/src/calls/query.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { startLoad } from './load.ts'
import { keyOf, SLOT } from './mortal.ts'
import { createSweeper, deadlocksOf, type OrphanWorld, openOrphanWorld } from './mortal-orphans.ts'
import { startPack } from './mortal-pack.ts'
import { composeProcess, createWatchfulLog } from './mortal-process.ts'
import { callOf, makeParty, moneyOf, type Party, postOf } from './session.ts'
import { ids } from './world.ts'

const PROOF = 'ledger-orphans'
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

/** Calls of processes that are dead, spread over accounts so that no two begin with the same. */
async function leaveOrphans(parties: readonly Party[], owners: number, each: number): Promise<readonly Id[]> {
  const all: Id[] = []
  for (let owner = 0; owner < owners; owner += 1) {
    const calls = Array.from({ length: each }, (_, at) =>
      callOf(parties[(at * 7 + owner * 3) % parties.length] as Party, {
        hold: 5n,
        claims: at % 5 === 0 ? [keyOf(ids.next())] : [],
      }),
    )
    await world.beginAs(await world.newOwner('is dead'), ...calls)
    all.push(...calls.map(({ id }) => id))
  }
  return all.toSorted()
}

describe('many sweepers at once', () => {
  const PARTIES = 20
  const ORPHANS = count({ full: 2_000, reduced: 500 })
  const ROUNDS = count({ full: 10, reduced: 1 })

  for (const sweepers of [2, 10]) {
    itInWorld(
      `(${sweepers}) find each orphan once and all of them, while calls begin and end on the same accounts`,
      async () => {
        const parties = await Promise.all(Array.from({ length: PARTIES }, () => makeParty(world.pool, 10n ** 12n)))
        const team = await Promise.all(
          Array.from({ length: sweepers }, async () => createSweeper(world.url, await world.newOwner('lives'))),
        )
        const load = startLoad({
          calls: world.calls,
          parties,
          callers: 30,
          beginDeadlineMs: 5_000,
          endDeadlineMs: 10_000,
        })
        try {
          for (let round = 0; round < ROUNDS; round += 1) {
            const orphans = await leaveOrphans(parties, 5, ORPHANS / 5)
            const swept = (await Promise.all(team.map((sweeper) => sweeper.sweep()))).flat()
            assert.deepEqual(swept.toSorted(), orphans)
            assert.deepEqual(await world.unsettled(), orphans)
            assert.equal(await resolveOverdue({ pool: world.pool, log: silentLog }, -1), orphans.length)
          }
        } finally {
          await load.stop()
          await Promise.all(team.map((sweeper) => sweeper.close()))
        }
        const { posted, ...others } = load.counts
        assert.ok(posted && posted >= 30, 'calls went on meanwhile')
        assert.deepEqual(others, {}, 'no call failed')
        assert.equal(await deadlocksOf(world.pool), 0)
        await world.agrees()
        recordProof(PROOF, `${sweepers} sweepers`, {
          orphans: ROUNDS * ORPHANS,
          swept_twice: 0,
          missed: 0,
          deadlocks: 0,
          calls_meanwhile: posted,
        })
      },
    )
  }

  itInWorld('in processes of their own find each orphan once and all of them', async () => {
    const parties = await Promise.all(Array.from({ length: PARTIES }, () => makeParty(world.pool, BALANCE)))
    const leases = { renewEveryMs: 300, leaseSeconds: 60, sweepEveryMs: 20, graceSeconds: 0 }
    const pack = startPack({ url: world.url, parties: [], leases })
    try {
      const processes = count({ full: 10, reduced: 2 })
      await Promise.all(Array.from({ length: processes }, () => pack.start({ sweeps: true })))
      const orphans = await leaveOrphans(parties, 5, ORPHANS / 5)
      const areFound = async () => (await world.unsettled()).length === orphans.length
      await until(areFound, PATIENCE_MS, 'the discovery of all orphans')
      const areTold = () => pack.swept().length >= orphans.length
      await until(areTold, PATIENCE_MS, 'the telling of all orphans')
      await delay(100)
      assert.deepEqual(
        pack
          .swept()
          .map(({ id }) => id)
          .toSorted(),
        orphans,
      )
      recordProof(PROOF, 'sweepers in processes of their own', {
        processes,
        orphans: orphans.length,
        swept_twice: 0,
        missed: 0,
      })
    } finally {
      await pack.close()
    }
  })
})

describe('a process that compares the calls that PostgreSQL has as its own with those that it knows of', () => {
  const LEASES = { renewEveryMs: 150, leaseSeconds: 60, sweepEveryMs: 150, graceSeconds: 0 }

  itInWorld('disowns one that it knows nothing of at the second look, and it stays held', async () => {
    const party = await makeParty(world.pool, BALANCE)
    const lost: Id[] = []
    const call = callOf(party, { hold: 60n, claims: [{ ...SLOT, limit: 1 }] })
    let timesSeen = 0
    const via =
      (query: Query): Query =>
      async (statement) => {
        const rows = await query(statement)
        if (statement.name === 'open_calls_of_owner' && rows.some(([id]) => id === call.id)) timesSeen += 1
        return rows
      }
    const log = createWatchfulLog((what, id) => what === 'lost' && lost.push(id))
    const process = composeProcess({ url: world.url, leases: LEASES, log, via })
    await process.start()
    try {
      const known = callOf(party, { hold: 30n })
      assert.equal((await process.calls.begin(known)).outcome, 'begun')
      await world.beginAs(process.ownerId, call)
      await until(() => lost.length > 0, PATIENCE_MS, 'the loss of the call')
      assert.deepEqual(lost, [call.id])
      assert.deepEqual(await world.unsettled(), [call.id])
      assert.equal(timesSeen, 2)
      assert.equal((await moneyOf(world.pool, party)).held, 90n)
      assert.equal((await world.calls.begin(callOf(party, { claims: [{ ...SLOT, limit: 1 }] }))).outcome, 'begun')
      assert.equal((await process.calls.end(postOf(known, 30n))).charged, 30n)
    } finally {
      await process.stop()
    }
    await world.agrees()
  })

  itInWorld('never disowns one that it runs, under load', async () => {
    const parties = await Promise.all(Array.from({ length: 10 }, () => makeParty(world.pool, 10n ** 12n)))
    const taken: Id[] = []
    const log = createWatchfulLog((_, id) => taken.push(id))
    const process = composeProcess({
      url: world.url,
      leases: { ...LEASES, renewEveryMs: 5, leaseSeconds: 20 },
      sweeps: true,
      log,
    })
    await process.start()
    const { calls } = process
    const load = startLoad({ calls, parties, callers: 50, beginDeadlineMs: 5_000, endDeadlineMs: 10_000 })
    await delay(count({ full: 20_000, reduced: 3_000 }))
    await load.stop()
    await process.stop()
    assert.deepEqual(taken, [])
    assert.deepEqual(Object.keys(load.counts), ['posted'])
    await world.agrees()
    recordProof(PROOF, 'compared under load', { calls: load.told.length, disowned: 0 })
  })
})

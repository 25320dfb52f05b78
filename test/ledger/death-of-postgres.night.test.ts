import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { judge } from '../../harness/figures.ts'
import { count, isFullProof, recordProof } from '../../harness/proof.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import type { Mortal } from './mortal-pack.ts'
import { reckon } from './mortal-reckoning.ts'
import {
  assertOnlyTheDeadAreSwept,
  createRandom,
  LEASE_MS,
  LEASES,
  Leftovers,
  skewMsOf,
  startWorld,
  type World,
} from './mortal-world.ts'

const PROOF = 'ledger-death-of-postgres'
/** Judged in proofs only. */
const BACK_WITHIN_MS = 10_000
const MORTALS = 3
const CALLERS = 16
/** Beyond the moment when sweeping begins again, and some sweeps more. */
const GRACE_OVER_MS = LEASES.graceSeconds * 1_000 + LEASES.renewEveryMs + 2 * LEASES.sweepEveryMs

const random = createRandom()
const leftovers = new Leftovers()
afterEach(leftovers.putAway)

/** Processes that call and sweep, and one that only sweeps. */
async function startLiving({ pack }: World): Promise<readonly Mortal[]> {
  const callers = Array.from({ length: MORTALS }, (_, at) =>
    pack.start({ callers: CALLERS, sweeps: at > 0, skewMs: skewMsOf(at) }),
  )
  await pack.start({ sweeps: true })
  return Promise.all(callers)
}

/** Waits until every process has charged again; how long the slowest took. */
async function recovery(living: readonly Mortal[]): Promise<number> {
  const sinceMs = Date.now()
  const isBack = (mortal: Mortal) => {
    assert.equal(mortal.child.hasExited(), false, 'no process exits for want of PostgreSQL')
    return mortal.told().lastChargedAtMs > sinceMs
  }
  return until(() => living.every(isBack), PATIENCE_MS, 'the next charge of every process')
}

/** Ends the processes and compares. Whatever they could not do while PostgreSQL was away, they have made up for. */
async function settle(world: World) {
  const { pool, pack } = world
  await Promise.all(pack.all.map((mortal) => mortal.stop()))
  const reckoning = await reckon(pool, pack.all)
  assert.deepEqual(reckoning.disagreements, [])
  assert.equal(reckoning.orphans, 0, 'nobody died, so nothing is an orphan')
  assertOnlyTheDeadAreSwept(world)
  assert.deepEqual(pack.swept(), [])
  const { toldEnded, toldCharged, faults } = reckoning
  const lateRenewals = pack.all.map((mortal) => mortal.told().lateRenewals)
  return { told_ended: toldEnded, told_charged: toldCharged, told_faults: faults, late_renewals: lateRenewals }
}

describe('a PostgreSQL that is killed under processes that live on', () => {
  const KILLS = count({ full: 20, reduced: 2 })
  /** From a blink to longer than every lease. */
  const OUTAGES_MS = isFullProof ? [100, 0.85 * LEASE_MS, 1_000, LEASE_MS + 1_500] : [100, LEASE_MS + 500]

  it(`(${KILLS} kills): what was told is there, calls go on, and no call is taken from its process`, async () => {
    const world = await startWorld(leftovers)
    const { postgres, pool } = world
    const living = await startLiving(world)
    const recoveredAfterMs: number[] = []
    for (let kill = 0; kill < KILLS; kill += 1) {
      await delay(random() * 500)
      await postgres.kill()
      await delay(OUTAGES_MS[kill % OUTAGES_MS.length])
      await postgres.start()
      recoveredAfterMs.push(await recovery(living))
      assert.deepEqual(await verifyLedger(pool), [])
      await delay(kill % 4 === 3 || kill === KILLS - 1 ? GRACE_OVER_MS : 1_000)
    }
    const figures = await settle(world)
    judge(PROOF, 'killed: the next charge of every process', { unit: 'ms', atMost: BACK_WITHIN_MS }, recoveredAfterMs)
    recordProof(PROOF, 'killed', { kills: KILLS, ...LEASES, ...figures })
  })
})

describe('a PostgreSQL that nobody reaches for most of a lease, as while a standby takes over', () => {
  const OUTAGES = count({ full: 6, reduced: 1 })
  const OUTAGE_MS = 0.88 * LEASE_MS

  it(`(${OUTAGES} times): a sweeper whose lease has not ended takes no call from those whose lease has`, async () => {
    const world = await startWorld(leftovers)
    const { proxy } = world
    const living = await startLiving(world)
    const recoveredAfterMs: number[] = []
    for (let outage = 0; outage < OUTAGES; outage += 1) {
      await setLeasesApart(world, living)
      proxy.refuse()
      proxy.cut('reset')
      await delay(OUTAGE_MS)
      proxy.accept()
      recoveredAfterMs.push(await recovery(living))
      await delay(GRACE_OVER_MS)
    }
    const figures = await settle(world)
    const limit = { unit: 'ms', atMost: BACK_WITHIN_MS } as const
    judge(PROOF, 'out of reach: the next charge of every process', limit, recoveredAfterMs)
    recordProof(PROOF, 'out of reach', { outages: OUTAGES, outage_ms: OUTAGE_MS, ...LEASES, ...figures })
  })

  /** After an outage all renew at once. Who is stopped for a moment renews later than the others from then on. */
  async function setLeasesApart(world: World, living: readonly Mortal[]): Promise<void> {
    const areApart = async () => {
      if (await someWillEnd(world, OUTAGE_MS)) return true
      if (random() < 0.02) await stopForAMoment(living.slice(0, 2))
      return false
    }
    await until(areApart, PATIENCE_MS, 'a moment at which leases are far apart')
  }

  async function stopForAMoment(some: readonly Mortal[]): Promise<void> {
    for (const { child } of some) child.pause()
    await delay(LEASES.renewEveryMs / 2)
    for (const { child } of some) child.resume()
  }

  /** Whether the leases of some will be over after so long, and that of the sweeper will not. */
  async function someWillEnd({ pool, pack }: World, afterMs: number): Promise<boolean> {
    const { rows } = await pool.query<{ id: string; left: number }>(
      'select id, (extract(epoch from lease_until - clock_timestamp()) * 1000)::float8 as left from owners',
    )
    const leftOf = (place: number) => rows.find(({ id }) => id === pack.all[place]?.ownerId)?.left ?? 0
    const margin = 0.02 * LEASE_MS
    return leftOf(MORTALS) > afterMs + 2 * margin && Math.min(leftOf(0), leftOf(1)) < afterMs - margin
  }
})

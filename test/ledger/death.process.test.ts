import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { judge } from '../../harness/figures.ts'
import { count, recordProof, seed } from '../../harness/proof.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import { resolveCall } from '../../server/src/calls/orphans.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { CHARGED, HELD, keyOf, SLOT } from './mortal.ts'
import type { Mortal, Pack } from './mortal-pack.ts'
import { openCalls, reckon } from './mortal-reckoning.ts'
import {
  ACCOUNTS,
  assertOnlyTheDeadAreSwept,
  createRandom,
  FOUND_WITHIN_MS,
  LEASES,
  Leftovers,
  skewMsOf,
  startWorld,
  sumOfAccounts,
  type World,
} from './mortal-world.ts'
import { callOf } from './session.ts'

const PROOF = 'ledger-death'
const KILLS = count({ full: 100, reduced: 5 })
const MORTALS = 3
const CALLERS = 16
/** So many calls are charged before the next process dies. */
const CHARGED_EACH = 20

const leftovers = new Leftovers()
afterEach(leftovers.putAway)

const startCaller = (pack: Pack, place: number) => pack.start({ callers: CALLERS, skewMs: skewMsOf(place) })

describe('processes that are killed at random points of their calls', () => {
  it(`(${KILLS} kills, seed ${seed}): nothing that was told is lost, what was open is found and stays held`, async () => {
    const world = await startWorld(leftovers)
    const { pool, pack } = world
    const sweepers = [await pack.start({ sweeps: true }), await pack.start({ sweeps: true })]
    const living = await Promise.all(Array.from({ length: MORTALS }, (_, at) => startCaller(pack, at)))
    const samples = await killOneAfterTheOther(world, living, sweepers)
    await Promise.all(living.map((mortal) => mortal.stop()))

    const dead = pack.all.filter((mortal) => mortal.killedAtMs() !== undefined)
    const allFound = async () => (await openCalls(pool)).every(({ unsettled_at_ms }) => unsettled_at_ms !== null)
    await until(allFound, PATIENCE_MS, 'the discovery of all orphans')

    const reckoning = await reckon(pool, pack.all)
    assert.deepEqual(reckoning.disagreements, [])
    assert.ok(reckoning.toldCharged >= CHARGED_EACH * KILLS, `only ${reckoning.toldCharged} calls were charged`)
    assert.equal(reckoning.faults, 0, 'no caller was let down by the death of another process')
    const foundAfterMs = await orphansFoundAfterMs(world)
    judge(PROOF, 'from a death to the mark of its calls', { unit: 'ms', atMost: FOUND_WITHIN_MS }, foundAfterMs)
    assert.equal(await sumOfAccounts(pool, 'held'), BigInt(reckoning.orphans) * HELD)
    assertOnlyTheDeadAreSwept(world)

    recordProof(PROOF, 'processes killed', {
      kills: dead.length,
      ...LEASES,
      verified_during: samples,
      told_ended: reckoning.toldEnded,
      told_charged: reckoning.toldCharged,
      ended_untold: reckoning.endedUntold,
      died_at: reckoning.diedAt,
      orphans: reckoning.orphans,
      ...(await claimsOfTheDead(world)),
      ...(await resolveAll(world)),
    })
  })
})

/** Kills one of the living, puts another in its place, and looks at the ledger now and then. How often it looked. */
async function killOneAfterTheOther({ pool, pack }: World, living: Mortal[], sweepers: Mortal[]): Promise<number> {
  const random = createRandom()
  let samples = 0
  for (let kill = 0; kill < KILLS; kill += 1) {
    const haveCharged = () => chargesTold(pack) >= CHARGED_EACH * (kill + 1)
    await until(haveCharged, PATIENCE_MS, 'charges before the next death')
    await delay(random() * 500)
    // Now and then it is a sweeper that dies.
    const group = kill % 10 === 9 ? sweepers : living
    const at = Math.floor(random() * group.length)
    await group[at]?.kill()
    if (kill % 5 === 0) {
      assert.deepEqual(await verifyLedger(pool), [])
      samples += 1
    }
    group[at] = group === sweepers ? await pack.start({ sweeps: true }) : await startCaller(pack, kill)
  }
  return samples
}

function chargesTold(pack: Pack): number {
  const told = pack.all.flatMap((mortal) => [...mortal.told().fates.values()])
  return told.filter(({ charged }) => charged !== null && charged > 0n).length
}

async function orphansFoundAfterMs({ pool, pack }: World): Promise<number[]> {
  const killedAtMs = new Map(pack.all.map((mortal) => [mortal.ownerId, mortal.killedAtMs()]))
  const orphans = await openCalls(pool)
  assert.ok(orphans.length > KILLS, `only ${orphans.length} calls were open when their processes died`)
  return orphans.map(({ id, owner_id, unsettled_at_ms }) => {
    const deathMs = killedAtMs.get(owner_id)
    assert.ok(deathMs !== undefined && unsettled_at_ms !== null, `${id} is nobody's orphan`)
    assert.ok(unsettled_at_ms > deathMs, `${id} was taken from a process that lived`)
    return unsettled_at_ms - deathMs
  })
}

/** Slots of the dead are free, all of them; their idempotency keys are not. */
async function claimsOfTheDead({ pool, pack, calls, parties }: World) {
  const { rows } = await pool.query<{ scope: string; open: number }>(
    `select scope, count(*)::integer as open from claims join holds on holds.id = call_id group by scope
     union all select 'concurrency', count(*) from holds where at_once having count(*) > 0`,
  )
  assert.deepEqual(
    rows.map(({ scope }) => scope),
    ['idempotency'],
    'the dead keep their keys and nothing else',
  )
  for (const party of parties) {
    const all = Array.from({ length: SLOT.limit }, () => callOf(party, { hold: 1n, claims: [SLOT] }))
    const outcomes = await Promise.all(all.map(async (call) => (await calls.begin(call)).outcome))
    assert.deepEqual(outcomes, Array(SLOT.limit).fill('begun'))
    await Promise.all(all.map((call) => calls.end(voidOf(call))))
  }
  const keys = (await orphanFates({ pool, pack })).filter(({ scope }) => scope === 'idempotency')
  for (const fate of keys) {
    const again = await calls.begin(callOf(fate, { hold: 1n, claims: [keyOf(fate.id)] }))
    assert.deepEqual([again.outcome, 'holder' in again && again.holder], ['claim_taken', fate.id])
  }
  return { keys_kept: keys.length, slots_free: ACCOUNTS * SLOT.limit }
}

/** An operator charges every second orphan and voids the others: then nothing is held, and all is accounted for. */
async function resolveAll({ pool, pack, calls }: World) {
  const before = await sumOfAccounts(pool, 'charged')
  const orphans = (await orphanFates({ pool, pack })).map((fate, at) => ({ fate, isCharged: at % 2 === 0 }))
  const charges = orphans.filter(({ isCharged }) => isCharged).length
  for (const { fate, isCharged } of orphans) {
    const resolution = await resolveCall(pool, fate.id, isCharged ? nanos(CHARGED) : null)
    assert.deepEqual(resolution, {
      outcome: isCharged ? 'posted' : 'voided',
      charged: isCharged ? CHARGED : 0n,
      overrun: 0n,
    })
  }
  assert.equal(await sumOfAccounts(pool, 'held'), 0n)
  assert.equal(await sumOfAccounts(pool, 'charged'), before + BigInt(charges) * CHARGED)
  assert.deepEqual(await verifyLedger(pool), [])

  for (const { fate, isCharged } of orphans) {
    if (fate.scope !== 'idempotency') continue
    const { outcome } = await calls.begin(callOf(fate, { hold: 1n, claims: [keyOf(fate.id)] }))
    assert.equal(outcome, isCharged ? 'claim_taken' : 'begun', 'a key outlives a charged call alone')
  }
  return { resolved_by_charge: charges, resolved_by_void: orphans.length - charges }
}

async function orphanFates({ pool, pack }: Pick<World, 'pool' | 'pack'>) {
  const fates = new Map(pack.all.flatMap((mortal) => [...mortal.told().fates]))
  return (await openCalls(pool)).map(({ id }) => {
    const fate = fates.get(id)
    assert.ok(fate, `nobody knows of ${id}`)
    return fate
  })
}

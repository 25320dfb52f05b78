import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { judge } from '../../harness/figures.ts'
import { count, recordProof } from '../../harness/proof.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { resolveCall, resolveOverdue } from '../../server/src/calls/orphans.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { CHARGED, HELD } from './mortal.ts'
import type { Mortal } from './mortal-pack.ts'
import { openCalls, reckon } from './mortal-reckoning.ts'
import { FOUND_WITHIN_MS, LEASES, Leftovers, startWorld, sumOfAccounts } from './mortal-world.ts'
import type { pg } from './world.ts'

const PROOF = 'ledger-death-paused'
const PAUSED_MS = count({ full: 30_000, reduced: 4_500 })
const EACH = count({ full: 100, reduced: 15 })
const CALLERS = 16
const BY_OPERATOR = 7n
const UNSETTLED_SECONDS = 60

const leftovers = new Leftovers()
afterEach(leftovers.putAway)

type Ended = {
  readonly outcome: string
  readonly charged: bigint
  readonly overrun: bigint
  readonly late: bigint | null
}

/** How the ledger has calls: their charge, and the correction of a settlement that came after a void. */
async function endedAs(pool: pg.Pool, ids: readonly Id[]): Promise<readonly Ended[]> {
  const { rows } = await pool.query<Ended>(
    `select c.outcome, c.amount as charged, c.overrun, e.overrun as late
     from unnest($1::uuid[]) one (id) join charges c on c.id = one.id
     left join entries e on e.corrects = c.id and e.kind = 'late_settlement'`,
    [ids],
  )
  return rows
}

/** Makes calls that are unsettled look as if they had been for long. */
async function makeOverdue(pool: pg.Pool, ids: readonly Id[]): Promise<void> {
  const { rowCount } = await pool.query(
    'update holds set unsettled_at = unsettled_at - make_interval(secs => $2) where id = any ($1)',
    [ids, 2 * UNSETTLED_SECONDS],
  )
  assert.equal(rowCount, ids.length)
}

const toldOf = (mortal: Mortal, ids: readonly Id[]) =>
  ids.map((id) => {
    const { state, charged } = mortal.told().fates.get(id) ?? {}
    return { state, charged }
  })

describe('a process that is paused for longer than its lease', () => {
  it(`(${PAUSED_MS} ms): what was resolved meanwhile stays so, and what is still held posts when it comes back`, async () => {
    const world = await startWorld(leftovers)
    const { pool, pack } = world
    await pack.start({ sweeps: true })
    const mortal = await pack.start({ callers: CALLERS, heldCalls: 4 * EACH })
    const held = [...mortal.told().fates.keys()].slice(0, 4 * EACH)
    const [voided, charged, overdue, left] = [0, 1, 2, 3].map((part) => held.slice(part * EACH, (part + 1) * EACH))
    assert.ok(voided && charged && overdue && left)
    const areAtWork = async () => (await openCalls(pool)).length > held.length
    await until(areAtWork, PATIENCE_MS, 'callers in the middle of their calls')

    const pausedAtMs = Date.now()
    mortal.child.pause()
    const areFound = async () => (await openCalls(pool)).every(({ unsettled_at_ms }) => unsettled_at_ms !== null)
    const foundAfterMs = await until(areFound, PATIENCE_MS, 'the discovery of the calls of a paused process')
    const orphans = await openCalls(pool)
    assert.ok(orphans.length > held.length, 'callers were in the middle of their calls, too')
    assert.equal(await sumOfAccounts(pool, 'held'), BigInt(orphans.length) * HELD)

    for (const id of voided) assert.equal((await resolveCall(pool, id, null))?.outcome, 'voided')
    for (const id of charged) assert.equal((await resolveCall(pool, id, nanos(BY_OPERATOR)))?.charged, BY_OPERATOR)
    await makeOverdue(pool, overdue)
    assert.equal(await resolveOverdue({ pool, log: silentLog }, UNSETTLED_SECONDS), EACH)
    assert.equal(await sumOfAccounts(pool, 'held'), BigInt(orphans.length - 3 * EACH) * HELD)
    assert.deepEqual(await verifyLedger(pool), [])

    await delay(PAUSED_MS - (Date.now() - pausedAtMs))
    const resumedAtMs = Date.now()
    mortal.child.resume()
    mortal.child.signal('SIGUSR2')
    await until(() => mortal.told().lastChargedAtMs > resumedAtMs, PATIENCE_MS, 'its next charge')
    const areTold = () => toldOf(mortal, held).every(({ state }) => state === 'ended')
    await until(areTold, PATIENCE_MS, 'the answers to all late settlements')
    await until(() => mortal.told().lateRenewals >= 1, PATIENCE_MS, 'its late renewal')
    await mortal.stop()

    const all = <T>(value: T) => Array<T>(EACH).fill(value)
    assert.deepEqual(await endedAs(pool, left), all({ outcome: 'posted', charged: CHARGED, overrun: 0n, late: null }))
    assert.deepEqual(await endedAs(pool, voided), all({ outcome: 'voided', charged: 0n, overrun: 0n, late: CHARGED }))
    assert.deepEqual(
      await endedAs(pool, charged),
      all({ outcome: 'posted', charged: BY_OPERATOR, overrun: 0n, late: null }),
    )
    // The bound was the loss until the truth was known; with the correction it is what was used.
    assert.deepEqual(
      await endedAs(pool, overdue),
      all({ outcome: 'voided', charged: 0n, overrun: HELD, late: CHARGED - HELD }),
    )
    assert.deepEqual(toldOf(mortal, left), all({ state: 'ended', charged: CHARGED }))
    assert.deepEqual(toldOf(mortal, charged), all({ state: 'ended', charged: BY_OPERATOR }))
    assert.deepEqual(
      toldOf(mortal, [...voided, ...overdue]),
      [...all(0), ...all(0)].map(() => ({ state: 'ended', charged: 0n })),
    )

    const reckoning = await reckon(pool, pack.all)
    assert.deepEqual(reckoning.disagreements, [])
    assert.equal(reckoning.orphans, 0)
    judge(PROOF, 'from a pause to the mark of its calls', { unit: 'ms', atMost: FOUND_WITHIN_MS }, [foundAfterMs])
    recordProof(PROOF, 'paused', {
      paused_ms: PAUSED_MS,
      ...LEASES,
      orphans: orphans.length,
      voided_by_operator: { calls: EACH, became_overrun: EACH },
      charged_by_operator: { calls: EACH, charged_again: 0 },
      voided_by_deadline: { calls: EACH, corrected: EACH },
      still_held: { calls: EACH, posted: EACH },
      calls_of_its_callers_meanwhile: orphans.length - held.length,
      told_ended: reckoning.toldEnded,
      told_charged: reckoning.toldCharged,
      told_faults: reckoning.faults,
    })
  })
})

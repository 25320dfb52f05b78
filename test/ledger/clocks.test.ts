import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { createDatabaseTime } from '../../server/src/calls/ownership.ts'
import { type Clock, skewedClock, systemClock } from '../../server/src/kernel/clock.ts'
import { createIds, type Id, idTimeMs } from '../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { createSweeper, type OrphanWorld, openOrphanWorld } from './mortal-orphans.ts'
import { composeProcess, type LedgerProcess } from './mortal-process.ts'
import { callOf, makeParty, postOf } from './session.ts'
import { BOOKED_HOURS } from './usage-rows.ts'
import { makeAllowance } from './world.ts'

/** Leases, ids, periods, partitions and hours of usage go by PostgreSQL's clock, whatever that of a process says. */
const HOUR_MS = 3_600_000
/** Far less than any error that is planted here, and more than a busy machine makes. */
const TOLERANCE_MS = 60_000
const LEASES = { renewEveryMs: 200, leaseSeconds: 600, sweepEveryMs: 100, graceSeconds: 0 }

type SteppingClock = Clock & { readonly step: (byMs: number) => void }

/** The clock of a machine that somebody sets while the process runs. */
function createSteppingClock(): SteppingClock {
  let offsetMs = 0
  return {
    ...systemClock,
    nowMs: () => systemClock.nowMs() + offsetMs,
    step: (byMs) => {
      offsetMs += byMs
    },
  }
}

async function inProcess(
  clock: Clock,
  work: (world: OrphanWorld, process: LedgerProcess, bornAfterMs: number) => Promise<void>,
  leases = LEASES,
): Promise<void> {
  const world = await openOrphanWorld()
  const process = composeProcess({ url: world.url, leases, clock })
  try {
    const bornAfterMs = await databaseNowMs(world)
    await process.start()
    await work(world, process, bornAfterMs)
  } finally {
    await process.stop()
    await world.close()
  }
}

async function databaseNowMs({ pool }: OrphanWorld): Promise<number> {
  const { rows } = await pool.query<{ now: number }>(
    'select extract(epoch from clock_timestamp())::float8 * 1000 as now',
  )
  return rows[0]?.now ?? Number.NaN
}

/** Where a call that is begun and ended now leaves its traces. */
async function tracesOf(world: OrphanWorld, process: LedgerProcess) {
  const { pool } = world
  const party = await makeParty(pool, 1_000n)
  const allowances = [
    await makeAllowance(pool, party.accountId, 'day', 100n),
    await makeAllowance(pool, party.accountId, 'month', 100n),
  ]
  const beforeMs = await databaseNowMs(world)
  const call = callOf(party, { id: process.ids.next(), hold: 50n, allowances })
  assert.equal((await process.calls.begin(call)).outcome, 'begun')
  assert.equal((await process.calls.end(postOf(call, 20n))).charged, 20n)
  const afterMs = await databaseNowMs(world)
  const { rows } = await pool.query<{ partition: string; begun: number; ended: number }>(
    `select tableoid::regclass::text as partition, extract(epoch from begun_at)::float8 * 1000 as begun,
       extract(epoch from ended_at)::float8 * 1000 as ended from charges where id = $1`,
    [call.id],
  )
  const hours = await pool.query<{ at: number }>(
    `select extract(epoch from hour)::float8 * 1000 as at from ${BOOKED_HOURS} booked where credential_id = $1`,
    [party.credentialId],
  )
  const periods = await pool.query<{ at: number }>(
    'select extract(epoch from starts_at)::float8 * 1000 as at from allowance_periods where allowance_id = any ($1) and charged = 20 order by starts_at',
    [allowances],
  )
  return {
    beforeMs,
    afterMs,
    id: call.id,
    charge: rows[0],
    hours: hours.rows.map(({ at }) => at),
    periods: periods.rows.map(({ at }) => at),
  }
}

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)
const startOfDay = (ms: number) => Date.parse(`${dayOf(ms)}T00:00:00Z`)
const startOfMonth = (ms: number) => Date.parse(`${dayOf(ms).slice(0, 7)}-01T00:00:00Z`)
const startOfHour = (ms: number) => ms - (ms % HOUR_MS)

/** A call is at PostgreSQL's time in every respect. The turn of an hour or a day may come while it runs. */
async function assertInTime(world: OrphanWorld, process: LedgerProcess): Promise<void> {
  const { beforeMs, afterMs, id, charge, hours, periods } = await tracesOf(world, process)
  const oneOf = (actual: number | undefined, moment: (ms: number) => number, what: string) =>
    assert.ok(actual === moment(beforeMs) || actual === moment(afterMs), `${what}: ${new Date(actual ?? 0)}`)
  assert.ok(
    idTimeMs(id) > beforeMs - TOLERANCE_MS && idTimeMs(id) < afterMs + TOLERANCE_MS,
    `an id of ${new Date(idTimeMs(id))} at ${new Date(beforeMs)}`,
  )
  assert.equal(charge?.partition, `charges_${dayOf(idTimeMs(id)).replaceAll('-', '')}`)
  for (const at of [charge?.begun, charge?.ended])
    assert.ok(at !== undefined && at >= beforeMs && at <= afterMs, `${new Date(at ?? 0)}`)
  assert.equal(hours.length, 1)
  oneOf(hours[0], startOfHour, 'the hour of usage')
  const [first, second] = [...periods].toSorted((a, b) => a - b)
  oneOf(first, startOfMonth, 'the month of the allowance')
  oneOf(second ?? first, startOfDay, 'the day of the allowance')
  assert.equal(periods.length, 2)
  assert.deepEqual(await verifyLedger(world.pool), [])
}

async function leaseUntilMs({ pool }: OrphanWorld, ownerId: Id): Promise<number> {
  const { rows } = await pool.query<{ until: number }>(
    'select extract(epoch from lease_until)::float8 * 1000 as until from owners where id = $1',
    [ownerId],
  )
  return rows[0]?.until ?? Number.NaN
}

describe('a process whose clock is wrong', () => {
  for (const hours of [1, -1, 26, -26, 24 * 400])
    it(`by ${hours} h makes ids, periods and usage of the right time`, async () => {
      await inProcess(skewedClock(systemClock, hours * HOUR_MS), assertInTime)
    })

  for (const hours of [1, -1])
    it(`by ${hours} h has a lease that ends neither early nor late`, async () => {
      // It does not renew in this test's time, as if it had died.
      const leases = { ...LEASES, renewEveryMs: 10 * TOLERANCE_MS }
      const leaseMs = leases.leaseSeconds * 1_000
      const clock = skewedClock(systemClock, hours * HOUR_MS)
      const run = async (world: OrphanWorld, process: LedgerProcess, bornAfterMs: number) => {
        const untilMs = await leaseUntilMs(world, process.ownerId)
        assert.ok(untilMs >= bornAfterMs + leaseMs && untilMs <= (await databaseNowMs(world)) + leaseMs)
        const call = callOf(await makeParty(world.pool, 100n), { id: process.ids.next() })
        await process.calls.begin(call)
        const sweeper = createSweeper(world.url, await world.newOwner('lives'))
        try {
          assert.deepEqual(await sweeper.sweep(), [])
          await world.pool.query(
            'update owners set lease_until = lease_until - make_interval(secs => $2) where id = $1',
            [process.ownerId, leases.leaseSeconds],
          )
          assert.deepEqual(await sweeper.sweep(), [call.id])
        } finally {
          await sweeper.close()
        }
      }
      await inProcess(clock, run, leases)
    })
})

describe('a process whose clock is set while it runs', () => {
  for (const hours of [1, -1])
    it(`by ${hours} h notices nothing: ids, periods and usage stay right, and its lease is renewed in time`, async () => {
      const clock = createSteppingClock()
      await inProcess(clock, async (world, process) => {
        await assertInTime(world, process)
        const beforeMs = idTimeMs(process.ids.next())
        clock.step(hours * HOUR_MS)
        const afterMs = idTimeMs(process.ids.next())
        assert.ok(afterMs >= beforeMs && afterMs - beforeMs < TOLERANCE_MS)
        await assertInTime(world, process)
        for (let renewal = 0; renewal < 4; renewal += 1) {
          const untilMs = await leaseUntilMs(world, process.ownerId)
          const isRenewed = async () => (await leaseUntilMs(world, process.ownerId)) > untilMs
          await until(isRenewed, PATIENCE_MS, 'the next renewal')
        }
        const leaseMs = LEASES.leaseSeconds * 1_000
        assert.ok((await leaseUntilMs(world, process.ownerId)) <= (await databaseNowMs(world)) + leaseMs)
        clock.step(-2 * hours * HOUR_MS)
        await assertInTime(world, process)
      })
    })
})

describe("what a process knows of PostgreSQL's clock", () => {
  const THERE_MS = Date.parse('2026-05-05T12:00:00Z')

  function createTime() {
    let monotonicMs = 1_000
    const time = createDatabaseTime({ ...systemClock, monotonicMs: () => monotonicMs })
    const pass = (ms: number) => {
      monotonicMs += ms
    }
    return { time, pass, now: () => monotonicMs }
  }

  it('is nothing before the first answer: no id is made by a guess', () => {
    const { time } = createTime()
    assert.throws(() => createIds({ clock: time }).next(), /not known/)
  })

  it('goes on by a clock that nobody sets', () => {
    const { time, pass, now } = createTime()
    time.learn(THERE_MS, now() - 10, now())
    pass(5_000)
    assert.equal(time.nowMs(), THERE_MS + 5 + 5_000)
  })

  it('is learnt anew with every answer, since a machine that sleeps counts no time', () => {
    const { time, pass, now } = createTime()
    time.learn(THERE_MS, now(), now())
    pass(3_000)
    time.learn(THERE_MS + HOUR_MS, now(), now())
    assert.equal(time.nowMs(), THERE_MS + HOUR_MS)
  })

  it('is not made worse by an answer that was seen long after it was given', () => {
    const { time, pass, now } = createTime()
    time.learn(THERE_MS, now(), now())
    const askedAtMs = now()
    // Stopped while it waited: the answer was given at once, and is read half a minute later.
    pass(30_000)
    time.learn(THERE_MS, askedAtMs, now())
    assert.equal(time.nowMs(), THERE_MS + 30_000)
  })

  it('is renewed from PostgreSQL while the process runs', async () => {
    let asleepMs = 0
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() - asleepMs }
    await inProcess(clock, async (world, process) => {
      asleepMs = HOUR_MS
      const isRight = async () => Math.abs(process.time.nowMs() - (await databaseNowMs(world))) < TOLERANCE_MS
      assert.equal(await isRight(), false)
      await until(isRight, PATIENCE_MS, 'the correction of its clock')
    })
  })
})

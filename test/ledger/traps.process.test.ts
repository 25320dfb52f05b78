import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { count, recordProof } from '../../harness/proof.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { resolveCall, resolveOverdue, sweepOrphans } from '../../server/src/calls/orphans.ts'
import { forgetOwners, pruneClaims } from '../../server/src/calls/upkeep.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { creditAccount, expirePromotions } from '../../server/src/ledger/credit.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { CHARGED, HELD, keyOf } from './mortal.ts'
import { type OrphanWorld, openOrphanWorld } from './mortal-orphans.ts'
import { type Pack, startPack } from './mortal-pack.ts'
import { composeProcess } from './mortal-process.ts'
import { callOf, makeParty, moneyOf, openSession, type Party, periodsOf, postOf } from './session.ts'
import { ids, makeAllowance, type pg } from './world.ts'

/** What went wrong in other gateways when a process, a clean-up or a commit failed. */
const PROOF = 'ledger-traps'
/** Few enough to be made up for within the deadline, since the pauses between tries grow. */
const FAILURES = 5
const LEASES = { renewEveryMs: 200, leaseSeconds: 2, sweepEveryMs: 100, graceSeconds: 0 }

function itInWorld(title: string, work: (world: OrphanWorld) => Promise<void>): void {
  it(title, async () => {
    const world = await openOrphanWorld()
    try {
      await work(world)
      assert.deepEqual(await verifyLedger(world.pool), [])
    } finally {
      await world.close()
    }
  })
}

async function withPack(world: OrphanWorld, parties: readonly Party[], work: (pack: Pack) => Promise<void>) {
  const pack = startPack({ url: world.url, parties, leases: LEASES })
  try {
    await work(pack)
  } finally {
    await pack.close()
  }
}

/** Makes PostgreSQL fail the first so many statements that come to a certain point. */
async function failFirst(pool: pg.Pool, times: number, how: string, trigger: string): Promise<void> {
  await pool.query('create sequence tries')
  await pool.query(`create function fail_first() returns trigger language plpgsql as $$
    begin
      if nextval('tries') <= ${times} then ${how}; end if;
      return coalesce(new, old);
    end $$`)
  await pool.query(`${trigger} for each row execute function fail_first()`)
}

describe('what went wrong in other gateways', () => {
  itInWorld('trap: reservations leak when a request dies, phantom refusals after', async (world) => {
    const { pool, calls } = world
    const CALLS = 20
    const party = await makeParty(pool, BigInt(CALLS) * HELD)
    await withPack(world, [party], async (pack) => {
      await pack.start({ sweeps: true })
      const mortal = await pack.start({ heldCalls: CALLS })
      await mortal.kill()
      assert.equal((await calls.begin(callOf(party))).outcome, 'money_spent', 'nobody knows yet what was used')
      await until(async () => (await world.unsettled()).length === CALLS, PATIENCE_MS, 'the discovery of its calls')
    })
    const [known, ...unknown] = await world.unsettled()
    assert.ok(known !== undefined)
    await resolveCall(pool, known, nanos(CHARGED))
    assert.equal(await resolveOverdue({ pool, log: silentLog }, -1), unknown.length)

    const money = { credited: BigInt(CALLS) * HELD, debt: 0n, promo: 0n }
    assert.deepEqual(await moneyOf(pool, party), { ...money, charged: CHARGED, held: 0n })
    const all = money.credited - CHARGED
    const again = callOf(party, { hold: all, claims: unknown.slice(0, 10).map((id) => keyOf(id)) })
    assert.equal((await calls.begin(again)).outcome, 'begun', 'all that was not used is free, keys included')
    assert.equal((await calls.begin(callOf(party))).outcome, 'money_spent')
  })

  itInWorld('trap: reserved and actual both counted when cleanup fails', async ({ pool, calls }) => {
    const party = await makeParty(pool, 100n)
    const call = callOf(party, { hold: 60n, claims: [keyOf('one')] })
    await calls.begin(call)
    await failFirst(
      pool,
      FAILURES,
      "raise exception using errcode = '53100'",
      'create trigger fail before delete on holds',
    )
    const seen = new Set<string>()
    let isEnded = false
    const ended = calls.end(postOf(call, 40n)).finally(() => {
      isEnded = true
    })
    while (!isEnded) {
      const { charged, held } = await moneyOf(pool, party)
      seen.add(`${charged} charged, ${held} held`)
    }
    assert.equal((await ended).charged, 40n)
    assert.ok(seen.delete('0 charged, 60 held'), 'the clean-up failed for a while')
    seen.delete('40 charged, 0 held')
    assert.deepEqual([...seen], [])
    assert.deepEqual(await moneyOf(pool, party), { credited: 100n, debt: 0n, charged: 40n, held: 0n, promo: 0n })
  })

  itInWorld('trap: large balances skip the hold', async ({ pool, calls }) => {
    const LARGEST = 2n ** 63n - 1n
    const party = await makeParty(pool, LARGEST)
    const small = callOf(party, { hold: 5n })
    assert.equal((await calls.begin(small)).outcome, 'begun')
    assert.equal((await moneyOf(pool, party)).held, 5n, 'however much there is, it is held')

    const half = LARGEST / 2n
    const racers = Array.from({ length: 30 }, () => callOf(party, { hold: half }))
    const outcomes = await Promise.all(racers.map(async (call) => (await calls.begin(call)).outcome))
    assert.deepEqual(outcomes.toSorted(), ['begun', ...Array(29).fill('money_spent')])
    const rest = LARGEST - half - 5n
    assert.equal((await calls.begin(callOf(party, { hold: rest + 1n }))).outcome, 'money_spent')
    const last = callOf(party, { hold: rest })
    assert.equal((await calls.begin(last)).outcome, 'begun')
    assert.equal((await calls.begin(callOf(party, { hold: 1n }))).outcome, 'money_spent')
    assert.equal((await calls.end(postOf(last, LARGEST))).charged, rest, 'a charge never exceeds its hold')
    assert.deepEqual(await moneyOf(pool, party), {
      credited: LARGEST,
      debt: 0n,
      charged: rest,
      held: half + 5n,
      promo: 0n,
    })
  })

  const ENDINGS = count({ full: 3_000, reduced: 300 })
  for (const [how, sql] of [
    ['', "raise exception using errcode = '40001'"],
    [' (and the connection is lost with it)', 'perform pg_terminate_backend(pg_backend_pid())'],
  ])
    itInWorld(
      `trap: the queue is drained before the database commit, a failed commit loses the spend${how}`,
      async (world) => {
        const { pool } = world
        const parties = await Promise.all(Array.from({ length: 5 }, () => makeParty(pool, 10n ** 9n)))
        const process = composeProcess({ url: world.url, leases: LEASES, batchLimit: 50 })
        await process.start()
        const { calls } = process
        const all = Array.from({ length: ENDINGS }, (_, at) =>
          callOf(parties[at % parties.length] as Party, { hold: HELD }),
        )
        for (const { outcome } of await Promise.all(all.map(calls.begin))) assert.equal(outcome, 'begun')
        // Deferred: the statement succeeds, and its commit fails.
        await failFirst(
          pool,
          FAILURES,
          String(sql),
          'create constraint trigger fail after update on accounts deferrable initially deferred',
        )
        const told = await Promise.all(all.map((call) => calls.end(postOf(call, CHARGED))))
        assert.deepEqual(
          new Set(told.map(({ outcome, charged }) => `${outcome} ${charged}`)),
          new Set([`posted ${CHARGED}`]),
        )
        await process.stop()
        const { rows } = await pool.query<{ tries: number }>('select last_value::integer as tries from tries')
        assert.ok((rows[0]?.tries ?? 0) > FAILURES, 'commits failed')
        for (const party of parties) {
          const { charged, held } = await moneyOf(pool, party)
          assert.deepEqual({ charged, held }, { charged: (BigInt(ENDINGS) / 5n) * CHARGED, held: 0n })
        }
      },
    )

  itInWorld('trap: every graceful shutdown drops queued spend', async (world) => {
    const { pool } = world
    const QUEUED = count({ full: 6_000, reduced: 1_500 })
    const parties = await Promise.all(Array.from({ length: 5 }, () => makeParty(pool, 10n ** 9n)))
    await withPack(world, parties, async (pack) => {
      const mortal = await pack.start({ heldCalls: QUEUED, batchLimit: 8, endDeadlineMs: PATIENCE_MS })
      const fatesNow = () => [...mortal.told().fates.values()]
      assert.deepEqual(new Set(fatesNow().map(({ state }) => state)), new Set(['begun']))
      const locker = await openSession(world.url)
      await locker.query('begin')
      await locker.query('select from accounts for no key update')
      mortal.child.signal('SIGUSR2')
      await until(() => fatesNow().every(({ state }) => state === 'ending'), PATIENCE_MS, 'a queue of endings')
      const stopped = mortal.stop()
      await locker.query('rollback')
      await locker.close()
      await stopped
      const fates = fatesNow()
      assert.equal(fates.length, QUEUED)
      assert.deepEqual(new Set(fates.map(({ state }) => state)), new Set(['ended']))

      const { rows } = await pool.query<{ id: string; amount: bigint }>('select id, amount from charges')
      const booked = new Map(rows.map(({ id, amount }) => [id, amount]))
      assert.equal(booked.size, fates.length)
      for (const { id, charged } of fates) assert.equal(booked.get(id), charged)
      assert.equal((await pool.query('select from holds')).rowCount, 0)
      const lease = await pool.query('select from owners where id = $1 and lease_until <= clock_timestamp()', [
        mortal.ownerId,
      ])
      assert.equal(lease.rowCount, 1, 'it ended its lease')
      recordProof(PROOF, 'stopped with endings in the queue', { queued: QUEUED, written: booked.size, lost: 0 })
    })
  })

  itInWorld("trap: two replicas' reset jobs erase each other's spend", async (world) => {
    const { pool } = world
    const party = await makeParty(pool, 10n ** 9n)
    const daily = await makeAllowance(pool, party.accountId, 'day', 10n ** 9n)
    const promoted = await makeParty(pool, 500n)
    const grants = 40
    for (let grant = 0; grant < grants; grant += 1) await promote(pool, promoted, new Date(Date.now() + 1_000))

    await withPack(world, [party], async (pack) => {
      const mortals = await Promise.all([1, 2].map(() => pack.start({ callers: 15, allowances: [daily] })))
      const sweeper = await world.newOwner('lives')
      const DAYS = count({ full: 20, reduced: 3 })
      for (let day = 0; day < DAYS; day += 1) {
        const jobs = Array.from({ length: 20 }, () => everyJob(pool, sweeper))
        await untilCharged(pool, daily, day)
        await Promise.all([turnOfTheDay(pool, party), ...jobs])
        assert.deepEqual(await verifyLedger(pool), [])
      }
      await untilCharged(pool, daily, DAYS)
      await Promise.all(mortals.map((mortal) => mortal.stop()))
      await untilExpired(pool, promoted)
      await Promise.all([expirePromotions(pool), expirePromotions(pool)])

      const told = mortals.flatMap((mortal) => [...mortal.told().fates.values()])
      const spent = told.reduce((all, { charged }) => all + (charged ?? 0n), 0n)
      const periods = await periodsOf(pool, daily)
      assert.equal(periods.length, DAYS + 1)
      assert.ok(periods.every(({ charged, held }) => charged > 0n && held === 0n))
      assert.equal(
        periods.reduce((all, { charged }) => all + charged, 0n),
        spent,
      )
      assert.equal((await moneyOf(pool, party)).charged, spent)
      assert.deepEqual(await moneyOf(pool, promoted), { credited: 500n, debt: 0n, charged: 0n, held: 0n, promo: 0n })
      recordProof(PROOF, 'two processes over the turn of days', { days: DAYS, calls: told.length, lost: 0 })
    })
  })
})

/** Waits until something is charged in the period after so many. */
async function untilCharged(pool: pg.Pool, allowanceId: string, turns: number): Promise<void> {
  const isCharged = async () => ((await periodsOf(pool, allowanceId))[turns]?.charged ?? 0n) > 0n
  await until(isCharged, PATIENCE_MS, `the first charge of day ${turns}`)
}

async function untilExpired(pool: pg.Pool, { accountId }: Party): Promise<void> {
  const running = 'select from promotions where account_id = $1 and expires_at > clock_timestamp()'
  const areExpired = async () => (await pool.query(running, [accountId])).rowCount === 0
  await until(areExpired, PATIENCE_MS, 'the end of all grants')
}

const promote = (pool: pg.Pool, { accountId }: Party, expiresAt: Date) =>
  creditAccount(pool, { entryId: ids.next(), accountId, kind: 'promotion', amount: nanos(7n), expiresAt })

/** All that processes do now and then, at once. */
async function everyJob(pool: pg.Pool, ownerId: string): Promise<void> {
  await Promise.all([
    sweepOrphans({ pool, log: silentLog, ownerId, graceSeconds: 0 }),
    resolveOverdue({ pool, log: silentLog }, 3_600),
    expirePromotions(pool),
    pruneClaims(pool),
    forgetOwners(pool, 3_600),
    pool.query('select make_charge_partitions()'),
  ])
}

/** Midnight, for one account: all that it has done until now was done a day earlier. */
async function turnOfTheDay(pool: pg.Pool, { accountId }: Party): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query('select from accounts where id = $1 for no key update', [accountId])
    // Charges are immutable otherwise.
    await client.query('set local session_replication_role = replica')
    for (const sql of [
      "update charges set begun_at = begun_at - interval '1 day' where account_id = $1",
      "update holds set begun_at = begun_at - interval '1 day' where account_id = $1",
      `update credentials set budget_starts_at = budget_starts_at - interval '1 day', budget_ends_at = budget_ends_at - interval '1 day',
         all_started_at = all_started_at - interval '1 day' where account_id = $1`,
    ])
      await client.query(sql, [accountId])
    const { rows } = await client.query<{ starts_at: string }>(
      'select starts_at::text from kept_periods order by starts_at',
    )
    for (const { starts_at } of rows)
      await client.query(
        "update kept_periods set starts_at = starts_at - interval '1 day' where starts_at = $1::timestamptz",
        [starts_at],
      )
    await client.query('commit')
  } finally {
    client.release()
  }
}

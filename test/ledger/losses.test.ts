import assert from 'node:assert/strict'
import { after, beforeEach, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Ending } from '../../server/src/calls/call.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import { createLossWatch } from '../../server/src/calls/loss-ceilings.ts'
import { ceilingsOf } from '../../server/src/calls/loss-sums.ts'
import { partsOfDay, pruneLosses, readDay, readLosses, releaseLosses } from '../../server/src/calls/losses.ts'
import { resolveOverdue } from '../../server/src/calls/orphans.ts'
import { type Clock, systemClock } from '../../server/src/kernel/clock.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { inTransaction } from '../../server/src/storage/transaction.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { callOf, makeParty, openSession, outcomesOf, type Party, postOf } from './session.ts'
import { connect, ids } from './world.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

const HOLD = 100n
let routes = 0
const newRoute = () => `model-${routes++}@slot:live`

async function begun(party: Party) {
  const call = callOf(party, { hold: HOLD })
  assert.deepEqual(await outcomesOf(session.begin(call)), ['begun'])
  return call
}

/** An ending with evidence for so much of a loss. */
function lossy(ending: Ending, route: string, lost: bigint, claim: bigint | null = ending.amount): Ending {
  return { ...ending, loss: { route, nanos: nanos(lost), claim: claim === null ? null : nanos(claim) } }
}

async function lossesAt(route: string) {
  const { rows } = await pool.query('select id, account_id, nanos, claim from losses where route = $1 order by id', [
    route,
  ])
  return rows
}

describe('END', () => {
  it('writes a loss with the call that it ends, and once however often it is sent', async () => {
    const [party, route] = [await makeParty(pool, 1_000n), newRoute()]
    const call = await begun(party)
    const ending = lossy(postOf(call, 130n), route, 30n)
    await session.end(ending)
    await session.end(ending)
    await session.end({ ...ending, forgiven: true })
    assert.deepEqual(await lossesAt(route), [{ id: call.id, account_id: party.accountId, nanos: 30n, claim: 130n }])
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })

  it('writes one for those of a batch that have some, and nothing for the others', async () => {
    const [one, other, route] = [await makeParty(pool, 1_000n), await makeParty(pool, 1_000n), newRoute()]
    const calls = [await begun(one), await begun(other), await begun(one), await begun(other)] as const
    await session.end(
      postOf(calls[0], 60n),
      lossy({ ...postOf(calls[1], 100n), forgiven: true }, route, 100n, null),
      voidOf(calls[2]),
      lossy(postOf(calls[3], 101n), route, 1n),
    )
    assert.deepEqual(await lossesAt(route), [
      { id: calls[1].id, account_id: other.accountId, nanos: 100n, claim: null },
      { id: calls[3].id, account_id: other.accountId, nanos: 1n, claim: 101n },
    ])
    assert.deepEqual(await verifyLedger(pool, [one.accountId, other.accountId]), [])
  })

  it('writes none that is not above 0, and none beyond what the call overran', async () => {
    const [party, route] = [await makeParty(pool, 1_000n), newRoute()]
    const within = await begun(party)
    await session.end(lossy(postOf(within, 100n), route, 50n))
    assert.deepEqual(await lossesAt(route), [])
    const beyond = await begun(party)
    await session.end(lossy(postOf(beyond, 110n), route, 50n))
    assert.deepEqual(
      (await lossesAt(route)).map((row) => row.nanos),
      [10n],
    )
  })

  it('counts of a call that could not be settled in time only what there was evidence for', async () => {
    const [party, route] = [await makeParty(pool, 1_000n), newRoute()]
    const call = await begun(party)
    const [settlement] = await session.end({ ...lossy(postOf(call, 130n), route, 30n), forgiven: true })
    assert.equal(settlement?.overrun, 130n)
    assert.deepEqual(
      (await lossesAt(route)).map((row) => row.nanos),
      [30n],
    )
  })

  it('writes none for what is presumed: forgiven calls, late ones, and calls that nobody resolved in a day', async () => {
    const party = await makeParty(pool, 1_000n)
    const before = (await pool.query('select from losses')).rowCount
    const [forgiven, late, overdue] = [await begun(party), await begun(party), await begun(party)]
    await session.end({ ...postOf(forgiven, 100n), forgiven: true })
    await session.end(voidOf(late))
    await session.end(lossy(postOf(late, 130n), newRoute(), 30n))
    await pool.query("update holds set owner_id = null, unsettled_at = now() - interval '25 hours' where id = $1", [
      overdue.id,
    ])
    const lost: bigint[] = []
    const told = (amount: bigint) => void lost.push(amount)
    assert.equal(await resolveOverdue({ pool, log: silentLog, lost: told }, 24 * 3_600), 1)
    assert.deepEqual(lost, [HOLD], 'which has a figure of its own')
    assert.equal((await pool.query('select from losses')).rowCount, before)
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })

  it('is found out by the ledger where a loss is more than what its call overran', async () => {
    const [party, route] = [await makeParty(pool, 1_000n), newRoute()]
    await session.end(lossy(postOf(await begun(party), 130n), route, 30n))
    await pool.query('update losses set nanos = 31 where route = $1', [route])
    const [violation] = await verifyLedger(pool, [party.accountId])
    assert.match(violation?.promise ?? '', /^a loss is of a call/)
    await pool.query('delete from losses where route = $1', [route])
  })
})

/** A process that looks when the test says so, with ceilings in nanos: 100 an hour for an account and 300 for a route. */
function createWatch(time: Pick<Clock, 'nowMs'> = systemClock) {
  const gauge: Record<string, number> = {}
  const errors: string[] = []
  const watch = createLossWatch({
    pool,
    ceilings: ceilingsOf({
      ...{ account_hour_usd: nanos(100n), account_day_usd: nanos(100n) },
      ...{ route_hour_usd: nanos(300n), route_day_usd: nanos(300n) },
    }),
    time,
    log: {
      info: () => {},
      error: (message, fields) => void errors.push(`${message} ${fields?.account_id ?? ''}`.trim()),
    },
    metrics: {
      lossCeilingsReached: {
        set({ scope, mode }, value) {
          gauge[`${mode} ${scope}`] = value
        },
      },
    },
  })
  const isRefused = ({ accountId }: { accountId: Id }, route: string) => watch.find(accountId, route) !== undefined
  return { ...watch, gauge, errors, isRefused }
}

async function lose(party: Party, route: string, lost: bigint): Promise<void> {
  await session.end(lossy(postOf(await begun(party), HOLD + lost), route, lost))
}

const release = (route: string, accountId?: Id) =>
  inTransaction(pool, (query) => releaseLosses(query, ids, { route, accountId, actor: 'a test' }))

describe('a process that looks', () => {
  beforeEach(() => pool.query('delete from losses'))

  it('refuses an account at its ceiling at that route alone, says so once, and lets it through when released', async () => {
    const [one, other, route, elsewhere] = [
      await makeParty(pool, 1_000n),
      await makeParty(pool, 1_000n),
      newRoute(),
      newRoute(),
    ]
    const watch = createWatch()
    await watch.look()
    await lose(one, route, 99n)
    await lose(other, route, 1n)
    await watch.look()
    assert.equal(watch.isRefused(one, route), false)
    await lose(one, route, 1n)
    await watch.look()
    await watch.look()
    assert.deepEqual(
      [watch.isRefused(one, route), watch.isRefused(other, route), watch.isRefused(one, elsewhere)],
      [true, false, false],
    )
    assert.deepEqual(watch.gauge, { 'live account': 1, 'live route': 0, 'test account': 0, 'test route': 0 })
    assert.deepEqual(watch.errors, [`loss ceiling reached: an account is refused at a route ${one.accountId}`])
    assert.deepEqual(await release(route, other.accountId), [other.accountId])
    await watch.look()
    assert.equal(watch.isRefused(one, route), true, 'another was released')
    assert.deepEqual(await release(route, one.accountId), [one.accountId])
    await watch.look()
    assert.equal(watch.isRefused(one, route), false)
    assert.deepEqual(await release(route, one.accountId), [], 'there is nothing to release any more')
    await lose(one, route, 100n)
    await watch.look()
    assert.equal(watch.isRefused(one, route), true, 'it begins anew')
    await release(route)
    await watch.look()
  })

  it('takes a route out when several have contributed, knows of it from its start, and gives it back to all', async () => {
    const route = newRoute()
    const parties = await Promise.all([1, 2, 3, 4].map(() => makeParty(pool, 1_000n)))
    const stranger = await makeParty(pool, 1_000n)
    const watch = createWatch()
    await watch.look()
    for (const party of parties.slice(0, 2)) await lose(party, route, 500n)
    await watch.look()
    assert.equal(watch.isRefused(stranger, route), false)
    for (const party of parties.slice(2)) await lose(party, route, 50n)
    const late = createWatch()
    for (const one of [watch, late]) {
      await one.look()
      assert.equal(one.isRefused(stranger, route), true)
      assert.equal(one.gauge['live route'], 1)
    }
    assert.equal((await release(route)).length, 4)
    for (const one of [watch, late]) {
      await one.look()
      assert.equal(one.isQuiet(), true)
    }
  })

  it('refuses in test mode too, and raises no alarm about it: whoever has a test key can ask the sandbox for a loss', async () => {
    const [party, route] = [await makeParty(pool, 1_000n), 'model@slot:test']
    await lose(party, route, 100n)
    const watch = createWatch()
    await watch.look()
    assert.equal(watch.isRefused(party, route), true)
    assert.deepEqual(watch.gauge, { 'live account': 0, 'live route': 0, 'test account': 1, 'test route': 0 })
    assert.deepEqual(watch.errors, [])
  })

  it('keeps what it knew while PostgreSQL can not be asked', async () => {
    const [party, route] = [await makeParty(pool, 1_000n), newRoute()]
    await lose(party, route, 100n)
    const watch = createWatch()
    await watch.look()
    await pool.query('alter table losses rename to losses_away')
    await assert.rejects(watch.look())
    await pool.query('alter table losses_away rename to losses')
    assert.equal(watch.isRefused(party, route), true)
    await release(route)
  })
})

/** A loss of a call that was judged so long ago, and is committed now. */
async function loseLate(party: Party, route: string, { lost, minutesAgo }: { lost: number; minutesAgo: number }) {
  await pool.query(
    `insert into losses (id, account_id, route, nanos, at)
     values ($1, $2, $3, $4, clock_timestamp() - make_interval(mins => $5))`,
    [ids.next(), party.accountId, route, lost, minutesAgo],
  )
}

/** What is older than some hours can't be read, as where there is too much of it. */
async function withoutTheOld(work: () => Promise<void>): Promise<void> {
  await pool.query('alter table losses rename to losses_all')
  await pool.query(`create view losses as select id, account_id, route, at, claim,
    case when at < now() - interval '3 hours' then nanos / 0 else nanos end as nanos from losses_all`)
  try {
    await work()
  } finally {
    await pool.query('drop view losses')
    await pool.query('alter table losses_all rename to losses')
  }
}

const MINUTE_MS = 60_000

describe('a process that looks at a long day', () => {
  beforeEach(() => pool.query('delete from losses'))

  it('knows what is lost now, though what was lost before can not be read again', async () => {
    const [party, other, route] = [await makeParty(pool, 1_000n), await makeParty(pool, 1_000n), newRoute()]
    await loseLate(other, route, { lost: 1, minutesAgo: 300 })
    let laterMs = 0
    const watch = createWatch({ nowMs: () => Date.now() + laterMs })
    await watch.look()
    await lose(party, route, 100n)
    // So much later that all was read again by now.
    laterMs = 11 * MINUTE_MS
    await withoutTheOld(() => watch.look().catch(() => {}))
    assert.equal(watch.isRefused(party, route), true)
  })

  it('hears within ten minutes of losses that are committed long after they were judged', async () => {
    const route = newRoute()
    let laterMs = 0
    const watch = createWatch({ nowMs: () => Date.now() + laterMs })
    await watch.look()
    const ages = [5, 59, 200, 1_300]
    const parties = await Promise.all(ages.map(() => makeParty(pool, 1_000n)))
    for (const [at, party] of parties.entries()) await loseLate(party, route, { lost: 100, minutesAgo: ages[at] ?? 0 })
    while (laterMs <= 10 * MINUTE_MS) {
      laterMs += 24_000
      await watch.look()
    }
    assert.deepEqual(
      parties.map((party) => watch.isRefused(party, route)),
      [true, true, true, true],
    )
  })

  it('keeps a bounded number of sums for an account, and loses nothing of them', async () => {
    const [party, route] = [await makeParty(pool, 1_000n), newRoute()]
    const minute = Math.floor(Date.now() / MINUTE_MS)
    await pool.query(
      `insert into losses (id, account_id, route, nanos, at)
       select gen_random_uuid(), $1, $2, 1, to_timestamp(($3::integer - ago) * 60) from generate_series(0, 1439) ago`,
      [party.accountId, route, minute],
    )
    const day = await readDay(pool, minute)
    assert.equal(
      day.reduce((sum, { nanos: lost }) => sum + lost, 0n),
      1_440n,
    )
    assert.ok(day.length <= partsOfDay(minute).hours.length + 120, `${day.length}`)
  })
})

describe('releases', () => {
  beforeEach(() => pool.query('delete from losses'))

  it('are heard of in whatever order they are committed', async () => {
    const [party, route, other] = [await makeParty(pool, 1_000n), newRoute(), newRoute()]
    await lose(party, route, 100n)
    await lose(party, other, 100n)
    const watch = createWatch()
    await inTransaction(pool, async (query) => {
      await releaseLosses(query, ids, { route, accountId: undefined, actor: 'a test' })
      await release(other)
      await watch.look()
      assert.deepEqual([watch.isRefused(party, route), watch.isRefused(party, other)], [true, false])
    })
    await watch.look()
    assert.equal(watch.isRefused(party, route), false)
  })
})

describe('old losses', () => {
  it('are deleted when they have been kept for long enough', async () => {
    const [party, route] = [await makeParty(pool, 1_000n), newRoute()]
    await lose(party, route, 1n)
    await lose(party, route, 2n)
    await pool.query("update losses set at = at - interval '31 days' where route = $1 and nanos = 1", [route])
    assert.equal(await pruneLosses(pool, 30), 1)
    assert.deepEqual(
      (await lossesAt(route)).map((row) => row.nanos),
      [2n],
    )
    const read = await readLosses(pool, systemClock.nowMs() - 3_600_000)
    assert.equal(read.find((one) => one.route === route)?.nanos, 2n)
  })
})

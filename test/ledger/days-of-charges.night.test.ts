import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { judge } from '../../harness/figures.ts'
import { count, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { createIds, type Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { createPartitions } from '../../server/src/ledger/partitions.ts'
import { dropOldCharges } from '../../server/src/ledger/retention.ts'
import { reverseCharge } from '../../server/src/ledger/reverse.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { callOf, makeParty, moneyOf, openSession, type Party, postOf } from './session.ts'
import { connect, ids, makeAllowance, pg } from './world.ts'

/** Days of charges are made and dropped while calls settle on several connections: none may wait for a second. */
const PROOF = 'days-of-charges'
const KEPT_DAYS = count({ full: 1_100, reduced: 60 })
const BULK = count({ full: 500_000, reduced: 20_000 })
const NEW_DAYS = count({ full: 100, reduced: 15 })
const SETTLERS = 4
/** Judged in proofs only. */
const LIMIT_MS = 1_000
const LOCK_TIMEOUT = { code: '55P03' }
const TRIES = 10
const DAY_MS = 86_400_000
const NOON_MS = DAY_MS / 2

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
/** For what takes longer than a pool of the product allows. */
const session = await openSession(database.url)
const patient = new pg.Pool({ connectionString: database.url, max: 1 })
patient.on('error', () => {})
after(() => Promise.all([session.close(), patient.end(), pools.close()]))

const todayMs = Math.floor(Date.now() / DAY_MS) * DAY_MS
const dayBefore = (days: number) => new Date(todayMs - days * DAY_MS).toISOString().slice(0, 10)
const partitionOf = (day: string) => `charges_${day.replaceAll('-', '')}`
const drop = (keepDays: number) => session.query('select drop_charges_before($1)::text as day', [dayBefore(keepDays)])

function judgeMs(title: string, tookMs: readonly number[], atMost = LIMIT_MS): void {
  judge(PROOF, title, { unit: 'ms', atMost }, tookMs)
}

/** Whoever drops a day waits only shortly for those who settle, and gives up; then it is tried again. */
async function persistently<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1)
    try {
      return await attempt()
    } catch (error) {
      if (tries === TRIES || !(error instanceof Error) || !/timeout/.test(error.message)) throw error
    }
}

/** Calls that are begun and ended without a pause, each connection with an account of its own. */
async function startSettlers() {
  let [isStopped, calls] = [false, 0]
  const tookMs: number[] = []
  const timed = async (work: Promise<unknown>) => {
    const startedAtMs = performance.now()
    await work
    tookMs.push(performance.now() - startedAtMs)
  }
  const settle = async () => {
    const [own, party] = [await openSession(database.url), await makeParty(pool, 10n ** 12n)]
    const allowance = await makeAllowance(pool, party.accountId, 'day', 10n ** 12n)
    while (!isStopped) {
      const call = callOf(party, { hold: 20n, allowances: [allowance] })
      await timed(own.begin(call))
      await timed(own.end(postOf(call, 10n)))
      calls += 1
    }
    await own.close()
  }
  const running = Promise.all(Array.from({ length: SETTLERS }, settle))
  const settleMore = async () => {
    const enough = calls + 10 * SETTLERS
    await until(() => calls >= enough, PATIENCE_MS, 'more settlements')
  }
  await settleMore()
  tookMs.length = 0
  return {
    settleMore,
    async stop() {
      // Whoever waits still counts.
      await delay(50)
      isStopped = true
      await running
      return tookMs
    },
  }
}

type Settlers = Awaited<ReturnType<typeof startSettlers>>

/** What came of the work, how long it took, and how long each begin and each end took meanwhile. */
async function whileSettling<T>(work: (settlers: Settlers) => Promise<T>) {
  const settlers = await startSettlers()
  try {
    const startedAtMs = performance.now()
    const result = await work(settlers)
    return { result, tookMs: performance.now() - startedAtMs, settledMs: await settlers.stop() }
  } finally {
    await settlers.stop()
  }
}

type Old = Party & { readonly allowances: readonly Id[]; readonly calls: readonly Id[] }

/**
 * Calls of an old day that were really begun and ended, then moved to its noon: of one account with cash, promotional
 * credit and an allowance of each period. Two of them have been given back since, one of these in part.
 */
async function makeOldDay(daysAgo: number, bulk = 0): Promise<Old> {
  const day = dayBefore(daysAgo)
  await pool.query('select make_charge_partition($1)', [day])
  const party = await makeParty(pool, 10_000n)
  const { accountId } = party
  await creditAccount(pool, { entryId: ids.next(), accountId, kind: 'promotion', amount: nanos(250n) })
  const allowances: Id[] = []
  for (const period of ['day', 'month', 'total'] as const)
    allowances.push(await makeAllowance(pool, accountId, period, 5_000n))
  const oldIds = createIds({ clock: { nowMs: () => todayMs - daysAgo * DAY_MS + NOON_MS } })
  const calls = Array.from({ length: 5 }, () => callOf(party, { id: oldIds.next(), hold: 200n, allowances }))
  await session.begin(...calls)
  await session.end(...calls.map((call) => postOf(call, 100n)))
  await moveToNoon(party, allowances, day)
  await giveBack(calls[0]?.id)
  await giveBack(calls[3]?.id, 30n)
  // The account goes on: what it has today, in the same period of its third allowance, is kept.
  const today = callOf(party, { hold: 200n, allowances })
  await session.begin(today)
  await session.end(postOf(today, 7n))
  if (bulk > 0) await chargeInBulk(day, bulk)
  return { ...party, allowances, calls: calls.map(({ id }) => id) }
}

async function giveBack(chargeId: Id | undefined, most = 10_000n): Promise<void> {
  assert.ok(chargeId)
  assert.ok((await reverseCharge(pool, ids.next(), chargeId, nanos(most))) > 0n)
}

async function moveToNoon({ accountId }: Party, allowances: readonly Id[], day: string): Promise<void> {
  const noon = `${day}T12:00:00Z`
  await session.query('set session_replication_role = replica')
  await session.query('update charges set begun_at = $2, ended_at = $2 where account_id = $1', [accountId, noon])
  await session.query('reset session_replication_role')
  await session.query('update usage_tail set at = $2 where account_id = $1', [accountId, noon])
  await session.query(
    `update kept_periods row set starts_at = period_start(allowance.period, $2)
     from allowances allowance where allowance.id = row.allowance_id and allowance.id = any ($1)`,
    [allowances, noon],
  )
}

/** So many charges of one account, with the hour and the sums that belong to them. */
async function chargeInBulk(day: string, charges: number): Promise<void> {
  const { accountId, credentialId } = await makeParty(pool, BigInt(charges) * 3n)
  const allowanceId = await makeAllowance(pool, accountId, 'month', BigInt(charges) * 3n)
  const noon = `${day}T12:00:00Z`
  await session.query(
    `insert into charges (id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost, executed, failed,
       input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at)
     select (left(first_id_at($4)::text, 14) || '7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $1, $2, 'probe', 'posted', 2, 2, 0, 0, 2, 0, true, false,
       0, 0, 0, 0, array[$3::uuid], $4, $4 from generate_series(1, $5::integer) n`,
    [accountId, credentialId, allowanceId, noon, charges],
  )
  await session.query('update accounts set charged = 2 * $2::bigint where id = $1', [accountId, charges])
  await session.query(
    "insert into kept_periods (allowance_id, starts_at, amount, charged) values ($1, period_start('month', $2), 3 * $3::bigint, 2 * $3::bigint)",
    [allowanceId, noon, charges],
  )
  await session.query(
    `insert into usage_tail (account_id, credential_id, at, operation, requests, failed_requests,
       input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
     values ($1, $2, $3, 'probe', $4::bigint, 0, 0, 0, 0, 0, 2 * $4::bigint, 2 * $4::bigint)`,
    [accountId, credentialId, noon, charges],
  )
  await session.query('select add_up_usage(most => 1000)')
}

async function carriedForward({ accountId, allowances }: Old) {
  const sums = await session.query('select amount, promo from dropped_charges where account_id = $1', [accountId])
  const ceilings = await session.query(
    `select coalesce(dropped.amount, 0) as dropped, period.charged from allowance_periods period join allowances on id = allowance_id
     left join dropped_allowances dropped using (allowance_id, starts_at)
     where allowance_id = any ($1) order by array_position(array['day', 'month', 'total'], period), starts_at`,
    [allowances],
  )
  return { sums, ceilings: ceilings.map(({ dropped, charged }) => [Number(dropped), Number(charged)]) }
}

/** 500 were charged on the day, 250 of it by promotional credit, and 130 were given back; 7 were charged today. */
async function assertCarriedForward(old: Old): Promise<void> {
  assert.deepEqual(await carriedForward(old), {
    sums: [{ amount: 500n, promo: 250n }],
    ceilings: [
      [370, 370],
      [0, 7],
      [370, 370],
      [0, 7],
      [370, 377],
    ],
  })
  assert.equal((await moneyOf(pool, old)).charged, 377n)
}

async function isThere(daysAgo: number): Promise<boolean> {
  const [row] = await session.query('select to_regclass($1) is not null as there', [partitionOf(dayBefore(daysAgo))])
  return row?.there === true
}

before(async () => {
  await session.query('select make_charge_partition(current_date - day) from generate_series(3, $1::integer) day', [
    KEPT_DAYS,
  ])
})

describe(`days of charges, beside ${KEPT_DAYS} others`, () => {
  it('are made while calls settle, and keep none of them waiting for a second', async () => {
    const { tookMs, settledMs } = await whileSettling(async () => {
      for (let day = 1; day <= NEW_DAYS; day += 1)
        await pool.query('select make_charge_partition($1)', [dayBefore(-7 - day)])
    })
    const size = { kept_days: KEPT_DAYS, new_days: NEW_DAYS, connections: SETTLERS }
    recordProof(PROOF, 'days made while calls settle', { ...size, took_ms: Math.round(tookMs) })
    judgeMs('a begin or an end while days are made', settledMs)
    const late = createIds({ clock: { nowMs: () => todayMs + (7 + NEW_DAYS) * DAY_MS } })
    const call = callOf(await makeParty(pool, 10n), { id: late.next() })
    assert.deepEqual(
      (await session.begin(call)).map(({ outcome }) => outcome),
      ['begun'],
    )
    await session.end(postOf(call, 1n))
  })

  it('are made at the start of a process within a fraction of a second, by many at once and again', async () => {
    for (let day = -7; day <= -4; day += 1) {
      // The last of them may be missing already: the database is of yesterday, if midnight has come since.
      await session.query(`drop table if exists ${partitionOf(dayBefore(day))}`)
    }
    const startedAtMs = performance.now()
    const all = Array.from({ length: 8 }, () => createPartitions({ pool, log: silentLog }))
    await Promise.all(all.map((partitions) => partitions.start()))
    const firstMs = performance.now() - startedAtMs
    await all[0]?.start()
    const againMs = performance.now() - startedAtMs - firstMs
    for (const partitions of all) partitions.stop()
    for (let day = -7; day <= 2; day += 1) assert.ok(await isThere(day))
    judgeMs('the start of eight processes where four days are missing', [firstMs])
    judgeMs('one more start, where none is missing', [againMs], LIMIT_MS / 4)
  })

  it('are dropped while calls settle: none waits for a second, and the ledger still adds up', async () => {
    const old = [await makeOldDay(1_203, BULK), await makeOldDay(1_202), await makeOldDay(1_201, BULK)]
    assert.deepEqual(await verifyLedger(patient), [])
    const dropped: string[] = []
    const log = { ...silentLog, info: (_: string, fields?: object) => dropped.push(JSON.stringify(fields)) }
    // A day takes longer than the pool's statements may.
    const hasty = new pg.Pool({ connectionString: database.url, statement_timeout: 50, query_timeout: 50 })
    const { tookMs, settledMs } = await whileSettling(() =>
      persistently(() => dropOldCharges({ pool: hasty, log, keepDays: 1_150 })),
    )
    await hasty.end()
    const size = { kept_days: KEPT_DAYS, charges_in_two_of_three_days: BULK, connections: SETTLERS }
    recordProof(PROOF, 'days dropped while calls settle', { ...size, took_ms: Math.round(tookMs) })
    judgeMs('a begin or an end while days are dropped', settledMs)
    assert.equal(dropped.length, 3)
    for (const daysAgo of [1_203, 1_202, 1_201]) assert.equal(await isThere(daysAgo), false)
    assert.ok(await isThere(KEPT_DAYS))
    for (const one of old) await assertCarriedForward(one)
    assert.deepEqual(await verifyLedger(patient), [])
  })

  it('keep what was given back while they were being dropped', async () => {
    const other = await openSession(database.url)
    const old = await persistently(async () => {
      const made = await makeOldDay(1_200)
      await other.query('begin')
      await other.query('select reverse_charge($1, $2, 40)', [ids.next(), made.calls[2]])
      let isDone = false
      const dropping = drop(1_150).finally(() => {
        isDone = true
      })
      dropping.catch(() => {})
      await until(
        async () => isDone || (await session.waits(pool)),
        PATIENCE_MS,
        'the drop that waits for the reversal',
      )
      const hasWaited = !isDone
      await other.query('commit')
      assert.deepEqual(await dropping, [{ day: dayBefore(1_200) }])
      assert.ok(hasWaited, 'the drop waits for the reversal')
      return made
    })
    await other.close()
    const { ceilings } = await carriedForward(old)
    assert.deepEqual(ceilings.at(-1), [330, 337])
    assert.deepEqual(await verifyLedger(patient), [])
    assert.equal(await reverseCharge(pool, ids.next(), old.calls[1] ?? '', nanos(1n)), 0n, 'what is dropped is final')
  })

  it('are dropped by one of two who try at once', async () => {
    const old = await makeOldDay(1_199)
    const other = await openSession(database.url)
    await other.query('begin')
    assert.deepEqual(await other.query('select drop_charges_before($1)::text as day', [dayBefore(1_150)]), [
      { day: dayBefore(1_199) },
    ])
    assert.deepEqual(await drop(1_150), [{ day: null }])
    await other.query('rollback')
    await other.close()
    assert.ok(await isThere(1_199), 'a drop that was rolled back has left everything')
    assert.deepEqual((await carriedForward(old)).sums, [])
    await drop(1_150)
    await assertCarriedForward(old)
    assert.deepEqual(await verifyLedger(patient), [])
  })

  const readers = {
    'all days': 'select count(*) from charges',
    'other days':
      'select count(*) from charges where id >= first_id_at(to_timestamp($1)) and id < first_id_at(to_timestamp($1 + 60))',
  }
  for (const [at, [what, sql]] of Object.entries(readers).entries())
    it(`are not dropped while somebody reads ${what}: the drop gives up within a second, and the next one succeeds`, async () => {
      const old = await makeOldDay(1_198 - at)
      const reader = await openSession(database.url)
      await reader.query('begin')
      await reader.query(sql, sql.includes('$1') ? [todayMs / 1_000] : [])
      const givingUp = await whileSettling(async (settlers) => {
        const startedAtMs = performance.now()
        await assert.rejects(drop(1_150), LOCK_TIMEOUT)
        const tookMs = performance.now() - startedAtMs
        // They go on while somebody still reads.
        await settlers.settleMore()
        return tookMs
      })
      judgeMs(`a drop that gives up because somebody reads ${what}`, [givingUp.result])
      judgeMs(`a begin or an end while a drop gives up because somebody reads ${what}`, givingUp.settledMs)
      assert.deepEqual((await carriedForward(old)).sums, [])
      assert.deepEqual(await verifyLedger(patient), [])

      await reader.query('commit')
      await reader.close()
      const next = await whileSettling(() => persistently(() => drop(1_150)))
      assert.deepEqual(next.result, [{ day: dayBefore(1_198 - at) }])
      judgeMs(`a begin or an end while the next drop succeeds, after somebody read ${what}`, next.settledMs)
      await assertCarriedForward(old)
      assert.deepEqual(await verifyLedger(patient), [])
    })
})

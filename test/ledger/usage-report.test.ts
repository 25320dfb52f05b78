import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import fc from 'fast-check'
import { z } from 'zod'
import { count, recordProof, seed, sometimes } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Call, Ending } from '../../server/src/calls/call.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import { createIds, type Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { reverseCharge } from '../../server/src/ledger/reverse.ts'
import { readUsage, type UsageReport, type UsageSums } from '../../server/src/ledger/usage.ts'
import type { UsageQuery } from '../../server/src/ledger/usage-query.ts'
import { usageStatement } from '../../server/src/ledger/usage-statement.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { callOf, makeParty, openSession, type Party, postOf } from './session.ts'
import { bookAnew } from './usage-rows.ts'
import { connect, ids, makeCredential } from './world.ts'

/**
 * Calls that were really begun, ended and given back, then scattered over the weeks before, and windows of every kind
 * over them: each report must be what adding up charges and entries one by one says.
 */
const WINDOWS = count({ full: 10_000, reduced: 300 })
const CALLS = 700
const AT_ONCE = 50
const DAYS = 40
const [HOUR, DAY] = [3_600, 86_400]

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

const nowSeconds = Math.floor(Date.now() / 1_000)
/** The first second of the day with which everything starts. */
const originSeconds = floorTo(nowSeconds, DAY) - DAYS * DAY

const near = (unit: number) =>
  fc
    .tuple(fc.integer({ min: 0, max: (DAYS * DAY) / unit }), fc.integer({ min: -1, max: 1 }))
    .map(([units, off]) => originSeconds + units * unit + off)

/** A second at which something may happen or a window may end: often at the edge of an hour or a day. */
const instant = fc
  .oneof(
    fc.integer({ min: originSeconds, max: nowSeconds }),
    near(HOUR),
    near(DAY),
    // A few hours in which much happens, so that windows often cut what there is.
    fc.integer({ min: originSeconds + 20 * DAY - HOUR, max: originSeconds + 20 * DAY + 2 * HOUR }),
  )
  .filter((second) => second >= originSeconds && second < nowSeconds)

const happening = fc.record({
  endedSeconds: instant,
  endedMicros: fc.constantFrom(0, 0, 1, 500_000, 999_999),
  /** How much older, or younger, the id is than the call's end. */
  idAgeSeconds: fc.oneof(fc.integer({ min: 0, max: 120 }), fc.integer({ min: -6 * DAY, max: 7 * DAY })),
  who: fc.nat(3),
  hold: fc.bigInt({ min: 1n, max: 5_000n }),
  amount: fc.bigInt({ min: 0n, max: 6_000n }),
  value: fc.bigInt({ min: 0n, max: 9_000n }),
  ending: fc.constantFrom('post', 'post', 'post', 'fail', 'void', 'forgive'),
  tokens: fc.array(fc.nat(900), { minLength: 4, maxLength: 4 }),
  givenBack: fc.option(
    fc.record({ id: fc.constant(null).map(ids.next), most: fc.bigInt(1n, 4_000n), afterSeconds: fc.nat(3 * DAY) }),
    { freq: 3 },
  ),
})
type Happened = { readonly call: Call } & (typeof happening extends fc.Arbitrary<infer T> ? T : never)

type Team = readonly [Party, Party, Party, Party]

/** Three credentials of one account, and one of another. */
async function makeTeam(): Promise<Team> {
  const [one, other] = [await makeParty(pool, 10n ** 9n), await makeParty(pool, 10n ** 9n)]
  const [second, third] = [await makeCredential(pool, one.accountId), await makeCredential(pool, one.accountId)]
  return [one, { ...one, credentialId: second }, { ...one, credentialId: third }, other]
}

async function happen(
  team: Team,
  calls: number,
  idOf: (one: Omit<Happened, 'call'>) => Id,
): Promise<readonly Happened[]> {
  const happened = fc.sample(happening, { seed, numRuns: calls }).map((one) => ({
    ...one,
    call: callOf(team[one.who] ?? team[0], { id: idOf(one), hold: one.hold }),
  }))
  for (let from = 0; from < calls; from += AT_ONCE) {
    const some = happened.slice(from, from + AT_ONCE)
    await session.begin(...some.map(({ call }) => call))
    await session.end(...some.map(endingOf))
  }
  await session.end(...team.map((party) => voidOf(callOf(party))))
  for (const { call, givenBack } of happened)
    if (givenBack !== null) await reverseCharge(pool, givenBack.id, call.id, nanos(givenBack.most))
  return happened
}

function endingOf({ call, ending, amount, value, tokens }: Happened): Ending {
  if (ending === 'void') return voidOf(call)
  const [inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0] = tokens
  const usage = { value: nanos(value), inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens }
  return { ...postOf(call, amount, { ...usage, failed: ending === 'fail' }), forgiven: ending === 'forgive' }
}

/** Moves what has happened to the times at which it is said to have happened, and the hours with it. */
async function scatter(happened: readonly Happened[]): Promise<void> {
  await session.query('set session_replication_role = replica')
  await session.query(
    `update charges set ended_at = to_timestamp(item.seconds) + item.micros * interval '1 microsecond'
     from unnest($1::uuid[], $2::float8[], $3::integer[]) item (id, seconds, micros) where charges.id = item.id`,
    [
      happened.map(({ call }) => call.id),
      happened.map((one) => one.endedSeconds),
      happened.map((one) => one.endedMicros),
    ],
  )
  const given = happened.flatMap(({ givenBack, endedSeconds }) =>
    givenBack === null ? [] : [{ ...givenBack, endedSeconds }],
  )
  await session.query(
    `update entries set entered_at = to_timestamp(item.seconds) + interval '999999 microseconds'
     from unnest($1::uuid[], $2::float8[]) item (id, seconds) where entries.id = item.id`,
    [given.map(({ id }) => id), given.map((one) => Math.min(nowSeconds - 1, one.endedSeconds + one.afterSeconds))],
  )
  await session.query('reset session_replication_role')
  await bookAnew((text) => session.query(text))
  // Some of it is in the sums, and some in the tail.
  await session.query('select add_up_usage(most => $1)', [Math.floor(happened.length / 2)])
}

/** Something that counts: requests, failed ones, the four kinds of tokens, value and charge in nanos. */
type Booked = {
  readonly credentialId: Id
  readonly accountId: Id
  readonly atUs: bigint
  readonly sums: readonly bigint[]
}
const NOTHING = Array.from({ length: 8 }, () => 0n)
const add = (some: readonly bigint[], more: readonly bigint[]) => some.map((sum, at) => sum + (more[at] ?? 0n))

async function readBooked(): Promise<readonly Booked[]> {
  const { rows } = await pool.query<Omit<Booked, 'sums'> & { what: readonly bigint[]; executed: boolean }>(
    `select account_id as "accountId", credential_id as "credentialId", (extract(epoch from ended_at) * 1000000)::bigint as "atUs", executed,
       array[1, failed::integer, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, amount] as what from charges
     union all
     select account_id, credential_id, (extract(epoch from entered_at) * 1000000)::bigint, true, array[0, 0, 0, 0, 0, 0, 0, charged] from entries`,
  )
  return rows
    .filter(({ credentialId, executed }) => credentialId !== null && executed)
    .map(({ what, ...row }) => ({ ...row, sums: what }))
}

/** The report as it should be, added up one by one. */
function expected(booked: readonly Booked[], { scope, startSeconds, endSeconds }: UsageQuery): UsageReport {
  const isOurs = (one: Booked) =>
    'credentialId' in scope ? one.credentialId === scope.credentialId : one.accountId === scope.accountId
  const inside = booked.filter((one) => isOurs(one) && isWithin(one, startSeconds, endSeconds))
  let sums: readonly bigint[] = NOTHING
  const buckets = []
  for (let from = startSeconds; from < endSeconds; ) {
    const to = Math.min(endSeconds, floorTo(from, DAY) + DAY)
    const ours = inside.filter((one) => isWithin(one, from, to))
    const sumsAfter = ours.reduce((all, one) => add(all, one.sums), sums)
    buckets.push({ startSeconds: from, endSeconds: to, ...difference(named(sumsAfter), named(sums)) })
    sums = sumsAfter
    from = to
  }
  return { totals: named(sums), buckets }
}

function isWithin({ atUs }: Booked, from: number, to: number): boolean {
  return atUs >= BigInt(from) * 1_000_000n && atUs < BigInt(to) * 1_000_000n
}

function named(sums: readonly bigint[]): UsageSums {
  const [requests = 0n, failedRequests = 0n, inputTokens = 0n, outputTokens = 0n, ...more] = sums
  const [cacheReadTokens = 0n, cacheWriteTokens = 0n, value = 0n, charged = 0n] = more
  const tokens = { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens }
  return { requests, failedRequests, ...tokens, valueMicros: micros(value), chargedMicros: micros(charged) }
}

function micros(amount: bigint): bigint {
  return (amount - (((amount % 1_000n) + 1_000n) % 1_000n)) / 1_000n
}

function difference(later: UsageSums, earlier: UsageSums): UsageSums {
  return {
    requests: later.requests - earlier.requests,
    failedRequests: later.failedRequests - earlier.failedRequests,
    inputTokens: later.inputTokens - earlier.inputTokens,
    outputTokens: later.outputTokens - earlier.outputTokens,
    cacheReadTokens: later.cacheReadTokens - earlier.cacheReadTokens,
    cacheWriteTokens: later.cacheWriteTokens - earlier.cacheWriteTokens,
    valueMicros: later.valueMicros - earlier.valueMicros,
    chargedMicros: later.chargedMicros - earlier.chargedMicros,
  }
}

function floorTo(seconds: number, width: number): number {
  return Math.floor(seconds / width) * width
}

const idBefore = ({ endedSeconds, idAgeSeconds }: Omit<Happened, 'call'>): Id =>
  createIds({ clock: { nowMs: () => (endedSeconds - idAgeSeconds) * 1_000 } }).next()

/** Each of the credentials, and both accounts. */
function scopesOf(team: Team): readonly UsageQuery['scope'][] {
  const accounts = [team[0], team[3]].map(({ accountId }) => ({ accountId }))
  return [...team.map(({ credentialId }) => ({ credentialId })), ...accounts]
}

const plan = z.object({
  'Relation Name': z.string().optional(),
  'Actual Rows': z.number(),
  'Actual Loops': z.number(),
  get Plans() {
    return z.array(plan).default([])
  },
})

/** How many charges the statement of a report takes. That it finds them by index is shown where there are many. */
async function chargesTaken(query: UsageQuery): Promise<number> {
  const { text, values } = usageStatement(query)
  const rows = await session.query(`explain (analyze, format json) ${text}`, [...values])
  const [row] = z.tuple([z.object({ 'QUERY PLAN': z.tuple([z.object({ Plan: plan })]) })]).parse(rows)
  const takenBy = (node: z.infer<typeof plan>): number => {
    const own = node['Actual Rows'] * node['Actual Loops']
    const isOfCharges = node['Relation Name']?.startsWith('charges') === true
    return node.Plans.reduce((sum, one) => sum + takenBy(one), isOfCharges ? own : 0)
  }
  return takenBy(row['QUERY PLAN'][0].Plan)
}

describe('the usage report', () => {
  let scopes: readonly UsageQuery['scope'][] = []
  const scopeAt = (place: number): UsageQuery['scope'] => {
    const scope = scopes[place]
    assert.ok(scope)
    return scope
  }

  it('has what calls have just booked, whether the window has their hour as a whole or in part', async () => {
    const team = await makeTeam()
    await happen(team, 4 * AT_ONCE, ids.next)
    assert.deepEqual(await verifyLedger(pool), [])
    const booked = await readBooked()
    const hour = floorTo(nowSeconds, HOUR)
    // In the tail, and in the sums.
    for (const work of [async () => {}, () => addUpUsage(pool)]) {
      await work()
      for (const scope of scopesOf(team)) {
        for (const startSeconds of [hour - HOUR, hour - HOUR + 1, nowSeconds - 1, nowSeconds])
          for (const endSeconds of [hour + 2 * HOUR, nowSeconds + 60, nowSeconds + 1]) {
            const query = { scope, startSeconds, endSeconds }
            assert.deepEqual(await readUsage(pool, query), expected(booked, query))
          }
        const { totals } = await readUsage(pool, { scope, startSeconds: hour, endSeconds: hour + 2 * HOUR })
        assert.ok(totals.requests > 0n && totals.failedRequests > 0n && totals.valueMicros > 0n)
      }
    }
  })

  it(`is the plain sum of charges and what was given back, to the micro, in ${WINDOWS} windows (seed ${seed})`, async () => {
    const days = 'select make_charge_partition(current_date - day) from generate_series(3, $1::integer) day'
    await pool.query(days, [DAYS + 9])
    const team = await makeTeam()
    scopes = scopesOf(team)
    await scatter(await happen(team, CALLS, idBefore))
    assert.deepEqual(await verifyLedger(pool), [])
    const booked = await readBooked()
    let [cuts, below] = [0, 0]
    await fc.assert(
      fc.asyncProperty(fc.nat(5), instant, instant, fc.option(fc.nat(HOUR)), async (place, one, other, later) => {
        const window = { scope: scopeAt(place), startSeconds: Math.min(one, other), endSeconds: Math.max(one, other) }
        // Whatever time it is held to be, which decides what is read.
        const query = { ...window, ...(later !== null && { nowSeconds: window.endSeconds + later }) }
        const report = await readUsage(pool, query)
        assert.deepEqual(report, expected(booked, query))
        if (report.buckets.some(({ chargedMicros }) => chargedMicros < 0n)) below += 1
        if (one % HOUR !== 0 && other % HOUR !== 0 && report.totals.requests > 0n) cuts += 1
      }),
      { seed, numRuns: WINDOWS, endOnFailure: true },
    )
    const seen = { windows: WINDOWS, that_cut_hours: cuts, with_a_day_below_zero: below }
    assert.ok(cuts > WINDOWS / 10 && below > WINDOWS / 100, JSON.stringify(seen))
    recordProof('usage-report', 'windows that equal the plain sum of charges and entries, to the micro', seen)
  })

  it('adds up: the buckets of a window to its totals, and two windows that meet to the one that spans both', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(5), fc.array(instant, { minLength: 3, maxLength: 3 }), async (place, instants) => {
        const [start = 0, middle = 0, end = 0] = instants.toSorted((a, b) => a - b)
        const read = (startSeconds: number, endSeconds: number) =>
          readUsage(pool, { scope: scopeAt(place), startSeconds, endSeconds })
        const [whole, left, right] = [await read(start, end), await read(start, middle), await read(middle, end)]
        for (const { totals, buckets } of [whole, left, right])
          assert.deepEqual(
            buckets.reduce((rest, bucket) => difference(rest, bucket), totals),
            named(NOTHING),
          )
        const {
          valueMicros: _,
          chargedMicros: __,
          ...counts
        } = difference(difference(whole.totals, left.totals), right.totals)
        assert.deepEqual(new Set(Object.values(counts)), new Set([0n]))
        // Each window floors its own sum, so that two of them may be a micro short of the one.
        const lost = whole.totals.chargedMicros - left.totals.chargedMicros - right.totals.chargedMicros
        assert.ok(lost === 0n || lost === 1n, `${lost} micros`)
      }),
      { seed, numRuns: WINDOWS / 10, endOnFailure: true },
    )
  })

  it('has a bucket of zeros for every day without usage, and clips the first and the last to the window', async () => {
    const start = originSeconds - 500 * DAY + 5_000
    const end = originSeconds - 497 * DAY + 7
    const report = await readUsage(pool, { scope: scopeAt(0), startSeconds: start, endSeconds: end })
    const edges = [start, start - 5_000 + DAY, start - 5_000 + 2 * DAY, start - 5_000 + 3 * DAY, end]
    assert.deepEqual(report, {
      totals: named(NOTHING),
      buckets: edges
        .slice(0, -1)
        .map((from, at) => ({ startSeconds: from, endSeconds: edges[at + 1], ...named(NOTHING) })),
    })
    const empty = await readUsage(pool, { scope: scopeAt(0), startSeconds: start, endSeconds: start })
    assert.deepEqual(empty, { totals: named(NOTHING), buckets: [] })
  })

  it('is refused for a window of more than 1,100 days, or one that ends before it starts', async () => {
    const scope = scopeAt(0)
    const most = { scope, startSeconds: originSeconds - 1_000 * DAY, endSeconds: originSeconds + 100 * DAY }
    assert.equal((await readUsage(pool, most)).buckets.length, 1_100)
    for (const query of [
      { ...most, endSeconds: most.endSeconds + 1 },
      { ...most, startSeconds: most.startSeconds - 1 },
      { ...most, startSeconds: most.endSeconds + 1 },
    ])
      await assert.rejects(readUsage(pool, query), { name: 'Fault', code: 'invalid_request', status: 400 })
  })

  it('reads none of the running hour’s charges where it ends now', async () => {
    const party = await makeParty(pool, 10n ** 9n)
    const calls = Array.from({ length: 30 }, () => callOf(party, { hold: 1_000n }))
    await session.begin(...calls)
    const startSeconds = floorTo(Math.floor(Date.now() / 1_000), HOUR)
    await session.end(...calls.map((call) => postOf(call, 1_000n)))
    const seconds = Math.floor(Date.now() / 1_000)
    for (const work of [async () => {}, () => addUpUsage(pool)]) {
      await work()
      const untilNow = { scope: party, startSeconds, endSeconds: seconds + 1, nowSeconds: seconds }
      for (const groupBy of [undefined, 'operation'] as const) {
        const query = { ...untilNow, ...(groupBy && { groupBy }) }
        assert.equal((await readUsage(pool, query)).totals.requests, 30n)
        assert.equal(await chargesTaken(query), 0)
      }
      // A window that begins in the hour or just before is read from the charges: so the count can tell.
      const cut = {
        scope: party,
        startSeconds: startSeconds - 1,
        endSeconds: startSeconds + HOUR - 1,
        nowSeconds: seconds,
      }
      assert.equal((await readUsage(pool, cut)).totals.requests, 30n)
      const { nowSeconds: _, ...inPart } = { ...cut, endSeconds: seconds + 1, startSeconds: seconds - 600 }
      assert.ok((await chargesTaken(inPart)) > 0)
    }
  })

  it('takes what came after its end from the running hour, and tells no group of which nothing is left', async () => {
    const party = await makeParty(pool, 10n ** 9n)
    const hour = floorTo(nowSeconds, HOUR) - HOUR
    const calls = ['early', 'early', 'late'].map((operation) => callOf(party, { hold: 1_000n, operation }))
    await session.begin(...calls)
    await session.end(...calls.map((call) => postOf(call, 1_000n)))
    await session.query('set session_replication_role = replica')
    await session.query(
      `update charges set ended_at = to_timestamp(case operation when 'early' then $2::float8 else $2 + 3 end) where account_id = $1`,
      [party.accountId, hour + 10],
    )
    await session.query('reset session_replication_role')
    await bookAnew((text) => session.query(text))
    for (const work of [async () => {}, () => addUpUsage(pool)]) {
      await work()
      for (const [endSeconds, left] of [
        [hour + 13, ['early']],
        [hour + 14, ['early', 'late']],
      ] as const) {
        // As if it were that hour: what is read is not what is said.
        const query = { scope: party, startSeconds: hour, endSeconds, nowSeconds: endSeconds }
        const { groups = [], totals, otherGroups } = await readUsage(pool, { ...query, groupBy: 'operation' })
        assert.deepEqual([groups.map(({ value }) => value), otherGroups], [left, 0])
        assert.equal(totals.requests, BigInt(left.length + 1))
        assert.equal(await chargesTaken(query), 3 - left.length - 1)
      }
    }
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })

  it('is of one state of the ledger while calls settle', async () => {
    const party = await makeParty(pool, 10n ** 9n)
    const hour = floorTo(Math.floor(Date.now() / 1_000), HOUR)
    const calls = Array.from({ length: 200 }, () => callOf(party, { hold: 1_000n }))
    await session.begin(...calls)
    let isDone = false
    const settling = (async () => {
      for (const call of calls) await session.end(postOf(call, 1_000n, { inputTokens: 7 }))
    })().finally(() => {
      isDone = true
    })
    const seen = new Set<bigint>()
    while (!isDone) {
      const scope = seen.size % 2 === 0 ? party : { accountId: party.accountId }
      // The hour that may begin meanwhile is cut too.
      const { totals } = await readUsage(pool, { scope, startSeconds: hour + 1, endSeconds: hour + 2 * HOUR - 1 })
      assert.equal(totals.inputTokens, 7n * totals.requests)
      assert.equal(totals.chargedMicros, totals.requests)
      seen.add(totals.requests)
    }
    await settling
    sometimes(seen.size > 3, `more than three states are seen (${seen.size})`)
  })
})

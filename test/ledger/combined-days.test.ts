import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { createCombining } from '../../server/src/ledger/combine-usage-days.ts'
import { labelSteps } from '../../server/src/ledger/erase-labels.ts'
import { dropOldUsage } from '../../server/src/ledger/retention.ts'
import { reverseCharge } from '../../server/src/ledger/reverse.ts'
import { readUsage } from '../../server/src/ledger/usage.ts'
import type { UsageQuery } from '../../server/src/ledger/usage-query.ts'
import { COMBINED_SUMS_MOST } from '../../server/src/ledger/usage-sources.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { rowsRead } from '../storage/rows-read.ts'
import { callOf, makeParty, openSession, type Party, postOf } from './session.ts'
import { bookAnew } from './usage-rows.ts'
import { connect, ids, makeCredential } from './world.ts'

/** Combined sums by day: made of the hours of days that are over, and equal to them whatever comes later. */
const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

const [HOUR, DAY] = [3_600, 86_400]
const nowSeconds = Math.floor(Date.now() / 1_000)
const todaySeconds = Math.floor(nowSeconds / DAY) * DAY
/** Whole days before today, which are over for long enough: a test at midnight has them too. */
const [FIRST, DAYS] = [todaySeconds - 5 * DAY, 4]
const HOURS = 12
const MODELS = ['gpt', 'claude'] as const
const OPERATIONS = ['chat', 'embed'] as const
const TEAMS = ['search', 'ads'] as const
const END_USER = { id: ids.next(), label: 'somebody' }

type Made = { readonly at: number; readonly model: string; readonly operation: string; readonly team: string }
type Charged = Made & { readonly id: string; readonly party: Party; amount: bigint }
const charged: Charged[] = []
let keys: readonly [Party, Party]

const adding = async () => {
  while ((await addUpUsage(pool)) > 0);
}
const combine = async (most: number) => {
  const [row] = await session.query('select combine_usage_days(most => $1) as taken', [most])
  return Number(row?.taken)
}
/** All days before that time. */
async function combineUntil(seconds: number, most: number): Promise<void> {
  for (let steps = 0; (await untilSeconds()) < seconds; steps += 1) {
    assert.ok(steps < 1_000, 'it comes to an end')
    await combine(most)
  }
}
/** As before any day was combined. */
const forgetDays = async () => {
  await session.query("delete from usage_sums where grain = 'day'")
  await session.query('delete from usage_combined')
}
const untilSeconds = async () => {
  const [row] = await session.query('select extract(epoch from until)::float8 as until from usage_combined')
  return Number(row?.until ?? 0)
}

/** Calls that are settled at those times, in the tail. */
async function charge(party: Party, some: readonly Made[]): Promise<void> {
  const calls = some.map(({ model, operation, team }) => {
    const attribution = { model, endUser: END_USER, tags: [{ name: 'team', value: team }] }
    return callOf(party, { hold: 1_000n, operation, attribution })
  })
  const made = some.map((one, at) => ({
    ...one,
    id: calls[at]?.id ?? '',
    party,
    amount: BigInt(1 + charged.length + at),
  }))
  await session.query('begin')
  await session.begin(...calls)
  // Each by itself, so that each has a row of the tail.
  for (const [at, call] of calls.entries()) {
    await session.end({ ...postOf(call, made[at]?.amount ?? 0n), route: `route ${at % 3}` })
    await session.query('set local session_replication_role = replica')
    const seconds = made[at]?.at ?? 0
    await session.query('update charges set ended_at = to_timestamp($2) where id = $1', [call.id, seconds])
    await session.query("update usage_tail set at = to_timestamp($1) where at > now() - interval '1 minute'", [seconds])
    await session.query('set local session_replication_role = origin')
  }
  await session.query('commit')
  charged.push(...made)
}

/** One of each kind in each hour. */
const everything = (days: readonly number[], hours = HOURS): readonly Made[] =>
  days.flatMap((day) =>
    Array.from({ length: hours }, (_, hour) => ({
      at: FIRST + day * DAY + hour * 2 * HOUR + 60,
      model: MODELS[hour % 2] ?? 'gpt',
      operation: OPERATIONS[hour % 3 === 0 ? 0 : 1] ?? 'chat',
      team: TEAMS[hour % 5 < 3 ? 0 : 1] ?? 'ads',
    })),
  )

type View = Pick<UsageQuery, 'groupBy' | 'filter'>
const VIEWS: readonly (readonly [view: View, is: (one: Charged) => boolean, item: (one: Charged) => string])[] = [
  [
    { groupBy: 'model', filter: { tag: { name: 'team', value: 'search' } } },
    ({ team }) => team === 'search',
    ({ model }) => model,
  ],
  [
    { groupBy: 'key', filter: { operation: 'embed' } },
    ({ operation }) => operation === 'embed',
    ({ party }) => party.credentialId,
  ],
  [{ groupBy: 'model', filter: { operation: 'chat' } }, ({ operation }) => operation === 'chat', ({ model }) => model],
  [{ groupBy: { tag: 'team' }, filter: { model: 'gpt' } }, ({ model }) => model === 'gpt', ({ team }) => team],
  [
    { groupBy: 'end_user', filter: { model: 'gpt', operation: 'chat' } },
    ({ model, operation }) => model === 'gpt' && operation === 'chat',
    () => END_USER.id,
  ],
]

/** Every combined report is what was charged, call by call: of all days, and of a window that cuts two of them. */
async function assertReports(): Promise<void> {
  const booked = charged.filter(({ party }) => party.accountId === keys[0].accountId)
  for (const [startSeconds, endSeconds] of [
    [FIRST - DAY, todaySeconds + DAY],
    [FIRST + 5 * HOUR, FIRST + 3 * DAY + 7 * HOUR],
  ] as const)
    for (const [view, is, itemOf] of VIEWS) {
      const query = { ...view, scope: { accountId: keys[0].accountId }, startSeconds, endSeconds }
      const { groups = [], totals } = await readUsage(pool, query)
      const ours = booked.filter((one) => is(one) && one.at >= startSeconds && one.at < endSeconds)
      assert.equal(totals.requests, BigInt(ours.length))
      const cells = groups.flatMap(({ value, buckets }) =>
        buckets.map((one) => `${value} ${Math.floor(one.startSeconds / DAY)} ${one.requests} ${one.charged}`),
      )
      const expected = [...Map.groupBy(ours, (one) => `${itemOf(one)} ${Math.floor(one.at / DAY)}`)].map(
        ([cell, some]) => `${cell} ${some.length} ${some.reduce((sum, { amount }) => sum + amount, 0n)}`,
      )
      assert.deepEqual(cells.sort(), expected.sort(), JSON.stringify(query.groupBy))
    }
  assert.deepEqual(await verifyLedger(pool), [])
}

before(async () => {
  const party = await makeParty(pool, 10n ** 9n)
  keys = [party, { ...party, credentialId: await makeCredential(pool, party.accountId) }]
  await session.query('select make_charge_partition(current_date - day) from generate_series(0, 8) day')
  for (const one of keys) await charge(one, everything([0, 1, 2, 3]))
  await adding()
})

describe('combined sums by day', () => {
  it('are made of hours that are there already, a few names at a time, with every report exact at every step', async () => {
    await assertReports()
    assert.equal(await untilSeconds(), 0, 'none is combined in a database that has just come to them')
    let [steps, partly] = [0, 0]
    while ((await untilSeconds()) < FIRST + DAYS * DAY) {
      await combine(3)
      steps += 1
      assert.ok(steps < 1_000, 'it comes to an end')
      const [place] = await session.query('select credential_id from usage_combined where credential_id is not null')
      if (place !== undefined) partly += 1
      if (steps % 5 === 0) await assertReports()
    }
    assert.ok(partly > DAYS, 'a report was read while a day was combined in part')
    await assertReports()
    assert.equal(await combine(3), 0)
  })

  it('have what is settled late, wherever in the order of its names a day was left', async () => {
    // A key has six names: among those of the first, between the two, and among those of the second.
    for (let names = 1; names <= 11; names += 1) {
      await forgetDays()
      await combineUntil(FIRST + DAY, 100)
      assert.equal(await combine(names), names)
      assert.equal(await untilSeconds(), FIRST + DAY, 'the second day is combined in part')
      for (const party of keys) await charge(party, everything([1]))
      await adding()
      await assert.doesNotReject(combineUntil(FIRST + 2 * DAY, 100), `left after ${names} names`)
      await assertReports()
    }
  })

  it('have what is settled late and what is given back, on a day that is combined, in part, or not yet', async () => {
    await forgetDays()
    await combineUntil(FIRST + DAY, 100)
    assert.equal(await combine(6), 6)
    assert.equal(await untilSeconds(), FIRST + DAY, 'the second day is combined in part')
    for (const party of keys) await charge(party, everything([-1, 0, 1, 2]))
    await assertReports()
    await adding()
    await assertReports()
    for (const day of [0, 1, 2]) await giveBack(day)
    await assertReports()
    await adding()
    await assertReports()
    await combineUntil(FIRST + DAYS * DAY, 5)
    await assertReports()
    await giveBack(3)
    await adding()
    await assertReports()
  })

  /** Of a call of each key, at a time of that day. */
  async function giveBack(day: number): Promise<void> {
    const from = FIRST + day * DAY
    for (const { credentialId } of keys) {
      const one = charged.find(
        ({ party, at, amount }) => party.credentialId === credentialId && at >= from && amount > 2n,
      )
      assert.ok(one !== undefined)
      const entry = ids.next()
      await reverseCharge(pool, entry, one.id, nanos(2n))
      await session.query('set session_replication_role = replica')
      await session.query('update entries set entered_at = to_timestamp($2) where id = $1', [entry, one.at])
      await session.query(
        "update usage_tail set at = to_timestamp($1) where requests = 0 and at > now() - interval '1 minute'",
        [one.at],
      )
      await session.query('reset session_replication_role')
      one.amount -= 2n
    }
  }

  it('are made by one at a time, while nobody adds up, and all of a step or nothing when its connection dies', async () => {
    await forgetDays()
    const combining = createCombining(pool, systemClock)
    const other = await openSession(database.url)
    try {
      for (const fate of ['rollback', 'commit']) {
        await other.query('begin')
        await other.query('select combine_usage_days(most => 5)')
        assert.deepEqual(await session.query('select combine_usage_days(most => 5) as taken'), [{ taken: null }])
        assert.equal(await combining.tick(), 0)
        assert.equal(combining.pauseMs(), 2_000, 'who finds somebody else at it does not come back at once')
        assert.deepEqual(await session.query('select add_up_usage(most => 5) as added'), [{ added: null }])
        await assertReports()
        await other.query(fate)
        assert.equal((await session.query('select from usage_combined')).length, fate === 'commit' ? 1 : 0)
        await assertReports()
      }
    } finally {
      await other.close()
    }
    // Longer than whoever adds up usage waits between two tries.
    while ((await combining.tick()) > 0) assert.ok(combining.pauseMs() > 500)
    assert.equal(combining.pauseMs(), 60_000)
    assert.equal(await untilSeconds(), FIRST + DAYS * DAY)
    await assertReports()
  })

  it('are not made of a day that is not over', async () => {
    await charge(keys[0], [
      { at: Math.max(todaySeconds, nowSeconds - 60), model: 'gpt', operation: 'chat', team: 'ads' },
    ])
    await adding()
    assert.equal(await combine(1_000), 0)
    assert.ok((await untilSeconds()) <= todaySeconds)
    await assertReports()
  })

  it('are read by a report in the place of hours: a month of what would be refused by the hour', async () => {
    const { accountId, credentialId } = await makeParty(pool, 1n)
    const MONTH = 30
    // Yesterday is combined ten minutes after midnight.
    const [kinds, endSeconds] = [150, todaySeconds - DAY]
    const startSeconds = endSeconds - MONTH * DAY
    const counts =
      'requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged'
    await session.query(
      `insert into usage_sums (credential_id, about, grain, subject, starts_at, operation, model, account_id, ${counts})
       select $1::uuid, 'tag:env', 'hour', 'prod', to_timestamp($3) + make_interval(hours => hour), 'operation ' || kind / 10, 'model ' || kind % 10, $2, 1, 0, 0, 0, 0, 0, 2, 2
       from generate_series(0, $4::integer) hour, generate_series(0, $5::integer - 1) kind`,
      [credentialId, accountId, startSeconds, MONTH * 24 - 1, kinds],
    )
    const query = {
      scope: { accountId },
      startSeconds,
      endSeconds,
      groupBy: 'model',
      filter: { tag: { name: 'env', value: 'prod' } },
    } as const
    assert.ok(MONTH * 24 * kinds > COMBINED_SUMS_MOST)
    await session.query('delete from usage_combined')
    await assert.rejects(readUsage(pool, query), { code: 'invalid_request', message: /50,000/ })
    // As they are when whoever combines has come to the end of the month.
    await session.query(
      `insert into usage_totals (scope_id, about, grain, subject, starts_at, account_id, ${counts})
       select $1::uuid, 'tag:env', 'day', 'prod', to_timestamp($3) + make_interval(hours => 24 * day), $2, 1, 0, 0, 0, 0, 0, 2, 2 from generate_series(0, $4::integer) day`,
      [credentialId, accountId, startSeconds, MONTH - 1],
    )
    await forgetDays()
    await combineUntil(endSeconds, 50)
    const { groups = [], totals } = await readUsage(pool, query)
    assert.equal(totals.requests, BigInt(MONTH * 24 * kinds))
    assert.deepEqual(
      groups.map(({ totals: own, buckets }) => [own.charged, buckets.length]),
      Array.from({ length: 10 }, () => [BigInt(MONTH * 24 * kinds * 2) / 10n, MONTH]),
    )
    const { groupBy: _, ...ofTag } = query
    const byHour = { ...ofTag, bucket: 'hour', filter: { ...query.filter, model: 'model 1' } } as const
    await assert.rejects(readUsage(pool, byHour), { code: 'invalid_request', message: /50,000/ })
    assert.equal(
      (await readUsage(pool, { ...byHour, bucket: 'day' })).totals.requests,
      BigInt((MONTH * 24 * kinds) / 10),
    )
    // The parts of the first and the last day are hours.
    const cut = await readUsage(pool, { ...query, startSeconds: startSeconds + HOUR, endSeconds: endSeconds - HOUR })
    assert.equal(cut.totals.requests, BigInt((MONTH * 24 - 2) * kinds))
    for (const table of ['usage_sums', 'usage_totals'])
      await session.query(`delete from ${table} where account_id = $1`, [accountId])
  })

  it('lose the labels of an account that is closed, also where its hours were being combined meanwhile', async () => {
    await bookAnew((text) => session.query(text))
    await adding()
    while ((await combine(100)) > 0);
    const labels = async () => {
      const [row] = await session.query(
        "select count(subject_label)::integer as labels from usage_sums where grain = 'day'",
      )
      return row?.labels
    }
    assert.ok(Number(await labels()) > 0)
    await forgetDays()
    const other = await openSession(database.url)
    try {
      await other.query('begin')
      await other.query('select combine_usage_days(most => 1000)')
      const erasing = (async () => {
        for (const { portion } of labelSteps(pool, keys[0].accountId))
          for (let place = await portion(null); place !== null; place = await portion(place));
      })()
      const isWaiting = async () =>
        (
          await session.query(
            `select from pg_locks where locktype = 'advisory' and not granted
             and database = (select oid from pg_database where datname = current_database())`,
          )
        ).length > 0
      await until(isWaiting, PATIENCE_MS, 'who erases waits for who combines')
      await other.query('commit')
      await erasing
    } finally {
      await other.close()
    }
    assert.equal(await labels(), 0)
    while ((await combine(100)) > 0);
    assert.equal(await labels(), 0)
    await assertReports()
  })

  it('are dropped with the hours that they were made of: those by name first, and without reading the others', async () => {
    const [KEPT, NAMED] = [5_000, 40]
    const counts =
      'requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged'
    const fill = (subject: string, rows: number) =>
      session.query(
        `insert into usage_sums (credential_id, about, grain, subject, starts_at, operation, model, account_id, ${counts})
         select gen_random_uuid(), 'tag:team', 'day', $1, date_trunc('day', now(), 'UTC') - make_interval(days => 150), '', '', gen_random_uuid(), 1, 0, 0, 0, 0, 0, 1, 1
         from generate_series(1, $2::integer)`,
        [subject, rows],
      )
    await fill('', KEPT)
    await fill('red', NAMED)
    const read = await rowsRead(database.url, 'usage_sums', async (one) => {
      const { rows } = await one.query(
        `select drop_old_usage(of_table => 'usage_sums', first_lasting => now() - interval '1100 days', first_brief => now() - interval '101 days', most => 5000) as dropped`,
      )
      assert.deepEqual(rows, [{ dropped: NAMED }])
    })
    assert.ok(read <= 2 * NAMED, `${read} rows read`)
    await fill('red', NAMED)
    assert.equal(await dropOldUsage(pool, 1_100), NAMED)
    await session.query("delete from usage_sums where starts_at < now() - interval '140 days'")
    await assertReports()
  })

  it('and hours are known to be gone up to what was dropped, wherever a clock was that ran ahead', async () => {
    const [before] = await session.query('select hours_from from usage_kept')
    await session.query(
      `select drop_old_usage(of_table => 'usage_sums', first_lasting => '-infinity', first_brief => now() + interval '264 days', most => 1000000)`,
    )
    const [row] = await session.query(
      "select hours_from <= now() + interval '1 hour' as is_past, hours_from from usage_kept",
    )
    assert.equal(row?.is_past, true)
    assert.notDeepEqual(row?.hours_from, before?.hours_from)
  })
})

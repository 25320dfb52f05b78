import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { dropOldUsage } from '../../server/src/ledger/retention.ts'
import { readUsage } from '../../server/src/ledger/usage.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { rowsRead } from '../storage/rows-read.ts'
import { callOf, makeParty, openSession, type Party, postOf } from './session.ts'
import { bookAnew } from './usage-rows.ts'
import { connect, ids, makeCredential } from './world.ts'

/** Sums by day: of very many names, for how long they are kept, and how they come to a database that has sums by hour. */
const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

const DAY = 86_400
const nowSeconds = Math.floor(Date.now() / 1_000)
const todaySeconds = Math.floor(nowSeconds / DAY) * DAY
const AT_ONCE = 200

/** A call for each, each for another end user and of another run. */
async function charge(party: Party, amounts: readonly bigint[], name = 'person'): Promise<void> {
  for (let from = 0; from < amounts.length; from += AT_ONCE) {
    const some = amounts.slice(from, from + AT_ONCE).map((amount, at) => {
      const endUser = { id: ids.next(), label: `${name} ${from + at}` }
      const tags = [{ name: 'run', value: String(from + at) }]
      return { amount, call: callOf(party, { hold: 10_000n, attribution: { model: 'gpt', endUser, tags } }) }
    })
    await session.begin(...some.map(({ call }) => call))
    await session.end(...some.map(({ call, amount }) => postOf(call, amount)))
  }
}

async function move({ accountId }: Party, days: number): Promise<void> {
  await session.query('set session_replication_role = replica')
  await session.query(
    `update charges set ended_at = $2 where account_id = $1 and ended_at > now() - interval '1 hour'`,
    [accountId, new Date((todaySeconds - days * DAY + 7 * 3_600) * 1_000)],
  )
  await session.query('reset session_replication_role')
  await bookAnew((text) => session.query(text))
  while ((await addUpUsage(pool)) > 0);
}

describe('a report by day', () => {
  it('finds the largest of very many end users and runs, has the others as one, and does not count them', async () => {
    const MANY = 1_300
    const party = await makeParty(pool, 10n ** 12n)
    await charge(
      party,
      Array.from({ length: MANY }, (_, at) => BigInt(1 + ((at * 7) % MANY))),
    )
    await move(party, 2)
    const sum = (BigInt(MANY) * BigInt(MANY + 1)) / 2n
    const largest = Array.from({ length: 50 }, (_, at) => BigInt(MANY - at))
    // Whole days, and from and until the middle of one.
    for (const window of [
      { startSeconds: todaySeconds - 3 * DAY, endSeconds: todaySeconds },
      { startSeconds: todaySeconds - 3 * DAY - 777, endSeconds: todaySeconds - 1.5 * DAY },
    ])
      for (const scope of [party, { accountId: party.accountId }])
        for (const groupBy of ['end_user', { tag: 'run' }] as const)
          for (const bucket of ['day', 'hour'] as const)
            for (const filter of [{}, { model: 'gpt' }, { credentialId: party.credentialId }]) {
              const { groups = [], otherGroups } = await readUsage(pool, { scope, ...window, groupBy, bucket, filter })
              assert.deepEqual(
                groups.filter(({ kind }) => kind === 'group').map(({ totals }) => totals.charged),
                largest,
              )
              const rest = groups.slice(50).map(({ kind, totals }) => [kind, totals.requests, totals.charged])
              const told = largest.reduce((all, one) => all + one, 0n)
              assert.deepEqual(rest, [['other', BigInt(MANY - 50), sum - told]])
              assert.equal(otherGroups, undefined, 'too many to count')
            }
    assert.deepEqual(await verifyLedger(pool), [])
  })

  it('finds who made the most requests among very many who paid nothing', async () => {
    const party = await makeParty(pool, 10n ** 12n)
    const endUser = { id: ids.next(), label: 'busy' }
    await charge(
      party,
      Array.from({ length: 1_100 }, () => 0n),
    )
    for (const _ of [1, 2, 3]) {
      const call = callOf(party, { hold: 1n, attribution: { model: 'gpt', endUser, tags: [] } })
      await session.begin(call)
      await session.end(postOf(call, 0n))
    }
    await move(party, 2)
    const window = { scope: party, startSeconds: todaySeconds - 3 * DAY, endSeconds: todaySeconds }
    const { groups = [] } = await readUsage(pool, { ...window, groupBy: 'end_user' })
    assert.deepEqual([groups[0]?.label, groups[0]?.totals.requests], ['busy', 3n])
  })

  it('has the end users of a key that is asked for, however much those of another paid in an hour of which it has a part', async () => {
    const rich = await makeParty(pool, 10n ** 12n)
    const party = { ...rich, credentialId: await makeCredential(pool, rich.accountId) }
    await charge(
      rich,
      Array.from({ length: 600 }, () => 9_000n),
      'rich',
    )
    await charge(party, [1n, 2n, 3n], 'poor')
    await move(rich, 2)
    const startSeconds = todaySeconds - 2 * DAY + 7 * 3_600 - 60
    const window = { scope: { accountId: rich.accountId }, startSeconds, endSeconds: startSeconds + 600 }
    const { groups = [] } = await readUsage(pool, {
      ...window,
      groupBy: 'end_user',
      filter: { credentialId: party.credentialId },
    })
    assert.deepEqual(
      groups.map(({ kind, totals }) => [kind, totals.charged]),
      [3n, 2n, 1n].map((charged) => ['group', charged]),
    )
  })
})

describe('sums that are old', () => {
  it('are dropped in portions, those of hours by name first; days stay right, and a report that has none is refused', async () => {
    const party = await makeParty(pool, 10n ** 12n)
    await session.query('select make_charge_partition(current_date - day) from generate_series(100, 131) day')
    await charge(
      party,
      Array.from({ length: 30 }, () => 7n),
    )
    await move(party, 130)
    const rows = async () => {
      const [counts] = await session.query(
        `select (select count(*)::integer from usage_sums where account_id = $1 and subject <> '') as named,
           (select count(*)::integer from usage_sums where account_id = $1 and subject = '') as others,
           count(*) filter (where grain = 'hour' and is_named)::integer as "namedAlone",
           count(*) filter (where grain = 'hour' and not is_named)::integer as "othersAlone",
           count(*) filter (where grain = 'day')::integer as days
         from usage_totals cross join lateral (select subject <> '' and about not in ('operation', 'model')) one (is_named) where account_id = $1`,
        [party.accountId],
      )
      return counts
    }
    const before = await rows()
    const window = { scope: party, startSeconds: todaySeconds - 131 * DAY, endSeconds: nowSeconds, nowSeconds }
    const told = async () => {
      const { totals, groups = [] } = await readUsage(pool, { ...window, groupBy: 'end_user' })
      return [totals.requests, groups.length, groups.reduce((all, one) => all + one.totals.charged, 0n)]
    }
    assert.deepEqual(await told(), [30n, 30, 210n])
    const portion = (days: number, most: number) =>
      session.query(
        `select drop_old_usage(of_table => 'usage_sums', first_lasting => now() - make_interval(days => 1100), first_brief => now() - make_interval(days => $1), most => $2) as dropped`,
        [days, most],
      )
    assert.deepEqual(await portion(101, 25), [{ dropped: 25 }])
    assert.deepEqual(await told(), [30n, 30, 210n])
    assert.deepEqual(await verifyLedger(pool), [])
    assert.deepEqual([before?.named, before?.namedAlone, before?.othersAlone], [60, 120, 10])
    assert.equal(await dropOldUsage(pool, 1_100), 35 + 120)
    assert.deepEqual(await rows(), { ...before, named: 0, namedAlone: 0 })
    assert.deepEqual(await told(), [30n, 30, 210n])
    assert.deepEqual(await verifyLedger(pool), [])

    for (const wrong of [
      { ...window, groupBy: 'end_user', bucket: 'hour', endSeconds: window.startSeconds + 2 * DAY },
      { ...window, groupBy: 'end_user', startSeconds: window.startSeconds + 1 },
      { ...window, groupBy: 'end_user', filter: { model: 'gpt' } },
      { ...window, groupBy: 'model', filter: { tag: { name: 'run', value: '1' } } },
    ] as const)
      await assert.rejects(readUsage(pool, wrong), { code: 'invalid_request' })
    const { totals } = await readUsage(pool, { ...window, filter: { tag: { name: 'run', value: '1' } } })
    assert.equal(totals.requests, 1n)
    const { groups } = await readUsage(pool, { ...window, startSeconds: window.startSeconds + 1, groupBy: 'model' })
    assert.equal(groups?.[0]?.totals.requests, 30n)

    assert.equal(await dropOldUsage(pool, 120), 0, 'sums stay as long as the charges that they are made of')
    await session.query(`insert into dropped_days values (current_date - 121)`)
    assert.ok((await dropOldUsage(pool, 120)) > 0)
    assert.deepEqual(await rows(), { named: 0, others: 0, namedAlone: 0, othersAlone: 0, days: 0 })
  })
})

describe('sums that are kept for longer', () => {
  const KEPT = 20_000
  const counts =
    'requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged'
  const fill = (about: string, subject: string, hours: number) =>
    session.query(
      `insert into usage_totals (scope_id, about, grain, subject, starts_at, account_id, ${counts})
       select gen_random_uuid(), $1, 'hour', $2, date_trunc('hour', now(), 'UTC') - make_interval(days => 150, hours => -n), gen_random_uuid(), 1, 0, 0, 0, 0, 0, 1, 1
       from generate_series(1, $3::integer) kept, lateral (select kept % 24) one (n)`,
      [about, subject, hours],
    )
  const NAMED = 40

  it('are not read to find those that are to be dropped', async () => {
    for (const about of ['operation', 'model']) await fill(about, 'some', KEPT / 4)
    await fill('tag:team', 'red', NAMED)
    await fill('tag:team', '', KEPT / 2)
    const read = await rowsRead(database.url, 'usage_totals', async (one) => {
      const { rows } = await one.query(
        `select drop_old_usage(of_table => 'usage_totals', first_lasting => now() - interval '1100 days', first_brief => now() - interval '101 days', most => 5000) as dropped`,
      )
      assert.deepEqual(rows, [{ dropped: NAMED }])
    })
    // Found, and then deleted.
    assert.ok(read <= 2 * NAMED, `${read} rows read`)
  })

  it('and those of a table that cannot be dropped keep none of the others from being dropped', async () => {
    await fill('tag:team', 'red', NAMED)
    await session.query(
      `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$`,
    )
    await session.query('create trigger refuse before delete on usage_sums execute function refuse()')
    await assert.rejects(dropOldUsage(pool, 1_100), /not now/)
    await session.query('drop trigger refuse on usage_sums')
    const left = await session.query(`select count(*)::integer as count from usage_totals where subject = 'red'`)
    assert.deepEqual(left, [{ count: 0 }])
    await session.query(`delete from usage_totals where starts_at < now() - interval '140 days'`)
  })
})

describe('whose spend a call is', () => {
  it('is kept short by the database too', async () => {
    const party = await makeParty(pool, 10n ** 6n)
    const tags = (count: number, value = 'x') => Array.from({ length: count }, (_, at) => ({ name: `t${at}`, value }))
    const beginWith = (label: string, some: ReturnType<typeof tags>) =>
      session.begin(
        callOf(party, { hold: 1n, attribution: { model: null, endUser: { id: ids.next(), label }, tags: some } }),
      )
    const [begun] = await beginWith('x'.repeat(64), tags(8, 'v'.repeat(64)))
    assert.equal(begun?.outcome, 'begun')
    await assert.rejects(beginWith('x'.repeat(65), []), /short_attribution/)
    await assert.rejects(beginWith('x', tags(1, 'v'.repeat(1_100))), /short_attribution/)
  })
})

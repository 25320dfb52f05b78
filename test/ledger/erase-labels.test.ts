import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import {
  COMBINED_DAYS,
  COMBINED_HOURS,
  chargesOfDay,
  DAYS,
  endOfSums,
  entriesOf,
  eraseOfDay,
  eraseSums,
  HOURS,
  keysOf,
  labelSteps,
} from '../../server/src/ledger/erase-labels.ts'
import { reverseCharge } from '../../server/src/ledger/reverse.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { nodesOf } from '../acceptance/plan-nodes.ts'
import { callOf, makeParty, openSession, postOf } from './session.ts'
import { connect, ids } from './world.ts'

const { url } = await freshDatabase()
const { pools } = connect(url)
const pool = pools.rest
const session = await openSession(url)
after(async () => {
  await session.close()
  await pools.close()
})

/** More than one portion, of two end users, with one call given back. */
const CALLS = 2_100
const AT_ONCE = 300

async function makeLabelled() {
  const party = await makeParty(pool, 1_000_000n)
  const users = ['zoe', 'yan'].map((label) => ({ id: ids.next(), label }))
  const calls = Array.from({ length: CALLS }, (_, at) => {
    const endUser = users[at % users.length] ?? null
    return callOf(party, { hold: 10n, attribution: { model: null, endUser, tags: [] } })
  })
  for (let from = 0; from < CALLS; from += AT_ONCE) {
    const some = calls.slice(from, from + AT_ONCE)
    await session.begin(...some)
    await session.end(...some.map((one) => postOf(one, 7n)))
  }
  return { ...party, first: calls[0]?.id ?? '' }
}

/** How many portions it took. */
async function erase(accountId: string): Promise<number> {
  let portions = 0
  for (const { portion } of labelSteps(pool, accountId)) {
    let after: Awaited<ReturnType<typeof portion>> = null
    do {
      after = await portion(after)
      portions += 1
    } while (after !== null)
  }
  return portions
}

const labelsOf = async (accountId: string) => {
  const { rows } = await pool.query(
    `select (select count(*)::integer from charges where account_id = $1 and end_user_label is not null) as charges,
       (select count(*)::integer from entries where account_id = $1 and end_user_label is not null) as entries,
       (select count(*)::integer from usage_sums where account_id = $1 and subject_label is not null) as sums,
       (select count(*)::integer from usage_totals where account_id = $1 and grain = 'hour' and subject_label is not null) as hours,
       (select count(*)::integer from usage_totals where account_id = $1 and grain = 'day' and subject_label is not null) as days,
       (select count(*)::integer from usage_tail where account_id = $1 and end_user_label is not null) as waiting`,
    [accountId],
  )
  return rows[0]
}

describe('labels of end users', () => {
  it('are erased everywhere, of one account alone, and nothing of money changes', async () => {
    const [one, other] = [await makeLabelled(), await makeLabelled()]
    await addUpUsage(pool)
    for (const { first } of [one, other]) await reverseCharge(pool, ids.next(), first, nanos(3n))
    const before = await labelsOf(one.accountId)
    assert.deepEqual(
      [before.charges, before.entries > 0, before.hours > 0, before.days > 0, before.waiting > 0],
      [CALLS, true, true, true, true],
    )
    const kept = await labelsOf(other.accountId)
    const money = () =>
      pool
        .query('select id, amount, end_user from charges where account_id = $1 order by id', [one.accountId])
        .then(({ rows }) => rows)
    const charged = await money()
    await erase(one.accountId)
    assert.deepEqual(await labelsOf(one.accountId), { charges: 0, entries: 0, sums: 0, hours: 0, days: 0, waiting: 0 })
    assert.deepEqual(await labelsOf(other.accountId), kept)
    assert.deepEqual(await money(), charged)
    await addUpUsage(pool)
    assert.deepEqual(await labelsOf(one.accountId), { charges: 0, entries: 0, sums: 0, hours: 0, days: 0, waiting: 0 })
    assert.deepEqual(await verifyLedger(pool), [])
  })

  it('are all that can be taken from a charge or an entry, and nothing can be put in their place', async () => {
    const { accountId, first } = await makeLabelled()
    await reverseCharge(pool, ids.next(), first, nanos(3n))
    for (const table of ['charges', 'entries'])
      for (const change of [
        "end_user_label = 'another'",
        'end_user_label = null, end_user = null',
        'end_user_label = null, promo = promo + 1',
        'promo = promo + 1',
      ])
        await assert.rejects(
          pool.query(`update ${table} set ${change} where account_id = $1 and end_user_label is not null`, [accountId]),
          /are immutable/,
          `${table} ${change}`,
        )
    await assert.rejects(pool.query('delete from charges where account_id = $1', [accountId]), /are immutable/)
  })

  it('are found where they can be only: since there is the account', async () => {
    const { accountId } = await makeParty(pool, 1n)
    await pool.query('select make_charge_partition(current_date - 40), make_charge_partition(current_date - 20)')
    const days = async () => {
      const walked: string[] = []
      const [, charges] = labelSteps(pool, accountId)
      for (let after = await charges?.portion(null); after; after = await charges?.portion(after))
        walked.push(after[0]?.slice(0, 8) ?? '')
      return walked
    }
    const dayOf = (ago: number) =>
      new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10).replaceAll('-', '')
    assert.ok(!(await days()).includes(dayOf(20)))
    await pool.query("update accounts set created_at = created_at - interval '30 days' where id = $1", [accountId])
    const walked = await days()
    assert.ok(walked.includes(dayOf(20)) && walked.includes(dayOf(0)) && !walked.includes(dayOf(40)), walked.join())
  })

  it('are found by an index, in the charges of one day at a time', async () => {
    const { accountId, credentialId } = await makeLabelled()
    await addUpUsage(pool)
    await pool.query('select make_charge_partition(current_date + day) from generate_series(1, 30) day')
    await pool.query('vacuum (analyze)')
    const client = await pool.connect()
    try {
      await client.query('set enable_seqscan = off')
      const today = new Date().toISOString().slice(0, 10).replaceAll('-', '')
      const later = new Date(Date.now() + 12 * 86_400_000).toISOString().slice(0, 10).replaceAll('-', '')
      const inDay = (day: string) => ({ accountId, day, at: '-infinity', id: accountId })
      const end = ['zoe', '2026-01-01T00:00:00Z']
      const statements: readonly (readonly [index: RegExp, statement: { text: string; values: unknown[] }])[] = [
        [/^charges_\d+_account_id_ended_at_idx$/, chargesOfDay(inDay(later))],
        [/^charges_\d+_pkey$/, eraseOfDay(today, [accountId])],
        [/^entries_of_account/, entriesOf(accountId, [])],
        [/^usage_sums_of_account$/, endOfSums(COMBINED_HOURS, accountId, [])],
        [/^usage_sums_of_account$/, eraseSums(COMBINED_HOURS, accountId, [], end)],
        [/^usage_sums_of_account$/, endOfSums(COMBINED_DAYS, accountId, [])],
        [/^usage_sums_of_account$/, eraseSums(COMBINED_DAYS, accountId, [], end)],
        [/^usage_totals_pkey$/, endOfSums(HOURS, credentialId, [])],
        [/^usage_totals_pkey$/, eraseSums(HOURS, credentialId, [], end)],
        [/^usage_totals_pkey$/, endOfSums(DAYS, credentialId, [])],
        [/^usage_totals_pkey$/, eraseSums(DAYS, credentialId, [], null)],
        [/^credentials_(in_order|of_account)$|^usage_totals/, keysOf(HOURS, accountId, accountId)],
        [/^credentials_(in_order|of_account)$|^usage_totals/, keysOf(DAYS, accountId, accountId)],
      ]
      for (const [index, { text, values }] of statements) {
        const { rows } = await client.query(`explain (format json) ${text}`, values)
        const nodes = nodesOf(Object(rows[0])['QUERY PLAN'][0].Plan)
        const scans = nodes.filter((node) => /^(Seq|Index|Bitmap Heap)/.test(String(node['Node Type'])))
        const names = nodes.flatMap((node) => node['Index Name'] ?? [])
        assert.deepEqual(
          scans.filter((node) => node['Node Type'] === 'Seq Scan'),
          [],
          text,
        )
        assert.ok(
          names.some((name) => index.test(String(name))),
          `${text}\n${names.join()}`,
        )
        const opened = new Set(
          nodes.flatMap((node) => node['Relation Name'] ?? []).filter((name) => /^charges_/.test(String(name))),
        )
        assert.ok(opened.size <= 1, `${text}\n${[...opened].join()}`)
      }
    } finally {
      client.release(true)
    }
  })

  it('are erased by portions that go on where the last one ended', async () => {
    const { accountId } = await makeLabelled()
    const charges = labelSteps(pool, accountId).find(({ name }) => name === 'charges')
    let [after, longest] = [await charges?.portion(null), 0]
    while (after) {
      if (after.length > 1) {
        longest = Math.max(longest, (await labelsOf(accountId)).charges)
      }
      after = await charges?.portion(after)
    }
    assert.equal(longest, CALLS - 2_000)
    assert.equal((await labelsOf(accountId)).charges, 0)
  })
})

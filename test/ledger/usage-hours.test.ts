import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { z } from 'zod'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { readUsage } from '../../server/src/ledger/usage.ts'
import type { UsageQuery } from '../../server/src/ledger/usage-query.ts'
import { COMBINED_SUMS_MOST } from '../../server/src/ledger/usage-sources.ts'
import { usageStatement } from '../../server/src/ledger/usage-statement.ts'
import { makeParty, openSession, type Party } from './session.ts'
import { connect, makeCredential } from './world.ts'

/** How much reports by hour read, of very many end users and runs, each of all keys, operations and models. */
const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

const [HOUR, DAY] = [3_600, 86_400]
const endSeconds = Math.floor(Date.now() / 1_000 / DAY) * DAY
const DAYS = 2
const HOURS = 24 * DAYS
const startSeconds = endSeconds - DAYS * DAY
const NAMES = 120
/** Of keys, operations and models together. */
const KINDS = 4
const GROUPS = 50
let party: Party

/** In the tail, as END leaves it: each name, of each kind, in each hour. What a name has in an hour is its number for each kind. */
before(async () => {
  party = await makeParty(pool, 10n ** 12n)
  const second = await makeCredential(pool, party.accountId)
  await session.query(
    `insert into usage_tail (account_id, credential_id, at, operation, model, end_user, end_user_label, tags,
       requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
     select $1::uuid, case kind % 2 when 0 then $2::uuid else $3::uuid end, to_timestamp($4::float8 + hour * 3600 + 1), 'operation ' || kind % 2, 'model ' || kind,
       lpad(to_hex(name), 32, '0')::uuid, 'person ' || name, array['run=' || name], 1, 0, 0, 0, 0, 0, name, name
     from generate_series(0, $5::integer - 1) hour, generate_series(1, $6::integer) name, generate_series(1, $7::integer) kind`,
    [party.accountId, party.credentialId, second, startSeconds, HOURS, NAMES, KINDS],
  )
  while ((await addUpUsage(pool)) > 0);
  await session.query('analyze')
})

const plan = z.object({
  'Relation Name': z.string().optional(),
  'Actual Rows': z.number(),
  'Actual Loops': z.number(),
  'Rows Removed by Filter': z.number().default(0),
  'Rows Removed by Index Recheck': z.number().default(0),
  get Plans() {
    return z.array(plan).default([])
  },
})
type Plan = z.infer<typeof plan>

/** How many rows of the sums the statement of a report reads, by table. */
async function readBy(query: UsageQuery): Promise<Readonly<Record<string, number>>> {
  const { text, values } = usageStatement(query)
  const rows = await session.query(`explain (analyze, format json) ${text}`, [...values])
  const [row] = z.tuple([z.object({ 'QUERY PLAN': z.tuple([z.object({ Plan: plan })]) })]).parse(rows)
  const read: Record<string, number> = { usage_sums: 0, usage_totals: 0, charges: 0 }
  const count = (node: Plan) => {
    const { 'Relation Name': table, 'Actual Rows': own, 'Actual Loops': loops } = node
    const rest = node['Rows Removed by Filter'] + node['Rows Removed by Index Recheck']
    if (table !== undefined) read[table] = (read[table] ?? 0) + Math.round((own + rest) * loops)
    for (const one of node.Plans) count(one)
  }
  count(row['QUERY PLAN'][0].Plan)
  return read
}

describe('a report by hour', () => {
  const window = { startSeconds, endSeconds, bucket: 'hour' } as const
  const account = () => ({ accountId: party.accountId })

  it('reads the hours of the largest alone, whatever keys, operations and models they used, and tells them and the others exactly', async () => {
    for (const groupBy of ['end_user', { tag: 'run' }] as const)
      for (const scope of [account(), { credentialId: party.credentialId }]) {
        const kinds = 'accountId' in scope ? KINDS : KINDS / 2
        const query = { ...window, scope, groupBy }
        const { groups = [], totals } = await readUsage(pool, query)
        const shown = groups.filter(({ kind }) => kind === 'group')
        const largest = Array.from({ length: GROUPS }, (_, at) => BigInt(NAMES - at))
        assert.deepEqual(
          shown.map(({ totals: own }) => own.charged),
          largest.map((name) => name * BigInt(HOURS * kinds)),
        )
        for (const [at, { buckets }] of shown.entries())
          assert.deepEqual(
            buckets.map(({ charged, requests }) => [charged, requests]),
            Array.from({ length: HOURS }, () => [(largest[at] ?? 0n) * BigInt(kinds), BigInt(kinds)]),
          )
        const [other, ...none] = groups.slice(GROUPS)
        const rest = BigInt(((NAMES - GROUPS) * (NAMES - GROUPS + 1)) / 2)
        assert.deepEqual([other?.kind, other?.totals.charged], ['other', rest * BigInt(HOURS * kinds)])
        assert.deepEqual(none, [])
        assert.equal(totals.requests, BigInt(NAMES * HOURS * kinds))
        const { usage_totals, usage_sums, charges } = await readBy(query)
        // The largest, what all have that have one, and what all have; and of each name its days, to find the largest.
        assert.deepEqual([usage_totals, usage_sums, charges], [(GROUPS + 2) * HOURS + 2 * NAMES * DAYS, 0, 0])
      }
  })

  it('by operation or model reads one row for each of them and hour, and for all', async () => {
    for (const [groupBy, each] of [
      ['operation', 2],
      ['model', KINDS],
    ] as const) {
      const query = { ...window, scope: account(), groupBy }
      const { groups = [] } = await readUsage(pool, query)
      const all = BigInt((NAMES * (NAMES + 1)) / 2)
      assert.deepEqual(
        new Set(groups.map(({ totals }) => totals.charged)),
        new Set([(all * BigInt(HOURS * KINDS)) / BigInt(each)]),
      )
      const { usage_totals, usage_sums } = await readBy(query)
      assert.deepEqual([usage_totals, usage_sums], [(each + 1) * HOURS, 0])
    }
  })

  it('of days that it has a part of reads one row for each name and hour too', async () => {
    const cut = { scope: account(), startSeconds: startSeconds + HOUR, endSeconds: endSeconds - HOUR }
    const { groups = [] } = await readUsage(pool, { ...cut, groupBy: { tag: 'run' } })
    assert.equal(groups[0]?.totals.charged, BigInt(NAMES * KINDS * (HOURS - 2)))
    const { usage_totals, usage_sums } = await readBy({ ...cut, groupBy: { tag: 'run' } })
    assert.deepEqual([usage_totals, usage_sums], [(NAMES + 2) * (HOURS - 2) + NAMES * DAYS, 0])
  })

  it('that combines two is exact up to the limit of sums, and refused above it, having read no more', async () => {
    const combined = {
      ...window,
      scope: { accountId: (await makeParty(pool, 1n)).accountId },
      groupBy: 'model',
      filter: { tag: { name: 'run', value: 'all' } },
    } as const
    const counts =
      'requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged'
    const add = (from: number, to: number) =>
      session.query(
        `with added as (
           insert into usage_sums (credential_id, about, grain, subject, starts_at, operation, model, account_id, ${counts})
           select $1::uuid, 'tag:run', 'hour', 'all', to_timestamp($2), 'operation ' || n / 40, 'model ' || n % 40, $1, 1, 0, 0, 0, 0, 0, 2, 2
           from generate_series($3::integer, $4::integer) n returning 1
         )
         insert into usage_totals as row (scope_id, about, grain, subject, starts_at, account_id, ${counts})
         select $1, 'tag:run', 'hour', 'all', to_timestamp($2), $1, count(*), 0, 0, 0, 0, 0, 2 * count(*), 2 * count(*) from added
         on conflict (scope_id, about, grain, subject, starts_at) do update set requests = row.requests + excluded.requests`,
        [combined.scope.accountId, startSeconds, from, to],
      )
    await add(1, COMBINED_SUMS_MOST)
    const { totals, groups = [] } = await readUsage(pool, combined)
    assert.equal(totals.requests, BigInt(COMBINED_SUMS_MOST))
    assert.equal(
      groups.reduce((sum, group) => sum + group.totals.charged, 0n),
      2n * BigInt(COMBINED_SUMS_MOST),
    )
    // Of one in forty, of which a model is.
    const { groupBy: _model, ...ofTag } = combined
    const rare = { ...ofTag, filter: { ...combined.filter, model: 'model 1' } } as const
    assert.equal((await readUsage(pool, rare)).totals.requests, BigInt(COMBINED_SUMS_MOST / 40))
    await add(COMBINED_SUMS_MOST + 1, COMBINED_SUMS_MOST + 5_000)
    const key = { credentialId: combined.scope.accountId }
    for (const query of [
      combined,
      { ...combined, bucket: 'day' } as const,
      rare,
      { ...rare, filter: { ...rare.filter, ...key } },
      { ...rare, scope: key },
      { ...rare, filter: { ...rare.filter, operation: 'another' } },
    ]) {
      await assert.rejects(readUsage(pool, query), {
        code: 'invalid_request',
        message: /more than 50,000 sums, which is the limit.* Ask for a shorter window/,
      })
      const { usage_sums } = await readBy(query)
      assert.equal(usage_sums, COMBINED_SUMS_MOST + 1)
    }
    // An operation and a model, of whatever it was for: over years too.
    await session.query("update usage_sums set about = '', subject = '' where account_id = $1", [
      combined.scope.accountId,
    ])
    const ofBoth = { scope: combined.scope, filter: { operation: 'another', model: 'model 1' } }
    const years = { ...ofBoth, startSeconds: endSeconds - 1_000 * DAY, endSeconds }
    await assert.rejects(readUsage(pool, years), { code: 'invalid_request', message: /50,000/ })
    assert.equal((await readBy(years)).usage_sums, COMBINED_SUMS_MOST + 1)
    // Of one dimension there are sums of their own.
    const { groupBy: _, ...alone } = combined
    assert.equal((await readUsage(pool, alone)).totals.requests, BigInt(COMBINED_SUMS_MOST + 5_000))
  })
})

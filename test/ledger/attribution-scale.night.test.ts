import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { z } from 'zod'
import { measure } from '../../harness/figures.ts'
import { startPostgres } from '../../harness/postgres.ts'
import { count, isFullProof, recordProof, tellProgress } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { Fault } from '../../server/src/kernel/fault.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { readUsage } from '../../server/src/ledger/usage.ts'
import type { GroupBy, UsageFilter, UsageQuery } from '../../server/src/ledger/usage-query.ts'
import { COMBINED_SUMS_MOST } from '../../server/src/ledger/usage-sources.ts'
import { type Span, splitByDays, splitByHours } from '../../server/src/ledger/usage-window.ts'
import { createColumnTypes } from '../../server/src/storage/column-types.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { addUpAtOnce, bookAnew } from './usage-rows.ts'
import { connect, pg } from './world.ts'

/** How long reports by whose spend it is take, over a week of many charges. */
const PROOF = 'attribution-scale'
const CHARGES = count({ full: 10_000_000, reduced: 7_000 })
/** One in so many is of the first account, so that it has some of each kind where there are few. */
const ONE_IN = count({ full: 10, reduced: 2 })
const ACCOUNTS = 50
const KEYS_EACH = 4
/** Of the first account, and of each of the others. */
const END_USERS = { first: 100_000, others: 100 }
const DAYS = 7
const DAY = 86_400
/** Judged in proofs only. */
const LIMIT_MS = 300

/** A PostgreSQL with as much memory for its pages as its manual advises for a small machine: reports are to be as fast there, not on its defaults. */
async function largeDatabase(): Promise<{ readonly url: string }> {
  const postgres = await startPostgres({ settings: { shared_buffers: '2GB' } })
  after(() => postgres.remove())
  await migrate({ url: new Secret(postgres.url()), log: silentLog })
  return { url: postgres.url() }
}

const database = isFullProof ? await largeDatabase() : await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const client = new pg.Client({ connectionString: database.url, types: createColumnTypes() })
// The database may be dropped before this is closed.
client.on('error', () => {})
await client.connect()
after(() => Promise.all([client.end(), pools.close()]))

const endSeconds = Math.floor(Date.now() / 1_000 / DAY) * DAY
const startSeconds = endSeconds - DAYS * DAY

/**
 * A day's charges. A part of them is of the first account, which is asked for its reports: each of its columns is drawn by itself, so that all combine with
 * all, and hardly two charges share a sum. Keys of the others have an operation, a model and a team each, and a run a day, as real ones do: they are there to
 * make tables large.
 */
async function chargeDay(daySeconds: number): Promise<void> {
  await client.query(
    `insert into charges (id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost, executed, failed,
       input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at,
       model, route, end_user, end_user_label, tags)
     select (lpad(to_hex(floor((ended - n % 20) * 1000)::bigint), 12, '0') || lpad(to_hex(n), 20, '0'))::uuid,
       key.account_id, key.id, 'operation ' || operation, 'posted', 1000 + n % 977, 1000 + n % 977, 0, 0, 1500 + n % 977, 0, true, n % 50 = 0,
       n % 1009, n % 997, n % 991, n % 983, '{}', to_timestamp(ended - n % 20), to_timestamp(ended),
       'model ' || model, 'route ' || route, lpad(to_hex(person), 32, '0')::uuid, 'person ' || person, array['run=' || run, 'team=' || team]
     from generate_series(1, $2::integer) n
     cross join lateral (select $1::float8 + (n - 1) * 86400.0::float8 / $2 as ended, n % ${ONE_IN} = 0 as is_first) at
     join keys key on key.place = case when is_first then pg_temp.draw(n, $1, 'key', $4::integer) else $4::integer + pg_temp.draw(n, $1, 'key', $6::integer) end
     cross join lateral (
       select pg_temp.draw(n, $1, 'person', $3::integer) as person, pg_temp.draw(n, $1, 'operation', 8) as operation, pg_temp.draw(n, $1, 'model', 20) as model,
         pg_temp.draw(n, $1, 'route', 3) as route, pg_temp.draw(n, $1, 'run', 200) as run, pg_temp.draw(n, $1, 'team', 10) as team
       where is_first
       union all
       select pg_temp.draw(n, $1, 'person', $5::integer), key.place % 8, key.place % 20, key.place % 3, $1::bigint / 86400 % 200, key.place % 10
       where not is_first
     ) drawn`,
    [daySeconds, Math.floor(CHARGES / DAYS), END_USERS.first, KEYS_EACH, END_USERS.others, (ACCOUNTS - 1) * KEYS_EACH],
  )
}

/** How long it took to combine all days. */
let combiningMs = 0

/** A key of the first account, and an end user of it. */
let busy: Readonly<Record<'accountId' | 'credentialId' | 'endUserId', Id>>

before(async () => {
  await client.query('select make_charge_partition(current_date - day) from generate_series(3, $1::integer) day', [
    DAYS + 1,
  ])
  await client.query(
    `with account as (insert into accounts (id, mode) select gen_random_uuid(), 'live' from generate_series(1, $1::integer) returning id)
     insert into credentials (id, account_id) select gen_random_uuid(), id from account, generate_series(1, $2::integer)`,
    [ACCOUNTS, KEYS_EACH],
  )
  await client.query(
    'create temporary table keys as select row_number() over (order by account_id, id) - 1 as place, id, account_id from credentials',
  )
  await client.query(
    `create function pg_temp.draw(n integer, day float8, salt text, most integer) returns integer language sql immutable
     return ((hashint8extended(n + day::bigint, hashtext(salt)) & 9223372036854775807) % most)::integer`,
  )
  for (let day = 0; day < DAYS; day += 1) await chargeDay(startSeconds + day * DAY)
  tellProgress('charges')
  await bookAnew((text) => client.query(text))
  await addUpAtOnce(client)
  await client.query('analyze')
  const startedAtMs = performance.now()
  for (let idle = 0; idle < 2; ) {
    const { rows } = await client.query('select combine_usage_days(most => 1000) as taken')
    // The last day may have ended with the portion before.
    idle = Number(rows[0]?.taken) === 0 ? idle + 1 : 0
  }
  combiningMs = performance.now() - startedAtMs
  tellProgress('combined')
  await client.query('analyze')
  const { rows } = await client.query(
    `select account_id as "accountId", credential_id as "credentialId", end_user as "endUserId" from charges
     where credential_id = (select id from keys where place = 0) and ended_at > to_timestamp($1) order by ended_at limit 1`,
    [startSeconds + 3 * DAY],
  )
  busy = z.tuple([z.object({ accountId: z.string(), credentialId: z.string(), endUserId: z.string() })]).parse(rows)[0]
})

type View = { readonly groupBy?: GroupBy; readonly filter?: UsageFilter }
const VIEWS: Readonly<Record<string, () => View>> = {
  plain: () => ({}),
  'by key': () => ({ groupBy: 'key' }),
  'by operation': () => ({ groupBy: 'operation' }),
  'by model': () => ({ groupBy: 'model' }),
  'by end user': () => ({ groupBy: 'end_user' }),
  'by team': () => ({ groupBy: { tag: 'team' } }),
  'by run': () => ({ groupBy: { tag: 'run' } }),
  'by end user, of a model': () => ({ groupBy: 'end_user', filter: { model: 'model 8' } }),
  'by model, of a team': () => ({ groupBy: 'model', filter: { tag: { name: 'team', value: '4' } } }),
  'by operation, of an end user': () => ({ groupBy: 'operation', filter: { endUserId: busy.endUserId } }),
}

const OF_TEAM = { tag: { name: 'team', value: '4' } } as const

/**
 * How many sums a view reads that combines a tag, or that there is an end user, with something, for all of it; the others read far fewer than they may. What it
 * reads for its groups comes on top.
 */
async function combinedSums(query: UsageQuery): Promise<number> {
  const { scope, filter = {}, groupBy, bucket = 'day' } = query
  const isByEndUser = groupBy === 'end_user' && filter.model !== undefined
  if (filter.tag === undefined && !isByEndUser) return 0
  const [about, subject] = filter.tag === undefined ? ['end_user', ''] : [`tag:${filter.tag.name}`, filter.tag.value]
  const [column, id] = 'accountId' in scope ? ['account_id', scope.accountId] : ['credential_id', scope.credentialId]
  const { whole } = splitByHours(query)
  // Days that are over for ten minutes are combined: yesterday may not be.
  const { rows: until } = await client.query<{ until: number }>(
    'select extract(epoch from until)::float8 as until from usage_combined',
  )
  const { days, hours } = splitByDays(whole, bucket === 'day', until[0]?.until ?? 0)
  const counted = async (grain: 'day' | 'hour', { from, to }: Span) => {
    const { rows } = await client.query<{ sums: number }>(
      `select count(*)::integer as sums from usage_sums
       where ${column} = $1 and about = $2 and grain = $3 and subject = $4 and starts_at >= to_timestamp($5) and starts_at < to_timestamp($6)`,
      [id, about, grain, subject, from, to],
    )
    return rows[0]?.sums ?? Number.NaN
  }
  let sums = 0
  for (const span of days) sums += await counted('day', span)
  for (const span of hours) sums += await counted('hour', span)
  return sums
}

function timed(title: string, query: UsageQuery): Promise<void> {
  return measure(PROOF, title, { unit: 'ms', atMost: LIMIT_MS }, async () => {
    const startedAtMs = performance.now()
    await readUsage(pool, query)
    return performance.now() - startedAtMs
  })
}

/** Views that would read more sums than a report may. */
const refused: string[] = []

describe(`reports over a week of ${CHARGES} charges`, () => {
  // Both ends cut an hour.
  const window = { startSeconds: startSeconds + 777, endSeconds: endSeconds - 777 }

  for (const [name, viewOf] of Object.entries(VIEWS))
    it(`${name} are what the charges add up to, within ${LIMIT_MS} ms`, async () => {
      const view = viewOf()
      for (const scope of [{ accountId: busy.accountId }, { credentialId: busy.credentialId }]) {
        const [column, id] =
          'accountId' in scope ? ['account_id', scope.accountId] : ['credential_id', scope.credentialId]
        const [filter, value] = view.filter?.tag
          ? [`and 'team=' || $4 = any (tags)`, view.filter.tag.value]
          : view.filter?.model
            ? ['and model = $4', view.filter.model]
            : view.filter?.endUserId
              ? ['and end_user::text = $4', view.filter.endUserId]
              : ['and $4::text is null', null]
        const { rows } = await client.query<{ requests: bigint; charged: bigint }>(
          `select count(*) as requests, sum(amount)::bigint as charged from charges
           where ${column} = $1 and ended_at >= to_timestamp($2) and ended_at < to_timestamp($3) ${filter}`,
          [id, window.startSeconds, window.endSeconds, value],
        )
        for (const bucket of ['day', 'hour'] as const) {
          const query = { scope, ...window, bucket, ...view }
          const title = `${name} of ${'accountId' in scope ? 'an account' : 'a key'}, by the ${bucket}`
          const sums = await combinedSums(query)
          if (sums > COMBINED_SUMS_MOST) {
            await assert.rejects(readUsage(pool, query), { code: 'invalid_request', message: /50,000/ })
            refused.push(`${title}: ${sums} sums`)
            continue
          }
          const report = await readUsage(pool, query).catch((error: unknown) => {
            // Of end users, groups are read beside all that have one: together it may be too much.
            const isOfBoth = sums > 0 && view.groupBy === 'end_user'
            if (!isOfBoth || !(error instanceof Fault) || !/50,000/.test(error.message)) throw error
          })
          if (report === undefined) {
            refused.push(`${title}: ${sums} sums and those of its groups`)
            continue
          }
          const { totals, groups } = report
          assert.ok(totals.requests > 0n)
          assert.equal(totals.requests, rows[0]?.requests)
          if (groups !== undefined)
            assert.equal(
              groups.reduce((sum, group) => sum + group.totals.charged, 0n),
              rows[0]?.charged,
            )
          await timed(title, query)
        }
      }
    })

  for (const [name, view] of Object.entries({
    'by model, of a team': { groupBy: 'model', filter: OF_TEAM },
    'by model, of a team and an operation': { groupBy: 'model', filter: { ...OF_TEAM, operation: 'operation 3' } },
    'of a team and a model': { filter: { ...OF_TEAM, model: 'model 8' } },
  } as const satisfies Readonly<Record<string, View>>))
    it(`${name} take no longer where they read as many sums as they may`, async () => {
      const { rows } = await client.query<{ from: number | null; sums: number }>(
        `select extract(epoch from min(starts_at))::float8 as from, max(sums)::integer as sums from (
           select starts_at, sum(count(*)) over (order by starts_at desc) as sums from usage_sums
           where account_id = $1 and about = 'tag:team' and grain = 'hour' and subject = '4' and starts_at < to_timestamp($2) group by starts_at
         ) counted where sums <= $3`,
        [busy.accountId, endSeconds, COMBINED_SUMS_MOST],
      )
      const { from, sums } = rows[0] ?? { from: null, sums: 0 }
      assert.ok(from !== null)
      // Of nearly as many: an hour more would be too many.
      if (isFullProof) assert.ok(sums > 0.9 * COMBINED_SUMS_MOST, `${sums} sums`)
      const query = {
        scope: { accountId: busy.accountId },
        startSeconds: from,
        endSeconds,
        ...view,
        bucket: 'hour',
      } as const
      assert.ok((await readUsage(pool, query)).totals.requests > 0n)
      await timed(`${name}, from ${sums} sums`, query)
    })

  it('say of what they were made', async () => {
    const { rows } = await client.query(
      `select (select count(*) from charges)::integer as charges, sums.*, totals.*
       from (select count(*) filter (where grain = 'hour')::integer as sums, count(*) filter (where grain = 'day')::integer as combined_days from usage_sums) sums
       cross join (select count(*) filter (where grain = 'hour')::integer as hours, count(*) filter (where grain = 'day')::integer as days from usage_totals) totals`,
    )
    recordProof(PROOF, 'the world', {
      ...rows[0],
      refused_because_of_the_limit: refused,
      combining_seconds: Math.round(combiningMs / 1_000),
      accounts: ACCOUNTS,
      of_the_one_that_is_asked: `one in ${ONE_IN}`,
      keys: ACCOUNTS * KEYS_EACH,
      end_users: END_USERS,
    })
    assert.ok(rows[0].sums > 0)
  })
})

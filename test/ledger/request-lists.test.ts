import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type pg from 'pg'
import { measure } from '../../harness/figures.ts'
import { count, recordProof, tellProgress } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import type { OperatorParts } from '../../server/src/operate/action.ts'
import { requests } from '../../server/src/operate/requests.ts'
import { nodesOf } from '../acceptance/plan-nodes.ts'
import { ACTOR, ids } from '../identity/customers.ts'
import { connect } from './world.ts'

/**
 * Operators' lists of calls among very many, of very many customers: every statement that the command sends is explained. They are found by id within a
 * day's partition, or by an index of their account or key, and so many are looked at for a page. How long it takes is judged in proofs only.
 */
const PROOF = 'operators-lists'
const CHARGES = count({ full: 10_000_000, reduced: 90_000 })
const CUSTOMERS = count({ full: 10_000, reduced: 100 })
const DAYS = count({ full: 25, reduced: 3 })
const MOST_MS = 300
const LOOKED_AT = 20_000
/** For a page, what is looked at, and once more to find where it ends. */
const READ_MOST = 2 * LOOKED_AT + 500
const FEW = 500
const PORTION = 50_000
/** All of them where there are few. */
const PAGES_MOST = 6

const { url } = await freshDatabase()
const { pools } = connect(url)
const pool = pools.rest
after(() => pools.close())

const [list = assert.fail(), show = assert.fail()] = requests
const startedMs = performance.now()

async function makeCustomers(): Promise<void> {
  await pool.query(
    `with made as (
       select n, gen_random_uuid() as id, gen_random_uuid() as live, gen_random_uuid() as test, gen_random_uuid() as key from generate_series(1, $1::integer) n
     ), of_accounts as (
       insert into accounts (id, mode) select live, 'live' from made union all select test, 'test' from made returning id
     ), of_workspaces as (
       insert into workspaces (id, name, shard, live_account_id, test_account_id) select id, 'Customer ' || n, n % 4096, live, test from made returning id
     ), of_credentials as (
       insert into credentials (id, account_id) select key, live from made returning id
     )
     insert into api_keys (id, workspace_id, name, hash) select key, id, 'key ' || n, sha256(key::text::bytea) from made`,
    [CUSTOMERS],
  )
}

/** As many of each day; two fifths of them are of one customer. One in 100,000 is of a model, an upstream, a tag and a price that few have. */
async function makeCharges(midnight: Date): Promise<void> {
  await pool.query(
    'create table places as select row_number() over (order by c.id) as place, c.id, c.account_id from credentials c',
  )
  await pool.query('create unique index on places (place)')
  await pool.query('analyze places')
  const ofDay = Math.floor(CHARGES / DAYS)
  for (let day = 1; day <= DAYS; day += 1) {
    const begins = new Date(midnight.getTime() - day * 86_400_000)
    for (let first = 1; first <= ofDay; first += PORTION)
      await pool.query(
        `insert into charges (id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost, executed, failed,
           input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at, model, route, end_user, end_user_label, tags)
         select (lpad(to_hex(floor(at * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text || $1::text), 1, 3) || '8' || substr(md5($1::text || n::text), 1, 15))::uuid,
           places.account_id, places.id, (array['chat_completions', 'messages', 'rerank', 'tag_detail'])[1 + n % 4],
           case when n % 100 = 0 then 'voided' else 'posted' end, 9000000, case when n % 100 = 0 then 0 when is_rare then 8000000 else 1000 + n % 1000 end, 0, 0,
           1000, 500, true, n % 50 = 0, 10, 10, 0, 0, '{}', to_timestamp(at), to_timestamp(at) + n % 30 * interval '1 second',
           case when is_rare then 'rare' else 'model ' || n % 12 end, case when is_rare then 'rare' else 'slot ' || n % 6 end, null, null,
           case when is_rare then '{team=rare}' when n % 10 = 0 then '{team=search}' else '{}' end::text[]
         from generate_series($4::integer, $5::integer) n
         cross join lateral (select extract(epoch from $3::timestamptz)::float8 + n * 86300.0::float8 / $2::integer as at, n % 100000 = 99 as is_rare) moment
         join places on places.place = case when n % 5 < 2 then 1 else 1 + n % $6::integer end`,
        [day, ofDay, begins, first, Math.min(ofDay, first + PORTION - 1), CUSTOMERS],
      )
    tellProgress(`${day * ofDay} charges`)
  }
}

/** Of one in a thousand something was given back; and of the latest it is known how they ran. */
async function makeCorrections(): Promise<void> {
  await pool.query(
    `insert into entries (id, account_id, kind, charged, credential_id, corrects)
     select gen_random_uuid(), account_id, 'charge_reversal', -amount, credential_id, id
     from (select * from charges where outcome = 'posted' order by id desc limit $1) c where abs(hashtext(id::text)) % 10 = 0`,
    [Math.floor(CHARGES / 100)],
  )
  await pool.query(
    `insert into request_records (id, detail) select id, '{"status": 200, "formula": "1 call × 0.001 USD"}' from (
       select id from charges order by id desc limit $1) c`,
    [Math.floor(CHARGES / 10)],
  )
}

before(async () => {
  const { rows } = await pool.query<{ midnight: Date }>(
    "select date_trunc('day', clock_timestamp(), 'UTC') as midnight",
  )
  const midnight = rows[0]?.midnight ?? assert.fail()
  await pool.query(
    "select make_charge_partition(($2::timestamptz at time zone 'UTC')::date - day) from generate_series(0, $1::integer) day",
    [DAYS + 5, midnight],
  )
  await makeCustomers()
  await makeCharges(midnight)
  await makeCorrections()
  const { rows: tables } = await pool.query<{ name: string }>(
    "select c.oid::regclass::text as name from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' order by c.oid",
  )
  for (const { name } of tables) await pool.query(`vacuum (analyze) ${name}`)
  await pool.query('analyze charges')
  tellProgress('statistics')
})

type Sent = { readonly text: string; readonly values: readonly unknown[] }

/** The action, as the command line runs it, and what it sends. */
async function run(action: (typeof requests)[number], given: Readonly<Record<string, string | boolean>>) {
  const sent: Sent[] = []
  const spy: pg.Pool = new Proxy(pool, {
    get(target, name) {
      if (name !== 'query') return Reflect.get(target, name)
      return (asked: string | Sent, values: readonly unknown[] = []) => {
        const { text, values: own } = typeof asked === 'string' ? { text: asked, values } : asked
        sent.push({ text, values: own })
        return target.query(text, [...own])
      }
    },
  })
  const parts: OperatorParts = {
    ...{ pool: spy, ids, clock: systemClock, by: ACTOR, settings: Object(null), say: () => {} },
    ...{ seal: async () => null, letters: async () => null },
  }
  return { sent, result: await action.run(parts, action.input.parse(given)) }
}

type Page = {
  readonly requests: readonly { readonly id: string }[]
  readonly next: string | null
  readonly isCutShort: boolean
}
const pageOf = async (given: Readonly<Record<string, string | boolean>>) => (await run(list, given)).result as Page

type Node = ReturnType<typeof nodesOf>[number]
const number = (value: unknown) => Number(value ?? 0)
const isOfCharges = (node: Node) => /^charges_\d{8}$/.test(String(node['Relation Name']))

/** By which index charges are found: an id's, or the one of an account or a key, in the order in which calls ended. */
const BY_ID = /^charges_\d{8}_pkey$/
const BY_ACCOUNT = /^charges_\d{8}_account_id_ended_at_idx$/
const BY_KEY = /^charges_\d{8}_credential_id_ended_at_idx$/

type Listed = readonly [
  given: () => Promise<Readonly<Record<string, string | boolean>>>,
  by: RegExp,
  most: number,
  finds: 'a page' | 'few',
]

const one = async (sql: string) => String((await pool.query<{ one: string }>(sql)).rows[0]?.one)
const LARGEST =
  'select w.id as one from workspaces w join places p on p.account_id = w.live_account_id where p.place = 1'
const SMALL = 'select w.id as one from workspaces w join places p on p.account_id = w.live_account_id where p.place = 3'
const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)

const LISTS: Readonly<Record<string, Listed>> = {
  'all calls': [async () => ({}), BY_ID, FEW, 'a page'],
  'calls of a model': [async () => ({ model: 'model 3' }), BY_ID, FEW, 'a page'],
  'calls of a model that few ask for': [async () => ({ model: 'rare' }), BY_ID, READ_MOST, 'few'],
  'calls that went to an upstream that few go to': [async () => ({ upstream: 'rare' }), BY_ID, READ_MOST, 'few'],
  'calls that were not charged': [async () => ({ outcome: 'voided' }), BY_ID, 4_000, 'a page'],
  'calls that failed': [async () => ({ failed: true }), BY_ID, 2_000, 'a page'],
  'calls with a tag that few have': [async () => ({ tag: 'team=rare' }), BY_ID, READ_MOST, 'few'],
  'calls that cost much': [async () => ({ minCost: '0.005' }), BY_ID, READ_MOST, 'few'],
  'calls that cost less than any did': [
    async () => ({ maxCost: '0.0000001', outcome: 'posted', model: 'rare' }),
    BY_ID,
    READ_MOST,
    'few',
  ],
  'calls of test money, of which there are none': [async () => ({ test: true }), BY_ID, READ_MOST, 'few'],
  'calls of one day': [async () => ({ since: daysAgo(2), until: daysAgo(1), limit: '100' }), BY_ID, FEW, 'a page'],
  'calls of the largest customer': [async () => ({ account: await one(LARGEST) }), BY_ACCOUNT, FEW, 'a page'],
  'calls of a small customer': [async () => ({ account: await one(SMALL) }), BY_ACCOUNT, FEW, 'a page'],
  'calls of the largest customer, of a model that few ask for': [
    async () => ({ account: await one(LARGEST), model: 'rare' }),
    BY_ACCOUNT,
    READ_MOST,
    'few',
  ],
  'calls of a key': [
    async () => ({ key: await one('select id as one from places where place = 1') }),
    BY_KEY,
    FEW,
    'a page',
  ],
  'the page behind one that found too few': [
    async () => ({ model: 'rare', after: (await pageOf({ model: 'rare' })).next ?? assert.fail() }),
    BY_ID,
    READ_MOST,
    'few',
  ],
}

describe(`operators' lists of ${CHARGES} calls of ${CUSTOMERS} customers`, () => {
  it('are of as many as it says', async () => {
    const { rows } = await pool.query(
      'select (select count(*)::integer from charges) as charges, (select count(*)::integer from workspaces) as customers',
    )
    const charges = Math.floor(CHARGES / DAYS) * DAYS
    assert.deepEqual(rows, [{ charges, customers: CUSTOMERS }])
    const seconds = Math.round((performance.now() - startedMs) / 1_000)
    recordProof(PROOF, 'made', { charges, customers: CUSTOMERS, days: DAYS, seconds })
  })

  for (const [title, [makeGiven, by, most, finds]] of Object.entries(LISTS))
    it(`${title}: read what they show or so many as they look at, by an index that is there for calls`, async () => {
      const given = await makeGiven()
      const { sent, result } = await run(list, given)
      const page = result as Page
      if (finds === 'a page')
        assert.deepEqual([page.requests.length, page.isCutShort], [Number(given.limit ?? 20), false])
      else
        assert.ok(
          page.requests.length < 20 && page.isCutShort,
          `${page.requests.length} calls, cut short: ${page.isCutShort}`,
        )
      const read = await readOf(sent, by)
      assert.ok(read <= most, `${read} rows of charges are read, of at most ${most}`)
      recordProof(PROOF, `${title}: rows`, { charges: CHARGES, rows_read: read, at_most: most })
      tellProgress(`${title}: ${read} rows`)
      await measure(PROOF, title, { unit: 'ms', atMost: MOST_MS }, async () => {
        const askedMs = performance.now()
        await run(list, given)
        return performance.now() - askedMs
      })
    })

  it('one call: reads its own row', async () => {
    const id = await one('select id as one from charges order by id limit 1 offset 10')
    const { sent, result } = await run(show, { id })
    assert.equal(Reflect.get(result, 'id'), id)
    assert.ok((await readOf(sent, BY_ID)) <= 2)
    await measure(PROOF, 'one call', { unit: 'ms', atMost: MOST_MS }, async () => {
      const askedMs = performance.now()
      await run(show, { id })
      return performance.now() - askedMs
    })
  })

  it('go on by their cursor until every call of a model that few ask for is found, each once', async () => {
    const found: string[] = []
    let after: string | undefined
    for (let pages = 0; pages < PAGES_MOST; pages += 1) {
      const page = await pageOf({ model: 'rare', ...(after !== undefined && { after }) })
      found.push(...page.requests.map(({ id }) => id))
      after = page.next ?? undefined
      if (after === undefined) break
    }
    const { rows } = await pool.query<{ id: string }>("select id from charges where model = 'rare' order by id desc")
    assert.ok(found.length > 0)
    assert.deepEqual(found, rows.map(({ id }) => id).slice(0, after === undefined ? undefined : found.length))
  })
})

/** Rows of charges that statements read, and that none of them is looked for but by that index. */
async function readOf(sent: readonly Sent[], by: RegExp): Promise<number> {
  let read = 0
  for (const { text, values } of sent) {
    const { rows } = await pool.query(`explain (analyze, timing off, format json) ${text}`, [...values])
    const scans = nodesOf(Object(rows[0])['QUERY PLAN'][0].Plan).filter(isOfCharges)
    for (const scan of scans.filter((node) => number(node['Actual Loops']) > 0)) {
      assert.match(String(scan['Node Type']), /^Index/, JSON.stringify(scan))
      // Where a call is looked up by its id, that is its index.
      assert.ok(by.test(String(scan['Index Name'])), JSON.stringify(scan))
      read += (number(scan['Actual Rows']) + number(scan['Rows Removed by Filter'])) * number(scan['Actual Loops'])
    }
  }
  return read
}

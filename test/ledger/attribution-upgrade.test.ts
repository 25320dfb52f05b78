import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { judge } from '../../harness/figures.ts'
import { count, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { resolveCall } from '../../server/src/calls/orphans.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { reverseCharge } from '../../server/src/ledger/reverse.ts'
import { readUsage } from '../../server/src/ledger/usage.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { MIGRATIONS_FOLDER } from '../../server/src/storage/migrations.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { callOf, makeParty, openSession, type Party, postOf, type Session } from './session.ts'
import { inTail } from './usage-rows.ts'
import { connect, ids } from './world.ts'

/** The database of the release before is brought to this one while its calls run, and its processes go on. */
const PROOF = 'attribution-upgrade'
const CHARGES = count({ full: 1_000_000, reduced: 20_000 })
const DAYS_OF_CHARGES = count({ full: 1_100, reduced: 20 })
/** Judged in proofs only. */
const LIMIT_MS = 3_000
const NEXT = '0027_attribution.sql'
const DAY = 86_400

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const [old, other] = [await openSession(database.url), await openSession(database.url)]
const folder = mkdtempSync(path.join(tmpdir(), 'farebox-before-'))
after(async () => {
  rmSync(folder, { recursive: true })
  await Promise.all([old.close(), other.close(), pools.close()])
})
for (const file of readdirSync(MIGRATIONS_FOLDER))
  if (file < NEXT) cpSync(path.join(MIGRATIONS_FOLDER, file), path.join(folder, file))
await pool.query('drop schema public cascade; create schema public')
await migrate({ url: new Secret(database.url), log: silentLog, folder })

/** As processes of the release before begin a call and end it: one in a batch. */
async function beginAsBefore(session: Session, { accountId, credentialId }: Party): Promise<Id> {
  const id = ids.next()
  const [row] = await session.query(
    `select outcome from begin_calls($1, array[$2::uuid], array[$3::uuid], '{}', '{}', '{}', '{}', '{}', '{}', '{}', array[current_date], array[$4::uuid],
       '{1}', '{1}', '{true}', '{10}', '{0}', '{probe}', array['{}'], array['{}'], array['{}'], '{0}', '{}', '{}', '{}', '{0}', '{}', '{0}', '{}', '{}',
       '{}', '{}', '{}')`,
    [ids.next(), accountId, credentialId, id],
  )
  assert.deepEqual(row, { outcome: 'begun' })
  return id
}

function endAsBefore(session: Session, { accountId }: Party, id: Id) {
  return session.query(
    `select outcome, charged from end_calls(array[$2::uuid], array[current_date], array[$1::uuid], array[$2::uuid], array[7::bigint], array[false],
       array[7::bigint], array[0::bigint], array[true], array[false], array[0::bigint], array[0::bigint], array[0::bigint], array[0::bigint])`,
    [id, accountId],
  )
}

/** What processes of the release before read of whole hours. */
async function reportAsBefore({ credentialId }: Party) {
  const { rows } = await pool.query<{ requests: bigint; charged: bigint }>(
    'select sum(requests)::bigint as requests, sum(charged)::bigint as charged from usage_hours where credential_id = $1',
    [credentialId],
  )
  return rows[0]
}

/** And what `farebox ledger verify` of that release compares them with. */
async function brokenAsBefore({ accountId }: Party): Promise<readonly unknown[]> {
  const { rows } = await pool.query(
    `select coalesce(u.hour, c.hour) from (select * from usage_hours where account_id = $1) u
     full join (
       select credential_id, date_trunc('hour', at, 'UTC') as hour, sum(charged) as charged, sum(requests) as requests, sum(value) as value from (
         select credential_id, ended_at as at, amount as charged, executed::integer as requests, case when executed then value else 0 end as value
         from charges where credential_id is not null and account_id = $1
         union all select credential_id, entered_at, charged, 0, 0 from entries where credential_id is not null and account_id = $1
       ) booked group by 1, 2
     ) c on u.credential_id = c.credential_id and u.hour = c.hour
     where (coalesce(u.charged, 0), coalesce(u.requests, 0), coalesce(u.value, 0)) <> (coalesce(c.charged, 0), coalesce(c.requests, 0), coalesce(c.value, 0))`,
    [accountId],
  )
  return rows
}

/** What a worker of the release before asks for every two seconds. */
function sweepAsBefore() {
  return pool.query('select id, owner_id from sweep_orphans(sweeper => $1, grace_seconds => 10, most => 100)', [
    ids.next(),
  ])
}

/** Usage that nobody has added up for two minutes, and that changes no sum. */
function leaveWaiting({ accountId, credentialId }: Party) {
  return pool.query(
    `insert into usage_tail (account_id, credential_id, at, requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
     values ($1, $2, clock_timestamp() - interval '2 minutes', 0, 0, 0, 0, 0, 0, 0, 0)`,
    [accountId, credentialId],
  )
}

const nowSeconds = Math.floor(Date.now() / 1_000)

async function reportOf(scope: Party) {
  const window = { startSeconds: nowSeconds - 2 * DAY, endSeconds: nowSeconds + DAY }
  const { totals, groups = [] } = await readUsage(pool, { scope, ...window, groupBy: 'operation' })
  return {
    requests: totals.requests,
    groups: groups.map(({ kind, value, totals: own }) => [kind, value, own.requests, own.charged]),
  }
}

async function chargeInBulk({ accountId, credentialId }: Party): Promise<void> {
  await pool.query('select make_charge_partition(current_date - day) from generate_series(3, $1::integer) day', [
    DAYS_OF_CHARGES,
  ])
  await old.query(
    `insert into charges (id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost, executed, failed,
       input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at)
     select (left(first_id_at(at)::text, 14) || '7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $1, $2, 'probe', 'posted', 2, 2, 0, 0, 2, 0, true,
       false, 0, 0, 0, 0, '{}', at, at
     from generate_series(1, $3::integer) n
     cross join lateral (select date_trunc('day', now(), 'UTC') - (n % $4::integer) * interval '1 day' as at) one`,
    [accountId, credentialId, CHARGES, DAYS_OF_CHARGES],
  )
  await old.query('update accounts set charged = charged + 2 * $2::bigint where id = $1', [accountId, CHARGES])
  await old.query(
    `insert into usage_hours select credential_id, date_trunc('hour', ended_at, 'UTC'), account_id, count(*), 0, 0, 0, 0, 0, sum(value), sum(amount)
     from charges where account_id = $1 group by 1, 2, 3`,
    [accountId],
  )
}

/** Where PostgreSQL has each table: another place is a rewrite. */
async function placesOf(): Promise<readonly Record<string, unknown>[]> {
  return old.query(
    `select relname, pg_relation_filenode(oid) as place from pg_class
     where relkind = 'r' and (relname ~ '^charges_' or relname in ('holds', 'entries', 'usage_hours')) order by 1`,
  )
}

describe('attribution comes to a database of the release before', () => {
  it('without a rewrite, while a call of before ends, and no report is wrong', async (test) => {
    const [bulk, party] = [await makeParty(pool, 10n ** 9n), await makeParty(pool, 1_000n)]
    await chargeInBulk(bulk)
    const [before, meanwhile, later] = [
      await beginAsBefore(old, party),
      await beginAsBefore(old, party),
      await beginAsBefore(old, party),
    ]
    await endAsBefore(old, party, before)
    const places = await placesOf()
    assert.ok(places.length > DAYS_OF_CHARGES)

    // An END has read its old text, and waits for the tables that the migration has.
    await other.query('begin')
    await other.query('lock table accounts in access exclusive mode')
    const ending = endAsBefore(old, party, meanwhile)
    ending.catch(() => {})
    await until(() => old.waits(pool), PATIENCE_MS, 'the wait of the END')
    // In the same transaction, as the migration has it: the END goes on when it commits.
    const text = readFileSync(path.join(MIGRATIONS_FOLDER, NEXT), 'utf8')
    const startedAtMs = performance.now()
    await other.query(text)
    await other.query('commit')
    const lockedMs = performance.now() - startedAtMs
    for (const file of readdirSync(MIGRATIONS_FOLDER).toSorted())
      if (file > NEXT) await other.query(readFileSync(path.join(MIGRATIONS_FOLDER, file), 'utf8'))
    assert.deepEqual(await ending, [{ outcome: 'posted', charged: 7n }])
    assert.deepEqual(await placesOf(), places, 'nothing was written anew')
    judge(PROOF, 'how long calls wait for the migration', { unit: 'ms', atMost: LIMIT_MS }, [lockedMs])
    test.diagnostic(`${CHARGES} charges in ${DAYS_OF_CHARGES} days: locked for ${Math.round(lockedMs)} ms`)

    const marked = await old.query('select booked from charges where id = any ($1)', [[before, meanwhile]])
    assert.deepEqual(marked, [{ booked: true }, { booked: true }])
    assert.deepEqual(await reportAsBefore(party), { requests: 2n, charged: 14n })
    assert.deepEqual(await reportOf(party), { requests: 2n, groups: [['none', null, 2n, 14n]] })
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])

    // Processes of before go on, beside new ones.
    await endAsBefore(old, party, later)
    await endAsBefore(old, party, await beginAsBefore(old, party))
    const call = callOf(party, { hold: 10n, operation: 'newer' })
    await other.begin(call)
    await other.end(postOf(call, 5n))
    const mixed = {
      requests: 5n,
      groups: [
        ['group', 'newer', 1n, 5n],
        ['none', null, 4n, 28n],
      ],
    }
    assert.deepEqual(await reportOf(party), mixed)
    assert.deepEqual(await verifyLedger(pool), [])
    await addUpUsage(pool)
    assert.deepEqual(await reportOf(party), mixed)
    assert.deepEqual(await reportAsBefore(party), { requests: 5n, charged: 33n })

    assert.equal(await reverseCharge(pool, ids.next(), meanwhile, nanos(7n)), 7n)
    assert.equal(await reverseCharge(pool, ids.next(), call.id, nanos(2n)), 2n)
    await addUpUsage(pool)
    assert.deepEqual(await reportAsBefore(party), { requests: 5n, charged: 24n })
    assert.deepEqual((await reportOf(party)).groups, [
      ['group', 'newer', 1n, 3n],
      ['none', null, 4n, 21n],
    ])
    assert.deepEqual(await verifyLedger(pool), [])
    recordProof(PROOF, 'charges of before, and calls of both releases, in one report', {
      charges: CHARGES,
      days: DAYS_OF_CHARGES,
    })
  })

  it('while processes of before alone run, their reports have every call at once, and nothing waits to be added up', async () => {
    const party = await makeParty(pool, 1_000n)
    for (let calls = 1n; calls <= 20n; calls += 1n) {
      const id = await beginAsBefore(old, party)
      await endAsBefore(old, party, id)
      assert.deepEqual(await reportAsBefore(party), { requests: calls, charged: 7n * calls })
      if (calls < 20n) continue
      assert.equal(await reverseCharge(pool, ids.next(), id, nanos(3n)), 3n)
    }
    assert.deepEqual(await reportAsBefore(party), { requests: 20n, charged: 137n })
    assert.deepEqual(await brokenAsBefore(party), [])
    assert.equal(await inTail(pool), 0)
    assert.deepEqual(await verifyLedger(pool), [])
  })

  it('what the last new process left in the tail, and what ends without a process, is added up by workers of before', async () => {
    const party = await makeParty(pool, 1_000n)
    const call = callOf(party, { hold: 10n })
    await other.begin(call)
    await other.end(postOf(call, 5n))
    const lost = await beginAsBefore(old, party)
    await old.query('update holds set unsettled_at = clock_timestamp() where id = $1', [lost])
    assert.ok(await resolveCall(pool, lost, nanos(4n)))
    await sweepAsBefore()
    assert.equal(await inTail(pool), 2, 'those who took the calls add them up, while they run')
    await leaveWaiting(party)
    await sweepAsBefore()
    assert.equal(await inTail(pool), 0)
    assert.deepEqual(await reportAsBefore(party), { requests: 2n, charged: 9n })
    assert.deepEqual(await brokenAsBefore(party), [])
    assert.equal(await reverseCharge(pool, ids.next(), call.id, nanos(5n)), 5n)
    await leaveWaiting(party)
    await sweepAsBefore()
    assert.deepEqual(await reportAsBefore(party), { requests: 2n, charged: 4n })
    assert.deepEqual(await brokenAsBefore(party), [])
    assert.deepEqual(await verifyLedger(pool), [])
  })

  it('has the index by account and time from tomorrow on, on every day that is made from then on, and on no day before', async () => {
    await pool.query('select make_charge_partition(current_date + 20)')
    const { rows } = await pool.query<{ day: string; has: boolean; when: number }>(
      `select c.relname as day, sign(to_date(right(c.relname, 8), 'YYYYMMDD') - (now() at time zone 'UTC')::date)::integer as when,
         exists (select from pg_index i where i.indrelid = c.oid and i.indkey::text = (
           select string_agg(attnum::text, ' ' order by attname) from pg_attribute where attrelid = c.oid and attname in ('account_id', 'ended_at'))) as has
       from pg_inherits join pg_class c on c.oid = inhrelid where inhparent = 'charges'::regclass`,
    )
    assert.deepEqual(new Set(rows.map(({ when }) => when)), new Set([-1, 0, 1]))
    // Today has charges here.
    for (const { day, has, when } of rows) assert.equal(has, when > 0, day)
  })
})

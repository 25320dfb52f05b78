import assert from 'node:assert/strict'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type Child, startChild } from '../../harness/child.ts'
import { count, recordProof, seed } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { Random } from '../../sandbox/src/random.ts'
import type { Call } from '../../server/src/calls/call.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { reverseCharge } from '../../server/src/ledger/reverse.ts'
import { readUsage } from '../../server/src/ledger/usage.ts'
import type { GroupBy } from '../../server/src/ledger/usage-query.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { callOf, makeParty, openSession, outcomesOf, type Party, postOf, type Session } from './session.ts'
import { bookAnew, inTail } from './usage-rows.ts'
import { connect, ids } from './world.ts'

/** Processes that add up usage are killed, at every step and at any time, while calls commit late and the clock is set back and forth. */
const PROOF = 'adding-up'
const ROUNDS = count({ full: 10, reduced: 1 })
const KILLS = count({ full: 200, reduced: 4 })
const ADDING = 3
const PROGRAM = path.join(import.meta.dirname, 'adding-process.ts')

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
const random = new Random(seed)
const running = new Set<Child>()
after(async () => {
  await Promise.all([...running].map((child) => child.kill()))
  await Promise.all([session.close(), pools.close()])
})

const DAY = 86_400
const nowSeconds = Math.floor(Date.now() / 1_000)
/** Wherever the clock is set to. */
const window = { startSeconds: nowSeconds - 3 * DAY, endSeconds: nowSeconds + 3 * DAY }

/** A process that adds up, and stops at a step if it is told one. */
function startAdding(step = ''): Child {
  const url = new URL(database.url)
  url.searchParams.set('options', `-c test.step=${step}`)
  const child = startChild(process.execPath, [PROGRAM, url.href])
  running.add(child)
  return child
}

async function killAdding(child: Child): Promise<void> {
  await child.kill()
  running.delete(child)
}

const OPERATIONS = ['chat', 'embed'] as const
const MODELS = ['gpt', 'claude', null] as const
const PEOPLE = Array.from({ length: 3 }, (_, at) => ({ id: ids.next(), label: `person ${at}` }))
const TEAMS = ['search', 'ads'] as const

function pick<T>(some: readonly T[]): T {
  const one = some[random.between(0, some.length - 1)]
  return one === undefined ? assert.fail() : one
}

type Charged = { readonly call: Call; readonly amount: bigint }

/** A batch of calls, each of another kind. */
async function charge(through: Session, party: Party, calls: number): Promise<readonly Charged[]> {
  const some = Array.from({ length: calls }, () => {
    const tags = [
      { name: 'run', value: String(random.between(0, 9)) },
      { name: 'team', value: pick(TEAMS) },
    ]
    const attribution = { model: pick(MODELS), endUser: pick([...PEOPLE, null]), tags }
    const call = callOf(party, { hold: 1_000n, operation: pick(OPERATIONS), attribution })
    return { call, amount: BigInt(random.between(0, 1_000)) }
  })
  const begun = await outcomesOf(through.begin(...some.map(({ call }) => call)))
  assert.deepEqual(new Set(begun), new Set(['begun']))
  const ended = await outcomesOf(through.end(...some.map(({ call, amount }) => postOf(call, amount))))
  assert.deepEqual(new Set(ended), new Set(['posted']))
  return some
}

const GROUPS: Readonly<Record<string, { readonly groupBy: GroupBy; readonly itemOf: (call: Call) => string | null }>> =
  {
    operation: { groupBy: 'operation', itemOf: ({ operation }) => operation },
    model: { groupBy: 'model', itemOf: ({ attribution }) => attribution?.model ?? null },
    'end user': { groupBy: 'end_user', itemOf: ({ attribution }) => attribution?.endUser?.id ?? null },
    team: { groupBy: { tag: 'team' }, itemOf: (call) => tagOf(call, 'team') },
    run: { groupBy: { tag: 'run' }, itemOf: (call) => tagOf(call, 'run') },
  }

function tagOf({ attribution }: Call, wanted: string): string | null {
  return attribution?.tags.find(({ name }) => name === wanted)?.value ?? null
}

/** Every report is what was charged, call by call, less what was given back. */
async function assertReports(
  scope: Party,
  charged: readonly Charged[],
  given: ReadonlyMap<Id, bigint> = new Map(),
): Promise<void> {
  for (const [name, { groupBy, itemOf }] of Object.entries(GROUPS))
    for (const bucket of ['day', 'hour'] as const) {
      // Of one dimension, and of two, which is combined by day.
      for (const filter of [{}, { operation: 'chat' }]) {
        const ours = charged.filter(({ call }) => call.operation === (filter.operation ?? call.operation))
        const { groups = [], totals } = await readUsage(pool, { scope, ...window, groupBy, bucket, filter })
        assert.equal(totals.requests, BigInt(ours.length))
        const told = groups.map(({ value, totals: own }) => `${value}: ${own.requests} ${own.charged}`)
        const expected = [...Map.groupBy(ours, ({ call }) => itemOf(call))].map(([value, some]) => {
          const sum = some.reduce((all, { call, amount }) => all + amount - (given.get(call.id) ?? 0n), 0n)
          return `${value}: ${some.length} ${sum}`
        })
        assert.deepEqual(told.sort(), expected.sort(), `by ${name} and ${bucket} of ${filter.operation ?? 'all'}`)
      }
    }
}

const LOCK = 7

/** Where a step is: before its first row, and before all of it is committed. */
const STEPS = {
  tail: 'create trigger stop_here before delete on usage_tail',
  sums: 'create trigger stop_here before insert on usage_sums',
  totals: 'create trigger stop_here before insert on usage_totals',
  commit: 'create constraint trigger stop_last after insert or update on usage_totals deferrable initially deferred',
} as const

/** And of combining a day. */
const STEPS_OF_DAYS = {
  combined_days: 'create trigger stop_at_day before insert on usage_sums',
  combined: 'create trigger stop_here before insert or update on usage_combined',
  combined_commit:
    'create constraint trigger stop_last after insert or update on usage_combined deferrable initially deferred',
} as const

/** The connections on which somebody adds up now. */
async function addingNow(isWaiting: boolean): Promise<readonly number[]> {
  const { rows } = await pool.query<{ pid: number }>(
    `select pid from pg_stat_activity where datname = current_database() and state = 'active'
       and (query like 'select add_up_usage%' or query like 'select combine_usage_days%')
       and (not $1 or wait_event_type = 'Lock')`,
    [isWaiting],
  )
  return rows.map(({ pid }) => pid)
}

async function untilGone(pid: number): Promise<void> {
  const isGone = async () => (await pool.query('select from pg_stat_activity where pid = $1', [pid])).rowCount === 0
  await until(isGone, PATIENCE_MS, 'the end of its connection')
}

describe('a process that adds up usage', () => {
  it('is killed at every step: PostgreSQL goes on or gives up, and no report is wrong, before or after', async () => {
    await session.query(`
      create function stop_here() returns trigger language plpgsql as $$
      begin
        if current_setting('test.step', true) = tg_argv[0] then perform pg_advisory_xact_lock_shared(${LOCK}); end if;
        if tg_op = 'DELETE' then return old; end if;
        return new;
      end $$`)
    for (const [step, trigger] of Object.entries({ ...STEPS, ...STEPS_OF_DAYS }))
      await session.query(`${trigger} for each row execute function stop_here('${step}')`)
    for (let round = 0; round < ROUNDS; round += 1)
      for (const step of Object.keys(STEPS))
        for (const fate of ['goes on', 'gives up'] as const) await killAt(step, fate)
    for (let round = 0; round < ROUNDS; round += 1)
      for (const step of Object.keys(STEPS_OF_DAYS))
        for (const fate of ['goes on', 'gives up'] as const) await killCombining(step, fate)
    assert.deepEqual(await verifyLedger(pool), [])
    const steps = [...Object.keys(STEPS), ...Object.keys(STEPS_OF_DAYS)]
    recordProof(PROOF, 'a process killed at every step of adding up', { steps, kills: 2 * ROUNDS * steps.length })
  })

  /** Of calls of the day before yesterday, of which none is combined. */
  async function killCombining(step: string, fate: 'goes on' | 'gives up'): Promise<void> {
    const party = await makeParty(pool, 10n ** 9n)
    const charged = await charge(session, party, 20)
    await session.query('set session_replication_role = replica')
    await session.query(`update charges set ended_at = ended_at - interval '48 hours' where account_id = $1`, [
      party.accountId,
    ])
    await session.query('reset session_replication_role')
    await bookAnew((text) => session.query(text))
    while ((await inTail(pool)) > 0) await addUpUsage(pool)
    const combined = async () => {
      const [row] = await session.query(
        "select (select count(*)::integer from usage_sums where grain = 'day') as days, (select count(*)::integer from usage_combined) as places",
      )
      return [Number(row?.days) > 0, row?.places]
    }
    assert.deepEqual(await combined(), [false, 0])
    await session.query('select pg_advisory_lock($1)', [LOCK])
    const victim = startAdding(step)
    await until(async () => (await addingNow(true)).length === 1, PATIENCE_MS, `that it is at ${step}`)
    const [pid = 0] = await addingNow(true)
    await assertReports(party, charged)
    const [other] = await session.query('select combine_usage_days(most => 10) as taken')
    assert.equal(other?.taken, null, 'somebody is at it')
    await killAdding(victim)
    if (fate === 'gives up') await pool.query('select pg_terminate_backend($1)', [pid])
    else await session.query('select pg_advisory_unlock($1)', [LOCK])
    await untilGone(pid)
    if (fate === 'gives up') await session.query('select pg_advisory_unlock($1)', [LOCK])
    assert.deepEqual(await combined(), fate === 'gives up' ? [false, 0] : [true, 1], `${step}, ${fate}`)
    await assertReports(party, charged)
    await session.query('select combine_usage_days(most => 10000)')
    assert.deepEqual(await combined(), [true, 1])
    await assertReports(party, charged)
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  }

  async function killAt(step: string, fate: 'goes on' | 'gives up'): Promise<void> {
    const party = await makeParty(pool, 10n ** 9n)
    const charged = await charge(session, party, 20)
    const before = await inTail(pool)
    assert.ok(before > 0)
    await session.query('select pg_advisory_lock($1)', [LOCK])
    const victim = startAdding(step)
    await until(async () => (await addingNow(true)).length === 1, PATIENCE_MS, `that it is at ${step}`)
    const [pid = 0] = await addingNow(true)
    await assertReports(party, charged)
    assert.equal(await addUpUsage(pool), 0, 'somebody is at it')
    await killAdding(victim)
    await assertReports(party, charged)
    // PostgreSQL does not see that its client is gone until it has something to say to it.
    if (fate === 'gives up') await pool.query('select pg_terminate_backend($1)', [pid])
    else await session.query('select pg_advisory_unlock($1)', [LOCK])
    await untilGone(pid)
    if (fate === 'gives up') await session.query('select pg_advisory_unlock($1)', [LOCK])
    assert.equal(await inTail(pool), fate === 'gives up' ? before : 0, `all of it or nothing: ${step}, ${fate}`)
    await assertReports(party, charged)
    assert.equal(await addUpUsage(pool), fate === 'gives up' ? before : 0)
    await assertReports(party, charged)
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  }

  it(`is one of ${ADDING} at once, killed ${KILLS} times while calls commit late and the clock is set: no sum is ever wrong (seed ${seed})`, async () => {
    const works = await openWorks()
    const adding = Array.from({ length: ADDING }, () => startAdding())
    let [isOver, reports, all] = [false, 0, 0]
    const isDone = () => isOver
    const charging = works.map(({ step }) => repeat(step, isDone))
    const reading = works.map(({ party, charged, begun }) => {
      let before = 0n
      return repeat(async () => {
        const least = BigInt(charged.length)
        const { groupBy } = pick(Object.values(GROUPS))
        const { totals, groups = [] } = await readUsage(pool, { scope: party, ...window, groupBy })
        const grouped = groups.reduce((sum, group) => sum + group.totals.requests, 0n)
        assert.equal(grouped, totals.requests)
        assert.ok(totals.requests >= before && totals.requests >= least, `${totals.requests} after ${before}`)
        assert.ok(totals.requests <= BigInt(begun()), `${totals.requests} of ${begun()}`)
        before = totals.requests
        reports += 1
      }, isDone)
    })
    const working = Promise.all([...charging, ...reading])
    working.catch(() => {})
    try {
      for (let kills = 0; kills < KILLS; kills += 1) {
        await Promise.race([delay(random.between(0, 300)), working])
        const isAtIt = async () => (await addingNow(false)).length > 0
        await until(isAtIt, PATIENCE_MS, 'that somebody adds up')
        // One of them, or all: then whoever is at it is killed.
        const places = kills % 2 === 0 ? [...adding.keys()] : [random.between(0, ADDING - 1)]
        if (places.length > 1) all += 1
        await Promise.all(places.map((place) => killAdding(adding[place] ?? assert.fail())))
        for (const place of places) adding[place] = startAdding()
      }
    } finally {
      isOver = true
    }
    await working
    await Promise.all(adding.map(killAdding))
    // One that was killed may still be at it.
    while ((await inTail(pool)) > 0) await addUpUsage(pool)
    while (Number((await session.query('select combine_usage_days(most => 1000) as taken'))[0]?.taken ?? 1) > 0);
    const [, , clockWork = assert.fail()] = works
    const [combined] = await session.query(
      "select count(*)::integer as days from usage_sums where account_id = $1 and grain = 'day'",
      [clockWork.party.accountId],
    )
    assert.ok(Number(combined?.days) > 0, 'some days were combined')
    const hours = await session.query(
      `select distinct date_trunc('hour', ended_at, 'UTC') from charges where account_id = $1`,
      [clockWork.party.accountId],
    )
    assert.ok(hours.length > 2, 'the clock was set')
    for (const { party, charged, given, close } of works) {
      await assertReports(party, charged, given)
      assert.ok(charged.length > 0 && reports > 0)
      await close()
    }
    assert.deepEqual(await verifyLedger(pool), [])
    const [prompt, late, clock] = works.map(({ charged }) => charged.length)
    recordProof(PROOF, 'processes that add up, killed at any time', {
      ...{ processes: ADDING, kills: KILLS, of_all_at_once: all, reports_meanwhile: reports, wrong_sums: 0 },
      ...{
        calls: prompt,
        calls_committed_late: late,
        calls_with_the_clock_set: clock,
        given_back: works[0]?.given.size,
      },
    })
  })
})

async function repeat(step: () => Promise<void>, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await step()
    await delay(1)
  }
}

type Work = {
  readonly party: Party
  /** Those that are committed. */
  readonly charged: readonly Charged[]
  readonly begun: () => number
  readonly given: ReadonlyMap<Id, bigint>
  readonly step: () => Promise<void>
  readonly close: () => Promise<void>
}

/** Calls that are charged at once and partly given back, ones whose transaction stays open meanwhile, and ones of another time. */
async function openWorks(): Promise<readonly Work[]> {
  await session.query('create schema set_clock')
  await session.query(`create function set_clock.clock_timestamp() returns timestamptz language sql volatile
    as $$ select pg_catalog.clock_timestamp() + current_setting('test.clock')::interval $$`)
  const open = async (
    stepOf: (
      own: Session,
      some: (calls: number) => Promise<readonly Charged[]>,
      given: Map<Id, bigint>,
    ) => Promise<readonly Charged[]>,
  ): Promise<Work> => {
    const [own, party] = [await openSession(database.url), await makeParty(pool, 10n ** 12n)]
    const charged: Charged[] = []
    const given = new Map<Id, bigint>()
    let begun = 0
    const some = (calls: number) => {
      begun += calls
      return charge(own, party, calls)
    }
    const step = async () => void charged.push(...(await stepOf(own, some, given)))
    return { party, charged, begun: () => begun, given, step, close: own.close }
  }
  const prompt = open(async (_, some, given) => {
    const charged = await some(random.between(1, 8))
    const { call, amount } = pick(charged)
    if (amount > 0n && random.between(0, 3) === 0)
      given.set(call.id, await reverseCharge(pool, ids.next(), call.id, nanos(amount)))
    return charged
  })
  const late = open(async (own, some) => {
    await own.query('begin')
    const charged = await some(random.between(1, 4))
    await delay(random.between(0, 60))
    const isKept = random.between(0, 3) > 0
    await own.query(isKept ? 'commit' : 'rollback')
    return isKept ? charged : []
  })
  const clock = open(async (own, some) => {
    // Of two functions of one name, the first in the path is meant: this connection has a PostgreSQL with another clock.
    await own.query('set search_path = set_clock, pg_catalog, public')
    await own.query(`set test.clock = '${pick([-50, -26, -1, 0, 1, 25])} hours'`)
    return some(random.between(1, 4))
  })
  return Promise.all([prompt, late, clock])
}

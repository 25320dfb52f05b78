import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import fc from 'fast-check'
import { count, recordProof, seed, sometimes } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Attribution, Call, Ending } from '../../server/src/calls/call.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import { resolveCall } from '../../server/src/calls/orphans.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { spendOfKeys } from '../../server/src/ledger/key-spend.ts'
import { reverseCharge } from '../../server/src/ledger/reverse.ts'
import { type ExactSums, readUsage, type UsageGroup } from '../../server/src/ledger/usage.ts'
import type { GroupBy, UsageFilter, UsageQuery } from '../../server/src/ledger/usage-query.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { callOf, makeParty, openSession, type Party, postOf } from './session.ts'
import { bookAnew, inTail } from './usage-rows.ts'
import { connect, ids, makeCredential, pg } from './world.ts'

/** Whose spend calls are, from their beginning to the groups of a report: held against the charges, one by one. */
const CALLS = count({ full: 10_000, reduced: 800 })
const QUERIES = count({ full: 3_000, reduced: 100 })
const AT_ONCE = 50
const [HOUR, DAY] = [3_600, 86_400]
const DAYS = 5

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

const nowSeconds = Math.floor(Date.now() / 1_000)
const originSeconds = Math.floor(nowSeconds / DAY) * DAY - DAYS * DAY

const OPERATIONS = ['chat', 'rerank', 'embed'] as const
const MODELS = ['gpt', 'claude', null] as const
const ROUTES = ['one', 'two', undefined] as const
const END_USERS = Array.from({ length: 4 }, (_, at) => ({ id: ids.next(), label: `person ${at}` }))
const TAGS = { team: ['search', 'ads', 'a=b'], run: ['1', '2'] } as const

const happening = fc.record({
  who: fc.nat(3),
  operation: fc.constantFrom(...OPERATIONS),
  attribution: fc.option(
    fc.record({
      model: fc.constantFrom(...MODELS),
      endUser: fc.option(fc.constantFrom(...END_USERS)),
      tags: fc
        .record({ team: fc.option(fc.constantFrom(...TAGS.team)), run: fc.option(fc.constantFrom(...TAGS.run)) })
        .map((tags) => Object.entries(tags).flatMap(([name, value]) => (value === null ? [] : [{ name, value }]))),
    }),
    { freq: 8, nil: undefined },
  ),
  route: fc.constantFrom(...ROUTES),
  amount: fc.bigInt({ min: 0n, max: 6_000n }),
  value: fc.bigInt({ min: 0n, max: 9_000n }),
  ending: fc.constantFrom('post', 'post', 'post', 'fail', 'void', 'forgive', 'orphan'),
  tokens: fc.array(fc.nat(900), { minLength: 4, maxLength: 4 }),
  givenBack: fc.option(fc.bigInt(1n, 4_000n), { freq: 3 }),
  endedSeconds: fc.integer({ min: originSeconds, max: nowSeconds - 1 }),
})
type Happened = { readonly call: Call } & (typeof happening extends fc.Arbitrary<infer T> ? T : never)

/** Three credentials of one account, and one of another. */
async function makeTeam(): Promise<readonly [Party, Party, Party, Party]> {
  const [one, other] = [await makeParty(pool, 10n ** 10n), await makeParty(pool, 10n ** 10n)]
  const [second, third] = [await makeCredential(pool, one.accountId), await makeCredential(pool, one.accountId)]
  return [one, { ...one, credentialId: second }, { ...one, credentialId: third }, other]
}

type Team = Awaited<ReturnType<typeof makeTeam>>

async function happen(team: Team, calls: number): Promise<readonly Happened[]> {
  const happened = fc.sample(happening, { seed, numRuns: calls }).map((one) => ({
    ...one,
    call: callOf(team[one.who] ?? team[0], { hold: 5_000n, operation: one.operation, attribution: one.attribution }),
  }))
  for (let from = 0; from < calls; ) {
    // Of one and of many: both ways to write the same.
    const some = happened.slice(from, from + (from % 4 === 0 ? 1 : AT_ONCE))
    await session.begin(...some.map(({ call }) => call))
    const endings = some.filter(({ ending }) => ending !== 'orphan').map(endingOf)
    if (endings.length > 0) await session.end(...endings)
    for (const one of some.filter(({ ending }) => ending === 'orphan')) await endOrphan(one)
    from += some.length
  }
  for (const { call, givenBack } of happened)
    if (givenBack !== null) await reverseCharge(pool, ids.next(), call.id, nanos(givenBack))
  return happened
}

function endingOf({ call, ending, amount, value, tokens, route }: Happened): Ending {
  if (ending === 'void') return voidOf(call)
  const [inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0] = tokens
  const usage = { value: nanos(value), inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens }
  return { ...postOf(call, amount, { ...usage, failed: ending === 'fail' }), forgiven: ending === 'forgive', route }
}

/** Its process is gone, and an operator says what it used. */
async function endOrphan({ call, amount }: Happened): Promise<void> {
  await session.query('update holds set unsettled_at = clock_timestamp() where id = $1', [call.id])
  assert.ok(await resolveCall(pool, call.id, nanos(amount)))
}

/** One thing that was booked: a charge that counts, or what was given back of one. */
type Booked = {
  readonly credentialId: Id
  readonly accountId: Id
  readonly atSeconds: number
  readonly operation: string
  readonly model: string | null
  readonly endUser: Id | null
  readonly tags: Readonly<Record<string, string>>
  readonly sums: readonly bigint[]
}

/** From what was asked for, not from what was stored about it: ids and times alone are the ledger's. */
async function readBooked(happened: readonly Happened[]): Promise<readonly Booked[]> {
  const of = new Map(happened.map((one) => [one.call.id, one]))
  const { rows } = await pool.query<{ call: Id; account: Id; credential: Id; at: number; sums: bigint[] }>(
    `select id as call, account_id as account, credential_id as credential, extract(epoch from ended_at)::float8 as at,
       array[1, failed::integer, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, amount] as sums
     from charges where executed and id = any ($1)
     union all
     select corrects, account_id, credential_id, extract(epoch from entered_at)::float8, array[0, 0, 0, 0, 0, 0, 0, charged]
     from entries where corrects = any ($1) and credential_id is not null and charged <> 0`,
    [happened.map(({ call }) => call.id)],
  )
  return rows.map(({ call, account, credential, at, sums }) => {
    const { operation, attribution } = of.get(call) ?? assert.fail()
    return {
      credentialId: credential,
      accountId: account,
      atSeconds: at,
      operation,
      model: attribution?.model ?? null,
      endUser: attribution?.endUser?.id ?? null,
      tags: Object.fromEntries((attribution?.tags ?? []).map(({ name, value }) => [name, value])),
      sums,
    }
  })
}

function valueFor(groupBy: GroupBy, one: Booked): string | null {
  if (typeof groupBy === 'object') return one.tags[groupBy.tag] ?? null
  return { key: one.credentialId, operation: one.operation, model: one.model, end_user: one.endUser }[groupBy]
}

function matches(filter: UsageFilter, one: Booked): boolean {
  const { credentialId, operation, model, tag, endUserId } = filter
  return (
    (credentialId === undefined || credentialId === one.credentialId) &&
    (operation === undefined || operation === one.operation) &&
    (model === undefined || model === one.model) &&
    (tag === undefined || one.tags[tag.name] === tag.value) &&
    (endUserId === undefined || endUserId === one.endUser)
  )
}

function exactly(some: readonly Booked[]): ExactSums {
  const sum = (at: number) => some.reduce((all, { sums }) => all + (sums[at] ?? 0n), 0n)
  const [requests, failedRequests, inputTokens, outputTokens] = [sum(0), sum(1), sum(2), sum(3)]
  const [cacheReadTokens, cacheWriteTokens, value, charged] = [sum(4), sum(5), nanos(sum(6)), nanos(sum(7))]
  return { requests, failedRequests, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, value, charged }
}

const isNothing = (sums: ExactSums) => Object.values(sums).every((sum) => sum === 0n)

/** What each group has in each bucket, added up one by one: a text for each that has anything. */
function expected(booked: readonly Booked[], query: UsageQuery & { readonly groupBy: GroupBy }): readonly string[] {
  const { scope, startSeconds, endSeconds, filter = {}, groupBy, bucket = 'day' } = query
  const width = bucket === 'day' ? DAY : HOUR
  const ours = booked.filter(
    (one) =>
      ('credentialId' in scope ? one.credentialId === scope.credentialId : one.accountId === scope.accountId) &&
      one.atSeconds >= startSeconds &&
      one.atSeconds < endSeconds &&
      matches(filter, one),
  )
  const cells = Map.groupBy(ours, (one) => {
    const from = Math.max(startSeconds, Math.floor(one.atSeconds / width) * width)
    return `${valueFor(groupBy, one)} from ${from}`
  })
  return [...cells].map(([name, some]) => textOf(name, exactly(some))).sort()
}

function textOf(name: string, sums: ExactSums): string {
  return `${name}: ${Object.values(sums).join(' ')}`
}

function told(groups: readonly UsageGroup[]): readonly string[] {
  return groups
    .flatMap(({ value, buckets }) =>
      buckets.map(({ startSeconds, endSeconds: _, ...sums }) => textOf(`${value} from ${startSeconds}`, sums)),
    )
    .sort()
}

const anyFilter = (team: Team) =>
  fc.record(
    {
      credentialId: fc.constantFrom(...team.map(({ credentialId }) => credentialId)),
      operation: fc.constantFrom(...OPERATIONS),
      model: fc.constantFrom('gpt', 'claude'),
    },
    { requiredKeys: [] },
  )

/** A report is about one tag, or about end users. */
const anySubject = fc.oneof(
  fc.record({
    groupBy: fc.constantFrom<GroupBy>('key', 'operation', 'model', 'end_user', { tag: 'team' }, { tag: 'run' }),
  }),
  fc.record({
    groupBy: fc.constantFrom<GroupBy>('key', 'operation', 'model', { tag: 'team' }),
    tag: fc.constantFrom(...TAGS.team).map((value) => ({ name: 'team', value })),
  }),
  fc.record({
    groupBy: fc.constantFrom<GroupBy>('key', 'operation', 'model', 'end_user'),
    endUserId: fc.constantFrom(...END_USERS.map(({ id }) => id)),
  }),
)

const instant = fc.oneof(
  fc.integer({ min: originSeconds, max: nowSeconds + HOUR }),
  fc.integer({ min: 0, max: (DAYS * DAY) / HOUR }).map((hours) => originSeconds + hours * HOUR),
)

function anyQuery(team: Team): fc.Arbitrary<UsageQuery & { readonly groupBy: GroupBy }> {
  return fc
    .record({
      scope: fc.constantFrom(
        { accountId: team[0].accountId },
        { accountId: team[3].accountId },
        { credentialId: team[0].credentialId },
      ),
      times: fc.tuple(instant, instant),
      bucket: fc.constantFrom('day' as const, 'hour' as const),
      filter: anyFilter(team),
      subject: anySubject,
    })
    .map(({ scope, times, bucket, filter, subject: { groupBy, ...subject } }) => ({
      scope,
      startSeconds: Math.min(...times),
      endSeconds: Math.max(...times),
      bucket,
      filter: { ...filter, ...subject },
      groupBy,
    }))
}

/** Reports of every kind, each held against the calls. How many there were of groups. */
async function compare(team: Team, happened: readonly Happened[], queries: number): Promise<number> {
  const booked = await readBooked(happened)
  let cells = 0
  // Chance alone may miss what was just booked.
  const whole = {
    startSeconds: originSeconds,
    endSeconds: nowSeconds + HOUR,
    bucket: 'day',
    groupBy: 'operation',
  } as const
  const all = { ...whole, scope: { accountId: team[0].accountId } }
  for (const query of [all, ...fc.sample(anyQuery(team), { seed, numRuns: queries })]) {
    const { groups = [], totals } = await readUsage(pool, query)
    const cellsTold = told(groups.filter(({ totals: all, buckets }) => buckets.length > 0 || !isNothing(all)))
    assert.deepEqual(cellsTold, expected(booked, query), JSON.stringify(query))
    assert.equal(
      groups.reduce((sum, group) => sum + group.totals.requests, 0n),
      totals.requests,
    )
    cells += cellsTold.length
  }
  return cells
}

/** Moves what has happened to the days before, and puts it into the tail. */
async function scatter(happened: readonly Happened[]): Promise<void> {
  await session.query('set session_replication_role = replica')
  const times = [happened.map(({ call }) => call.id), happened.map(({ endedSeconds }) => endedSeconds)]
  await session.query(
    `update charges set ended_at = to_timestamp(item.seconds)
     from unnest($1::uuid[], $2::float8[]) item (id, seconds) where charges.id = item.id`,
    times,
  )
  await session.query(
    `update entries set entered_at = least(to_timestamp(item.seconds + 5000), to_timestamp($3))
     from unnest($1::uuid[], $2::float8[]) item (id, seconds) where entries.corrects = item.id`,
    [...times, nowSeconds - 1],
  )
  await session.query('reset session_replication_role')
  await bookAnew((text) => session.query(text))
}

describe('whose spend it is', () => {
  it('is on the hold, and on the charge with the route, for one call and for many of a batch', async () => {
    const party = await makeParty(pool, 1_000n)
    const attribution: Attribution = {
      model: 'gpt',
      endUser: { id: ids.next(), label: 'somebody' },
      tags: [
        { name: 'run', value: '4"2' },
        { name: 'team', value: 'a=b' },
      ],
    }
    const calls = [1, 2, 3].map(() => callOf(party, { hold: 10n, attribution }))
    const plain = callOf(party, { hold: 10n })
    const [alone, ...others] = calls
    assert.ok(alone)
    await session.begin(alone)
    await session.begin(plain, ...others)
    const said = `end_user as "endUser", end_user_label as label, tags`
    const held = await session.query(
      `select asked_model as model, ${said} from holds where account_id = $1 order by id`,
      [party.accountId],
    )
    const own = { model: 'gpt', endUser: attribution.endUser?.id, label: 'somebody', tags: ['run=4"2', 'team=a=b'] }
    const none = { model: null, endUser: null, label: null, tags: null }
    assert.deepEqual(held, [own, own, own, none])

    await session.end({ ...postOf(alone, 5n), route: 'east' })
    await session.end(
      ...others.map((call, at) => ({ ...postOf(call, 5n), ...(at === 0 && { route: 'west' }) })),
      postOf(plain, 5n),
    )
    const ended = await session.query(`select model, ${said}, route from charges where account_id = $1 order by id`, [
      party.accountId,
    ])
    assert.deepEqual(ended, [
      { ...own, route: 'east' },
      { ...own, route: 'west' },
      { ...own, route: null },
      { ...none, route: null },
    ])
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })

  it('is refused where it would be read as something else', async () => {
    const party = await makeParty(pool, 1_000n)
    const withTags = (...names: readonly string[]) =>
      session.begin(
        callOf(party, {
          attribution: { model: null, endUser: null, tags: names.map((name) => ({ name, value: 'x' })) },
        }),
      )
    await assert.rejects(withTags('a=b'), /no equals sign/)
    await assert.rejects(withTags(''), /no equals sign/)
    await assert.rejects(withTags('a', 'a'), /once/)
    const empty = { model: null, endUser: null, tags: [{ name: 'a', value: '' }] }
    await assert.rejects(session.begin(callOf(party, { attribution: empty })), /not empty/)
    await assert.rejects(withTags(...'abcdefghi'), /at most 8/)
    assert.equal((await session.query('select from holds where account_id = $1', [party.accountId])).length, 0)
  })
})

describe('usage by whose spend it is', () => {
  it(`equals the calls to the nano for every dimension, filter and bucket, in the tail, in the sums and in both (seed ${seed})`, async () => {
    const team = await makeTeam()
    const happened = await happen(team, CALLS)
    assert.deepEqual(await verifyLedger(pool), [])
    // As it was booked, which is about now.
    assert.ok((await compare(team, happened, QUERIES / 4)) > 0)
    await scatter(happened)
    assert.deepEqual(await verifyLedger(pool), [])
    let cells = await compare(team, happened, QUERIES / 4)
    const before = await inTail(pool)
    await session.query('select add_up_usage(most => $1)', [Math.floor(before / 2)])
    assert.equal(await inTail(pool), before - Math.floor(before / 2))
    assert.deepEqual(await verifyLedger(pool), [])
    cells += await compare(team, happened, QUERIES / 4)
    // Some days are combined, and one in part, before the other half comes to them.
    for (let steps = 0; steps < 7; steps += 1) await session.query('select combine_usage_days(most => 10)')
    assert.equal((await session.query('select from usage_combined')).length, 1)
    assert.ok((await addUpUsage(pool)) > 0)
    assert.equal(await inTail(pool), 0)
    assert.deepEqual(await verifyLedger(pool), [])
    cells += await compare(team, happened, QUERIES / 4)
    assert.ok(cells > 0)
    sometimes(cells > QUERIES, `more sums than reports (${cells} in ${QUERIES})`)
    recordProof('attribution', 'groups of reports that equal the calls, to the nano', {
      calls: CALLS,
      reports: QUERIES,
      sums: cells,
    })
  })

  it('tells the largest groups apart, and the smaller ones as one', async () => {
    const party = await makeParty(pool, 10n ** 9n)
    const calls = Array.from({ length: 60 }, (_, at) =>
      callOf(party, {
        hold: 1_000n,
        attribution: { model: null, endUser: { id: ids.next(), label: `u${at}` }, tags: [] },
      }),
    )
    await session.begin(...calls)
    await session.end(...calls.map((call, at) => postOf(call, BigInt(at + 1))))
    await addUpUsage(pool)
    const window = { scope: party, startSeconds: nowSeconds - DAY, endSeconds: nowSeconds + DAY }
    const { groups = [], otherGroups } = await readUsage(pool, { ...window, groupBy: 'end_user' })
    assert.equal(otherGroups, 10)
    assert.deepEqual(
      groups.slice(0, 50).map(({ kind, label, totals }) => [kind, label, totals.charged]),
      Array.from({ length: 50 }, (_, at) => ['group', `u${59 - at}`, BigInt(60 - at)]),
    )
    assert.deepEqual(
      groups.slice(50).map(({ kind, value, totals }) => [kind, value, totals.requests, totals.charged]),
      [['other', null, 10n, 55n]],
    )
  })
})

/** A transaction of its own, on a connection of its own. */
async function onItsOwn<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(database.url)
  client.on('error', () => {})
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end().catch(() => {})
  }
}

async function spentOf({ credentialId }: Party): Promise<bigint> {
  return (await spendOfKeys(pool, [credentialId])).get(credentialId)?.total ?? 0n
}

describe('what is added up', () => {
  const window = { startSeconds: nowSeconds - 2 * DAY, endSeconds: nowSeconds + DAY }
  const chargedOf = async (scope: Party) => {
    const { totals, groups = [] } = await readUsage(pool, { scope, ...window, groupBy: 'operation' })
    const grouped = groups.reduce((sum, group) => sum + group.totals.charged, 0n)
    return { requests: totals.requests, grouped, spent: await spentOf(scope) }
  }

  async function charge(party: Party, calls: number, through = session): Promise<void> {
    // Each of another run, so that each has a row of the tail.
    const some = Array.from({ length: calls }, (_, at) =>
      callOf(party, {
        hold: 10n,
        attribution: { model: null, endUser: null, tags: [{ name: 'run', value: String(at) }] },
      }),
    )
    await through.begin(...some)
    await through.end(...some.map((call) => postOf(call, 1n)))
  }

  it('has a row of the tail for the calls of a batch that are alike in whose they are, whatever their routes', async () => {
    const party = await makeParty(pool, 10n ** 6n)
    const of = (name: string) => ({ model: 'gpt', endUser: null, tags: [{ name: 'team', value: name }] })
    const calls = ['a', 'a', 'b', 'a', 'b'].map((name) => callOf(party, { hold: 10n, attribution: of(name) }))
    await session.begin(...calls)
    await session.end(
      ...calls.map((call, at) => ({
        ...postOf(call, BigInt(at), { failed: at === 1 }),
        ...(at === 3 && { route: 'west' }),
      })),
    )
    const rows = await session.query(
      `select tags, requests, failed_requests as failed, charged from usage_tail where account_id = $1 order by tags`,
      [party.accountId],
    )
    assert.deepEqual(rows, [
      { tags: ['team=a'], requests: 3, failed: 1, charged: 4n },
      { tags: ['team=b'], requests: 2, failed: 0, charged: 6n },
    ])
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
    await addUpUsage(pool)
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })

  it('is in the tail or in the sums when whoever adds it up dies at any step', async () => {
    const party = await makeParty(pool, 10n ** 6n)
    await charge(party, 40)
    const whole = { requests: 40n, grouped: 40n, spent: 40n }
    for (let most = 0; most <= 45; most += 5) {
      await onItsOwn(async (client) => {
        await client.query('begin')
        await client.query('select add_up_usage(most => $1)', [most])
        assert.deepEqual(await chargedOf(party), whole, 'nobody sees half of it')
        // Its connection goes away before it commits.
      })
      assert.deepEqual(await chargedOf(party), whole)
    }
    assert.ok((await inTail(pool)) >= 40)
    for (const most of [7, 1, 30, 100]) {
      await session.query('select add_up_usage(most => $1)', [most])
      assert.deepEqual(await chargedOf(party), whole)
      assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
    }
    assert.equal(await inTail(pool), 0)
  })

  it('is added by one at a time, and once, however many are at it', async () => {
    const party = await makeParty(pool, 10n ** 6n)
    await charge(party, 200)
    await onItsOwn(async (client) => {
      await client.query('begin')
      await client.query('select add_up_usage(most => 5)')
      const [other] = await session.query('select add_up_usage(most => 5) as added')
      assert.deepEqual(other, { added: null })
      await client.query('commit')
    })
    const all = await Promise.all(Array.from({ length: 8 }, () => addUpUsage(pool)))
    while ((await inTail(pool)) > 0) all.push(await addUpUsage(pool))
    assert.equal(
      all.reduce((sum, added) => sum + added, 0),
      195,
    )
    assert.deepEqual(await chargedOf(party), { requests: 200n, grouped: 200n, spent: 200n })
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })

  it('has what was committed late, after all that came behind it had been added', async () => {
    const [early, later] = [await makeParty(pool, 10n ** 6n), await makeParty(pool, 10n ** 6n)]
    const late = await openSession(database.url)
    try {
      await late.query('begin')
      await charge(early, 3, late)
      await charge(later, 5)
      await addUpUsage(pool)
      assert.equal(await inTail(pool), 0)
      assert.deepEqual(await chargedOf(early), { requests: 0n, grouped: 0n, spent: 0n })
      await late.query('commit')
      assert.deepEqual(await chargedOf(early), { requests: 3n, grouped: 3n, spent: 3n })
      assert.equal(await addUpUsage(pool), 3)
      assert.deepEqual(await chargedOf(early), { requests: 3n, grouped: 3n, spent: 3n })
      assert.deepEqual(await verifyLedger(pool, [early.accountId, later.accountId]), [])
    } finally {
      await late.close()
    }
  })

  it('is in the hour of its settlement though the clock was set back after later ones were added', async () => {
    const party = await makeParty(pool, 10n ** 6n)
    await charge(party, 4)
    await addUpUsage(pool)
    await charge(party, 2)
    // As if PostgreSQL's clock had been a day behind when these were settled.
    await session.query('set session_replication_role = replica')
    await session.query(
      `update charges set ended_at = ended_at - interval '1 day' where id in
         (select id from charges where account_id = $1 order by id desc limit 2)`,
      [party.accountId],
    )
    await session.query('reset session_replication_role')
    await session.query("update usage_tail set at = at - interval '1 day' where account_id = $1", [party.accountId])
    assert.deepEqual(await chargedOf(party), { requests: 6n, grouped: 6n, spent: 6n })
    assert.equal(await addUpUsage(pool), 2)
    assert.deepEqual(await chargedOf(party), { requests: 6n, grouped: 6n, spent: 6n })
    const { buckets } = await readUsage(pool, { scope: party, ...window })
    assert.deepEqual(
      buckets.map(({ requests }) => requests).filter((requests) => requests > 0n),
      [2n, 4n],
    )
    assert.deepEqual(await verifyLedger(pool, [party.accountId]), [])
  })
})

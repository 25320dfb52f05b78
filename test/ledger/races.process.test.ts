import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { judge } from '../../harness/figures.ts'
import { count, isFullProof, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Claim } from '../../server/src/calls/call.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import type { Window } from '../../server/src/limits/window.ts'
import { fixedWindows, microseconds, mostAtOnce } from './instants.ts'
import type { CallTemplate, Race, Result, Shape } from './racer.ts'
import { PROCESSES, startTeam, type Team } from './team.ts'
import { connect, holdOf, makeAccount, makeAllowance, makeCredential, ROOMY } from './world.ts'

const PROOF = 'ledger-races'
const USD = 1_000_000_000n

/** As the product sends them, in few large batches; and over many connections in small ones, so that many race. */
const SHAPES: readonly Shape[] = [
  { lanes: 1, batchLimit: 256 },
  { lanes: 4, batchLimit: 7 },
]
const ROUNDS = count({ full: 15, reduced: 2 })
const WINDOW = isFullProof ? { seconds: 60, requestLimit: 3_000 } : { seconds: 2, requestLimit: 100 }
const WINDOWS = 5

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const team = startTeam(database.url)
after(async () => {
  await team.close()
  await pools.close()
})

async function makeCall(balance: bigint, amount: bigint, parts: Partial<CallTemplate> = {}): Promise<CallTemplate> {
  const accountId = await makeAccount(pool, balance)
  const credentialId = await makeCredential(pool, accountId)
  const base = {
    accountId,
    credentialId,
    operation: 'race',
    hold: holdOf(amount),
    tokens: 1,
    windows: [ROOMY],
    claims: [],
  }
  return { ...base, ...parts }
}

/** The part of `all` that a process has to do. */
function share(all: number, place: number): number {
  return Math.floor(all / PROCESSES) + (place < all % PROCESSES ? 1 : 0)
}

const beginEach = (call: CallTemplate, all: number) => (place: number) =>
  ({ kind: 'begin', calls: Array.from({ length: share(all, place) }, () => call) }) as const

/** Runs a race while the promises are evaluated over and over: they hold at any instant, not only at the end. */
async function raceUnderWatch(accountId: Id, racers: Team, shape: Shape, raceOf: (place: number) => Race) {
  let running = true
  let looks = 0
  const watch = async () => {
    for (; running; looks += 1) assert.deepEqual(await verifyLedger(pool, [accountId]), [])
  }
  const racing = racers.race(shape, raceOf).finally(() => {
    running = false
  })
  const [results] = await Promise.all([racing, watch()])
  assert.deepEqual(await verifyLedger(pool, [accountId]), [])
  const all = results.flat()
  return { all, tally: tally(all), looks, statements: statementsOf(all), interleaved: interleavings(results) }
}

function tally(results: readonly Result[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { judgement, settlement } of results) {
    const outcome = settlement?.outcome ?? judgement?.outcome ?? 'nothing'
    counts[outcome] = (counts[outcome] ?? 0) + 1
  }
  return counts
}

const instantOf = ({ judgement, settlement }: Result) =>
  microseconds(judgement?.judgedAt ?? settlement?.settledAt ?? '')

function statementsOf(results: readonly Result[]): number {
  return new Set(results.map(instantOf)).size
}

/** How often the turn went from one process to another: without that, there was no race. */
function interleavings(results: readonly (readonly Result[])[]): number {
  const turns = results.flatMap((mine, place) => [...new Set(mine.map(instantOf))].map((atUs) => ({ atUs, place })))
  turns.sort((a, b) => (a.atUs < b.atUs ? -1 : 1))
  return turns.filter(({ place }, at) => at > 0 && turns[at - 1]?.place !== place).length
}

async function accountRow(accountId: Id): Promise<{ readonly charged: bigint; readonly held: bigint; holds: number }> {
  const { rows } = await pool.query(
    `select charged, held, (select count(*)::integer from holds where account_id = a.id) as holds from accounts a where id = $1`,
    [accountId],
  )
  return rows[0]
}

type Watched = Awaited<ReturnType<typeof raceUnderWatch>>

type Figures = Readonly<Record<string, unknown>> & { readonly turns_between_processes: number }

function figuresOf({ tally: outcomes, statements, interleaved, looks }: Watched): Figures {
  return { outcomes, statements, turns_between_processes: interleaved, verified_meanwhile: looks }
}

/** Repeats a race in both shapes and records what came of it. */
function races(title: string, once: (shape: Shape) => Promise<Figures>): void {
  it(title, async () => {
    const shown: Record<string, Figures> = {}
    for (const shape of SHAPES) {
      let turns = 0
      for (let round = 0; round < ROUNDS; round += 1) {
        const figures = await once(shape)
        turns = Math.max(turns, figures.turns_between_processes)
        shown[`${shape.lanes * PROCESSES} connections, batches of up to ${shape.batchLimit}`] = figures
      }
      assert.ok(turns >= PROCESSES - 1, 'in some round all processes had a turn')
    }
    recordProof(PROOF, title, { processes: PROCESSES, rounds_each: ROUNDS, last_round: shown })
  })
}

describe('three processes that race', () => {
  races('1,000 holds against a balance worth 100: exactly 100 are begun', async (shape) => {
    const call = await makeCall(100n * 7n, 7n)
    const race = await raceUnderWatch(call.accountId, team, shape, beginEach(call, 1_000))
    assert.deepEqual(race.tally, { begun: 100, money_spent: 900 })
    assert.deepEqual(await accountRow(call.accountId), { charged: 0n, held: 700n, holds: 100 })
    return figuresOf(race)
  })

  races('50 settlers of one hold: one charge, and all get the same answer', async (shape) => {
    const HOLDS = 10
    const SETTLERS = 50
    const call = await makeCall(1_000_000n, 1_000n)
    const open = (await team.race(shape, beginEach(call, HOLDS))).flat().map(({ id }) => id)
    const race = await raceUnderWatch(call.accountId, team, shape, (place) => ({
      kind: 'settle',
      accountId: call.accountId,
      ids: open,
      // Each for another amount, so that the same answer can only be the first one's.
      amounts: Array.from({ length: share(SETTLERS, place) }, (_, at) => BigInt(1 + place + at * PROCESSES)),
    }))
    assert.deepEqual(race.tally, { posted: HOLDS * SETTLERS })
    let charged = 0n
    for (const id of open) {
      const answers = race.all.filter((result) => result.id === id).map(({ settlement }) => settlement)
      assert.equal(answers.length, SETTLERS)
      assert.equal(new Set(answers.map((answer) => answer?.charged)).size, 1, 'all get the same answer')
      assert.equal(answers.filter((answer) => answer?.endedNow).length, 1, 'one of them ended it')
      charged += BigInt(answers[0]?.charged ?? 0n)
    }
    assert.deepEqual(await accountRow(call.accountId), { charged, held: 0n, holds: 0 })
    const { rows } = await pool.query('select id from charges where account_id = $1 order by id', [call.accountId])
    assert.deepEqual(
      rows.map(({ id }) => id),
      open.toSorted(),
    )
    return { ...figuresOf(race), holds: HOLDS, charges: rows.length }
  })

  races('an allowance of 5 USD and 1,000 calls of 0.10 USD: exactly 50 are begun', async (shape) => {
    const accountId = await makeAccount(pool, 1_000n * USD)
    const credentialId = await makeCredential(pool, accountId)
    const allowance = await makeAllowance(pool, accountId, 'month', 5n * USD)
    const hold = holdOf(USD / 10n, [allowance])
    const call = { accountId, credentialId, operation: 'race', hold, tokens: 1, windows: [ROOMY], claims: [] }
    const race = await raceUnderWatch(accountId, team, shape, beginEach(call, 1_000))
    assert.deepEqual(race.tally, { begun: 50, allowance_spent: 950 })
    assert.deepEqual(await accountRow(accountId), { charged: 0n, held: 5n * USD, holds: 50 })
    return figuresOf(race)
  })

  races('1,000 racers for one idempotency key: one gets it, and the others learn who', async (shape) => {
    const key: Claim = {
      scope: 'idempotency',
      key: 'once',
      limit: 1,
      fingerprint: 'same',
      keepSeconds: 60,
      endsWithOwner: false,
    }
    const call = await makeCall(1_000n * USD, 5n, { claims: [key] })
    const race = await raceUnderWatch(call.accountId, team, shape, beginEach(call, 1_000))
    assert.deepEqual(race.tally, { begun: 1, claim_taken: 999 })
    const winner = race.all.find(({ judgement }) => judgement?.outcome === 'begun')?.id
    const holders = race.all.flatMap(({ judgement }) => (judgement?.outcome === 'claim_taken' ? judgement.holder : []))
    assert.deepEqual([...new Set(holders)], [winner])
    assert.deepEqual(await accountRow(call.accountId), { charged: 0n, held: 5n, holds: 1 })
    return figuresOf(race)
  })

  const slot: Claim = {
    scope: 'concurrency',
    key: 'all',
    limit: 5,
    fingerprint: '',
    keepSeconds: 0,
    endsWithOwner: true,
  }

  races('100 racers for 5 slots that nobody leaves: 5 get in', async (shape) => {
    const call = await makeCall(1_000n * USD, 5n, { claims: [slot] })
    const race = await raceUnderWatch(call.accountId, team, shape, beginEach(call, 100))
    assert.deepEqual(race.tally, { begun: 5, claim_taken: 95 })
    assert.deepEqual(await accountRow(call.accountId), { charged: 0n, held: 25n, holds: 5 })
    return figuresOf(race)
  })

  races('100 racers for 5 slots that are left again: all get in, never more than 5 at once', async (shape) => {
    const call = await makeCall(1_000n * USD, 5n, { claims: [slot] })
    const race = await raceUnderWatch(call.accountId, team, shape, (place) => ({
      kind: 'slots',
      call,
      racers: share(100, place),
      stayMs: 10,
    }))
    assert.deepEqual(race.tally, { posted: 100 })
    const stays = race.all.map(({ judgement, settlement }) => ({
      fromUs: microseconds(judgement?.judgedAt ?? ''),
      toUs: microseconds(settlement?.settledAt ?? ''),
    }))
    assert.equal(mostAtOnce(stays), 5)
    const { rows } = await pool.query('select from holds where credential_id = $1', [call.credentialId])
    assert.equal(rows.length, 0)
    return { ...figuresOf(race), most_at_once: mostAtOnce(stays) }
  })

  it(`a window of ${WINDOW.requestLimit} requests in ${WINDOW.seconds} s at twice that rate over ${WINDOWS} windows: never one more, and at least 99 % of each`, async () => {
    const { seconds, requestLimit } = WINDOW
    const window: Window = { group: 'all', seconds, requestLimit, tokenLimit: null }
    const call = await makeCall(1_000n * USD, 5n, { windows: [window] })
    const perSecond = (2 * requestLimit) / seconds / PROCESSES
    const durationMs = (WINDOWS + 0.6) * seconds * 1_000
    const race = { kind: 'stream', call, perSecond, durationMs } as const
    const results = (await team.race({ lanes: 1, batchLimit: 256 }, () => race)).flat()

    const { rows } = await pool.query<{ at: string }>(
      'select begun_at::text as at from charges where account_id = $1',
      [call.accountId],
    )
    const begunAtUs = rows.map(({ at }) => microseconds(at))
    assert.equal(begunAtUs.length, results.filter(({ settlement }) => settlement !== undefined).length)
    const admitted = fixedWindows(begunAtUs, seconds)
    const whole = admitted.slice(0, WINDOWS)
    assert.ok(whole.length > 1)
    assert.ok(Math.max(...admitted) <= requestLimit, `a window of ${requestLimit} admitted ${admitted}`)
    // Whether so many are sent in time is a matter of the machine.
    if (isFullProof) assert.equal(whole.length, WINDOWS)
    const unused = whole.map((calls) => 1 - calls / requestLimit)
    judge(PROOF, 'what stays unused of a window at twice its rate', { unit: 'share', atMost: 0.01 }, unused)
    checkRemaining(results, requestLimit)
    assert.deepEqual(await verifyLedger(pool, [call.accountId]), [])
    recordProof(PROOF, 'a window at twice its rate', { ...WINDOW, sent: results.length, admitted: whole })
  })
})

/** Within a window, the calls that it admits count Remaining down to 0, each number once; a refusal says 0. */
function checkRemaining(results: readonly Result[], requestLimit: number): void {
  const windows = new Map<number, number[]>()
  for (const { judgement } of results) {
    const { left, resetAtMs } = judgement?.rates.requests ?? { left: Number.NaN, resetAtMs: Number.NaN }
    if (judgement?.outcome !== 'begun') assert.deepEqual([judgement?.outcome, left], ['requests_spent', 0])
    else windows.set(Math.round(resetAtMs), [...(windows.get(Math.round(resetAtMs)) ?? []), left])
  }
  for (const lefts of windows.values()) {
    const expected = lefts.map((_, at) => requestLimit - 1 - at)
    assert.deepEqual(
      lefts.toSorted((a, b) => b - a),
      expected,
    )
  }
}

describe('what goes into one batch', () => {
  const ONE_BATCH: Shape = { lanes: 1, batchLimit: 256 }

  const TRIES = 100

  /**
   * Begins them in one process in one turn; their outcomes in order. A lane does not wait for a turn that takes long, as it may on a busy machine: then there are two
   * batches, and new ones are tried.
   */
  async function beginTogether(make: () => Promise<readonly CallTemplate[]>): Promise<string[]> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const calls = await make()
      const [results = []] = await team.race(ONE_BATCH, (place) => ({ kind: 'begin', calls: place === 0 ? calls : [] }))
      if (statementsOf(results) === 1) return results.map(({ judgement }) => judgement?.outcome ?? '')
    }
    assert.fail('they were never judged in one batch')
  }

  it('is judged one by one: a refused large call does not shadow the small ones behind it', async () => {
    let small = await makeCall(100n, 10n)
    const outcomes = await beginTogether(async () => {
      small = await makeCall(100n, 10n)
      const large = { ...small, hold: holdOf(1_000n) }
      return [small, large, ...Array.from({ length: 12 }, () => small)]
    })
    const spent = 'money_spent'
    assert.deepEqual(outcomes, ['begun', spent, ...Array.from({ length: 9 }, () => 'begun'), spent, spent, spent])
    assert.deepEqual(await accountRow(small.accountId), { charged: 0n, held: 100n, holds: 10 })
  })

  it('is judged one by one for allowances and tokens too', async () => {
    const ofBudget = await beginTogether(async () => {
      const budgeted = await makeCall(1_000n * USD, 10n)
      const allowance = await makeAllowance(pool, budgeted.accountId, 'day', 100n)
      const [small, large] = [10n, 101n].map((amount) => ({ ...budgeted, hold: holdOf(amount, [allowance]) }))
      assert.ok(small && large)
      return [large, small, large, small]
    })
    assert.deepEqual(ofBudget, ['allowance_spent', 'begun', 'allowance_spent', 'begun'])
    const window: Window = { group: 'all', seconds: 60, requestLimit: 100, tokenLimit: 50 }
    const ofTokens = await beginTogether(async () => {
      const modest = await makeCall(1_000n, 1n, { windows: [window], tokens: 20 })
      return [modest, { ...modest, tokens: 51 }, modest, modest]
    })
    assert.deepEqual(ofTokens, ['begun', 'tokens_spent', 'begun', 'tokens_spent'])
  })
})

describe('what went wrong in other gateways', () => {
  const [, MANY_CONNECTIONS = { lanes: 4, batchLimit: 7 }] = SHAPES
  const FIRSTS = count({ full: 100, reduced: 5 })

  it('trap: concurrent first requests all pass the budget', async () => {
    for (let round = 0; round < FIRSTS; round += 1) {
      const call = await makeCall(1_000n * USD, USD)
      const allowance = await makeAllowance(pool, call.accountId, 'total', 2n * USD)
      const budgeted = { ...call, hold: holdOf(USD, [allowance]) }
      const race = await raceUnderWatch(call.accountId, team, MANY_CONNECTIONS, beginEach(budgeted, 30))
      assert.deepEqual(race.tally, { begun: 2, allowance_spent: 28 })

      const poor = await makeCall(2n * USD, USD)
      const other = await raceUnderWatch(poor.accountId, team, MANY_CONNECTIONS, beginEach(poor, 30))
      assert.deepEqual(other.tally, { begun: 2, money_spent: 28 })
    }
    recordProof(PROOF, 'concurrent first requests of a budget and of a balance worth 2', { each: FIRSTS, of: 30 })
  })

  it('trap: a cold counter is reseeded by every replica', async () => {
    const call = await makeCall(1_000n * USD, USD / 10n)
    const allowance = await makeAllowance(pool, call.accountId, 'month', 5n * USD)
    const budgeted = { ...call, hold: holdOf(USD / 10n, [allowance]) }
    await raceUnderWatch(call.accountId, team, MANY_CONNECTIONS, beginEach(budgeted, 30))
    const cold = startTeam(database.url)
    try {
      const race = await raceUnderWatch(call.accountId, cold, MANY_CONNECTIONS, beginEach(budgeted, 60))
      assert.deepEqual(race.tally, { begun: 20, allowance_spent: 40 })
    } finally {
      await cold.close()
    }
  })

  it('trap: an estimate above what is left is shrunk to the remainder and admitted', async () => {
    const call = await makeCall(100n, 60n)
    const allowance = await makeAllowance(pool, call.accountId, 'total', 90n)
    const begin = async (amount: bigint, allowances: readonly Id[] = []) => {
      const asked = { ...call, hold: holdOf(amount, allowances) }
      const race = await raceUnderWatch(call.accountId, team, MANY_CONNECTIONS, beginEach(asked, 30))
      return race.tally
    }
    assert.deepEqual(await begin(60n, [allowance]), { begun: 1, allowance_spent: 29 })
    assert.deepEqual(await begin(31n, [allowance]), { allowance_spent: 30 })
    assert.deepEqual(await begin(41n), { money_spent: 30 })
    assert.deepEqual(await accountRow(call.accountId), { charged: 0n, held: 60n, holds: 1 })
    assert.deepEqual(await begin(30n, [allowance]), { begun: 1, allowance_spent: 29 })
    assert.deepEqual(await begin(10n), { begun: 1, money_spent: 29 })
    assert.deepEqual(await accountRow(call.accountId), { charged: 0n, held: 100n, holds: 3 })
  })
})

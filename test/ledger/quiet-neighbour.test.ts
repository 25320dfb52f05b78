import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { judge } from '../../harness/figures.ts'
import { count, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { type Credential, measureBegin, type Shape } from './racer.ts'
import { startTeam } from './team.ts'
import { connect, makeAccount, makeCredential, pg } from './world.ts'

/**
 * What a hot neighbour costs a quiet account. On a machine where the load generator, PostgreSQL and the quiet account's
 * process share two cores, any load makes everybody wait for a core; that is not what is asked. So "alone" is the same
 * neighbour process with the same 200 calls in flight, spread over many accounts instead of one: the only difference is
 * that the neighbour's calls all want one row. The quiet account on an idle machine is measured beside it, for the record.
 *
 * Conditions take turns in short rounds, in another order each time, so that a disturbance from outside meets all of
 * them; the figure is the median over the rounds of each round's p99.
 */
const PROOF = 'ledger-neighbour'
const IN_FLIGHT = 200
const OTHERS = 5_000
const ROUNDS = count({ full: 15, reduced: 1 })
const ROUND_MS = count({ full: 4_000, reduced: 300 })
const SETTLING_MS = count({ full: 300, reduced: 100 })
const PAUSE_MS = 3
const BALANCE = 10n ** 15n
/** Judged in proofs only, as every figure of time. */
const LIMIT = { unit: 'ratio', atMost: 3 } as const
const SHAPE: Shape = { lanes: 1, batchLimit: 256 }
const CONDITIONS = ['idle', 'spread', 'hot'] as const
type Condition = (typeof CONDITIONS)[number]

const database = await freshDatabase()
const { pools, calls } = connect(database.url)
const neighbour = startTeam(database.url, 1)
after(async () => {
  await neighbour.close()
  await pools.close()
})

async function makeCredentials(wanted: number): Promise<Credential[]> {
  const made: Credential[] = []
  for (let at = 0; at < wanted; at += 1) {
    const accountId = await makeAccount(pools.rest, BALANCE)
    made.push({ id: await makeCredential(pools.rest, accountId), accountId })
  }
  return made
}

/** Made by one statement: thousands of accounts one by one would take longer than the test. */
async function makeManyCredentials(wanted: number): Promise<Credential[]> {
  const { rows } = await pools.rest.query<{ id: Id; accountId: Id }>(
    `with made as (
       insert into accounts (id, mode, credited, paid) select gen_random_uuid(), 'live', $2, $2 from generate_series(1, $1::integer) returning id
     ), entered as (
       insert into entries (id, account_id, kind, credited) select gen_random_uuid(), id, 'payment', $2 from made
     )
     insert into credentials (id, account_id) select gen_random_uuid(), id from made
     returning id, account_id as "accountId"`,
    [wanted, BALANCE],
  )
  return rows
}

describe('a quiet account', () => {
  it('begins within 3 × its p99 beside the same load spread out, while another process hammers one hot account', async () => {
    const [quiet, hot] = await makeCredentials(2)
    assert.ok(quiet && hot)
    const credentials: Record<Condition, readonly Credential[]> = {
      idle: [],
      hot: [hot],
      spread: await makeManyCredentials(OTHERS),
    }
    await pools.rest.query('analyze')

    const rounds = await inRounds(async (condition) => {
      const running = await neighbour.start(SHAPE, () => ({
        kind: 'hammer',
        credentials: credentials[condition],
        inFlight: IN_FLIGHT,
        measured: null,
      }))
      await delay(SETTLING_MS)
      const taken = await sample(quiet)
      await running.stop()
      return taken
    })
    judgeRounds('in a process of its own', rounds)
    await judgeNeighbours('in a process of its own', credentials, SETTLING_MS + ROUND_MS)
    assert.deepEqual(await verifyLedger(pools.rest, [quiet.accountId, hot.accountId]), [])
  })

  it('begins within 3 × its p99 beside the same load spread out, in a process that carries the hot account as well', async () => {
    const [quiet, hot] = await makeCredentials(2)
    assert.ok(quiet && hot)
    const credentials: Record<Condition, readonly Credential[]> = {
      idle: [],
      hot: [hot],
      spread: await makeManyCredentials(OTHERS),
    }
    const both = startTeam(database.url, 2)
    after(() => both.close())
    const rounds = await inRounds(async (condition) => {
      const before = await callsOf([quiet])
      const running = await both.start(SHAPE, (place) => ({
        kind: 'hammer',
        credentials: credentials[condition],
        inFlight: IN_FLIGHT / 2,
        measured: place === 0 ? quiet : null,
      }))
      await delay(ROUND_MS)
      // On a busy machine the quiet account's turn may come later than a short round ends.
      await until(async () => (await callsOf([quiet])) > before, PATIENCE_MS, 'a call of the quiet account')
      const [results = []] = await running.stop()
      return results.flatMap(({ tookMs }) => tookMs ?? [])
    })
    const title = 'in a process that carries half of the hot calls, beside one with the other half'
    judgeRounds(title, rounds)
    await judgeNeighbours(title, credentials, ROUND_MS)
    assert.deepEqual(await verifyLedger(pools.rest, [quiet.accountId, hot.accountId]), [])
  })

  it('begins and ends while another session keeps the lock of an account that the same process waits for', async () => {
    const patient = connect(database.url)
    after(() => patient.pools.close())
    const [quiet, locked] = await makeCredentials(2)
    assert.ok(quiet && locked)
    await measureBegin(patient.calls, quiet)
    const locker = new pg.Client(database.url)
    await locker.connect()
    await locker.query('begin')
    await locker.query('select from accounts where id = $1 for update', [locked.accountId])
    const order: string[] = []
    const waiting = measureBegin(patient.calls, locked).then(() => order.push('locked'))
    await until(isWaitingForALock, PATIENCE_MS, 'the wait for the lock')
    const startedAtMs = performance.now()
    const quietly = measureBegin(patient.calls, quiet).then(() => order.push('quiet'))
    await Promise.race([quietly, delay(PATIENCE_MS / 2, undefined, { ref: false })])
    const tookMs = performance.now() - startedAtMs
    order.push('released')
    await locker.query('rollback')
    await locker.end()
    await Promise.all([waiting, quietly])
    assert.deepEqual(order, ['quiet', 'released', 'locked'])
    judge(PROOF, 'begin and end beside a locked account', { unit: 'ms', atMost: 1_500 }, [tookMs])
  })

  async function sample(credential: Credential): Promise<number[]> {
    const taken: number[] = []
    for (const startedAtMs = performance.now(); performance.now() - startedAtMs < ROUND_MS; await delay(PAUSE_MS))
      taken.push((await measureBegin(calls, credential)).tookMs ?? Number.NaN)
    return taken
  }
})

/** How many calls the neighbours of a condition made, and so whether they did what they are here for. */
async function callsOf(credentials: readonly Credential[]): Promise<number> {
  const { rows } = await pools.rest.query<{ calls: number }>(
    // Each of their calls is charged 1.
    'select coalesce(sum(charged), 0)::integer as calls from accounts where id = any ($1)',
    [credentials.map(({ accountId }) => accountId)],
  )
  return rows[0]?.calls ?? 0
}

async function judgeNeighbours(title: string, credentials: Record<Condition, readonly Credential[]>, slotMs: number) {
  for (const condition of ['spread', 'hot'] as const) {
    const made = await callsOf(credentials[condition])
    assert.ok(made >= ROUNDS * IN_FLIGHT, `the ${condition} neighbour made only ${made} calls`)
    const limit = { unit: 'ms', atMost: 1_000 / IN_FLIGHT } as const
    judge(PROOF, `${title}: the ${condition} neighbour, for each of its calls`, limit, [(ROUNDS * slotMs) / made])
  }
}

async function isWaitingForALock(): Promise<boolean> {
  const { rowCount } = await pools.rest.query(
    `select from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock' and application_name = 'farebox money'`,
  )
  return rowCount !== null && rowCount > 0
}

type Rounds = Record<Condition, number[][]>

async function inRounds(measure: (condition: Condition) => Promise<number[]>): Promise<Rounds> {
  const rounds: Rounds = { idle: [], spread: [], hot: [] }
  for (let round = 0; round < ROUNDS; round += 1) {
    const turn = CONDITIONS.map((_, at) => CONDITIONS[(at + round) % CONDITIONS.length] ?? 'idle')
    for (const condition of turn) rounds[condition].push(await measure(condition))
  }
  return rounds
}

function judgeRounds(title: string, rounds: Rounds): void {
  const each = (share: number) =>
    Object.fromEntries(
      CONDITIONS.map((one) => [one, round(median(rounds[one].map((taken) => percentile(taken, share))))]),
    ) as Record<Condition, number>
  const p99 = each(0.99)
  for (const taken of Object.values(rounds).flat())
    assert.ok(taken.length > 0, 'the quiet account was asked in each round')
  const figures = {
    rounds: ROUNDS,
    samples_a_round: Math.round(median(CONDITIONS.flatMap((one) => rounds[one].map(({ length }) => length)))),
    p50_ms: each(0.5),
    p99_ms: p99,
    hot_over_idle: round(p99.hot / p99.idle),
  }
  recordProof(PROOF, title, figures)
  judge(PROOF, `${title}: p99 of begin beside a hot account over that beside a spread load`, LIMIT, [
    p99.hot / p99.spread,
  ])
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

const median = (values: readonly number[]) => percentile(values, 0.5)
const round = (value: number) => Math.round(value * 100) / 100

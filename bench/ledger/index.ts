import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { type Postgres, startPostgres } from '../../harness/postgres.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { type Benchmark, type Metric, median, metric } from '../bench.ts'
import { ownCpuMicroseconds, treeCpuMicroseconds } from '../cpu.ts'
import { BARE_SCHEMA, barePairs, pgbenchSimpleUpdates, unbatchedPairs } from './bare.ts'
import { createOurs, type Ours, seedAccounts } from './ours.ts'

const ROUNDS = 5
const IN_FLIGHT = 200
const ACCOUNTS = 10_000
const HOT = 7
const PAIRS = { ours: 10_000, bare: 20_000, unbatched: 1_000, single: 200, budgets: 4_000 }

type Round = Readonly<
  Record<
    | 'spread'
    | 'spreadBare'
    | 'hot'
    | 'hotBare'
    | 'hotUnbatched'
    | 'begin'
    | 'commit'
    | 'pgUs'
    | 'gatewayUs'
    | 'beginNone'
    | 'beginFive'
    | 'endNone'
    | 'endFive',
    number
  >
>

/**
 * Begin and end of fully metered calls (a window, an allowance, a hold, a charge, hourly usage) through the module,
 * beside the bare engine in the same run. Data on the disk, fsync on; generator, gateway and PostgreSQL share two cores.
 */
export const run: Benchmark = async (progress) => {
  const postgres = await startPostgres({
    folder: mkdtempSync(path.join(tmpdir(), 'farebox-bench-')),
    settings: { max_wal_size: '4GB' },
  })
  const bare = new pg.Client(postgres.url())
  const clients = Array.from({ length: 50 }, () => new pg.Client(postgres.url()))
  try {
    await migrate({ url: new Secret(postgres.url()), log: silentLog })
    await Promise.all([bare, ...clients].map((client) => client.connect()))
    await bare.query(BARE_SCHEMA)
    const accounts = await seedAccounts(bare, ACCOUNTS)
    const ours = createOurs(postgres.url(), accounts)
    await ours.pairs(2_000, IN_FLIGHT, anyAccount)
    await barePairs(bare, accounts, 2_000, anyAccount)

    const rounds: Round[] = []
    for (let at = 1; at <= ROUNDS; at += 1) {
      rounds.push(await measure(postgres, ours, bare, clients))
      progress(`round ${at} of ${ROUNDS}: ${summary(rounds.at(-1))}`)
    }
    const simpleUpdates = await pgbenchSimpleUpdates(postgres)
    if (simpleUpdates !== null)
      progress(`pgbench, simple-update, 50 clients: ${Math.round(simpleUpdates)} transactions/s`)
    await ours.close()
    return metricsOf(rounds, simpleUpdates)
  } finally {
    await Promise.all([bare, ...clients].map((client) => client.end()))
    await postgres.remove()
  }
}

/** The order changes nothing that is compared: each figure stands beside its baseline of the same minute. */
async function measure(postgres: Postgres, ours: Ours, bare: pg.Client, clients: readonly pg.Client[]): Promise<Round> {
  const cpu = { own: ownCpuMicroseconds(), pg: treeCpuMicroseconds(postgres.pid()) }
  const spread = await perSecond(PAIRS.ours, () => ours.pairs(PAIRS.ours, IN_FLIGHT, anyAccount))
  const gatewayUs = (ownCpuMicroseconds() - cpu.own) / PAIRS.ours
  const pgUs = (treeCpuMicroseconds(postgres.pid()) - cpu.pg) / PAIRS.ours
  const { accounts } = ours
  const spreadBare = await perSecond(PAIRS.bare, () => barePairs(bare, accounts, PAIRS.bare, anyAccount))
  const hot = await perSecond(2 * PAIRS.ours, () => ours.pairs(2 * PAIRS.ours, IN_FLIGHT, hotAccount))
  const hotBare = await perSecond(PAIRS.bare, () => barePairs(bare, accounts, PAIRS.bare, hotAccount))
  const hotUnbatched = await perSecond(PAIRS.unbatched, () =>
    unbatchedPairs(clients, accounts, PAIRS.unbatched, hotAccount),
  )
  const { begin, commit } = await ours.latencies(PAIRS.single, bare)
  return {
    spread,
    spreadBare,
    hot,
    hotBare,
    hotUnbatched,
    begin,
    commit,
    pgUs,
    gatewayUs,
    ...(await budgetsBesideNone(postgres, ours)),
  }
}

/** CPU microseconds of PostgreSQL for a BEGIN and an END, of calls with budgets of all five kinds and of calls with none, in turn. */
export async function budgetsBesideNone(postgres: Pick<Postgres, 'pid'>, ours: Ours, count = PAIRS.budgets) {
  const spent = async (counted: 'none' | 'five') => {
    const cpu = () => treeCpuMicroseconds(postgres.pid())
    const [before, between, after] = await ours.phases(count, IN_FLIGHT, anyAccount, counted, cpu)
    return { begin: (between - before) / count, end: (after - between) / count }
  }
  const [none, five] = [await spent('none'), await spent('five')]
  return { beginNone: none.begin, beginFive: five.begin, endNone: none.end, endFive: five.end }
}

function metricsOf(rounds: readonly Round[], simpleUpdates: number | null): Metric[] {
  const middle = (value: (round: Round) => number) => median(rounds.map(value))
  const ratio = (name: string, of: keyof Round, to: keyof Round, goal?: string) =>
    metric(
      name,
      middle((round) => round[of] / round[to]),
      'x',
      { baseline: middle((round) => round[to]), ...(goal !== undefined && { goal }) },
    )
  const us = (name: string, of: keyof Round) =>
    metric(
      name,
      middle((round) => round[of]),
      'us',
    )
  return [
    metric(
      'spread_pairs',
      middle(({ spread }) => spread),
      'pairs/s',
    ),
    metric(
      'hot_pairs',
      middle(({ hot }) => hot),
      'pairs/s',
    ),
    ratio('spread_ratio_bare', 'spread', 'spreadBare', '>= 0.6'),
    ratio('hot_ratio_bare', 'hot', 'hotBare', '>= 0.6'),
    ratio('hot_ratio_unbatched', 'hot', 'hotUnbatched', '>= 8'),
    ratio('hold_p50_ratio_commit', 'begin', 'commit', '<= 1.5'),
    metric(
      'pg_us_per_call',
      middle(({ pgUs }) => pgUs),
      'us',
    ),
    metric(
      'gateway_us_per_call',
      middle(({ gatewayUs }) => gatewayUs),
      'us',
    ),
    us('begin_pg_us_no_budget', 'beginNone'),
    us('end_pg_us_no_budget', 'endNone'),
    ratio('begin_ratio_five_budgets', 'beginFive', 'beginNone'),
    ratio('end_ratio_five_budgets', 'endFive', 'endNone'),
    ...(simpleUpdates === null ? [] : [metric('pgbench_simple_update', simpleUpdates, 'tx/s')]),
  ]
}

function summary(round: Round | undefined): string {
  return Object.entries(round ?? {})
    .map(([name, value]) => `${name} ${value < 100 ? value.toFixed(2) : Math.round(value)}`)
    .join(', ')
}

async function perSecond(count: number, work: () => Promise<void>): Promise<number> {
  const startedMs = performance.now()
  await work()
  return (count * 1_000) / (performance.now() - startedMs)
}

function anyAccount(): number {
  return Math.floor(Math.random() * ACCOUNTS)
}

function hotAccount(): number {
  return HOT
}

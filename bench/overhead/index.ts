import pg from 'pg'
import { type Benchmark, type Metric, median, metric } from '../bench.ts'
import { PEER_NAMES, type PeerName } from '../load/peers.ts'
import { type Stage, startStage } from '../load/stage.ts'
import { type Statements, statementsOf } from '../load/statements.ts'
import { perRequest, SETTLE_MS, sound, WARM_UP, type Window, warmUp } from '../load/window.ts'
import { estimated, ratiosOf } from '../paired.ts'

const CALLERS = 1_000
const LEVELS = [50, 200] as const
const LOW_RATE = 500
/** Loads under which what a call runs is cold: one after the other from one caller, and few from many. */
const QUIET = [
  { name: 'alone', load: { connections: 1 } },
  { name: 'r100', load: { connections: 50, rate: 100 } },
]
const COMMITS = 200
const FULL = { rounds: 9, measureMs: 4_000 }
/** Without peers, which would have to be fetched. */
const REDUCED = { rounds: 1, measureMs: 500 }

/** CPU-µs for a request of each server, and what came with it. */
type Level = Readonly<Record<'ours' | 'bare' | 'bareFlatOut' | 'postgres' | 'perSecond' | 'p50Ms', number>>
/** The same of a quiet load, and the medians of both in milliseconds. */
type Quiet = Readonly<Record<'ours' | 'bare' | 'postgres' | 'perSecond' | 'p50Ms' | 'bareP50Ms', number>>
type Round = {
  readonly levels: ReadonlyMap<number, Level>
  /** Of those that were not left out. */
  readonly peers: ReadonlyMap<PeerName, number>
  readonly low: Readonly<Record<'ours' | 'bare' | 'commit', number>>
  readonly quiet: ReadonlyMap<string, Quiet>
}

/**
 * What a fully metered call costs: a chat completion of a kilobyte with window, slot, budget, durable hold and settlement,
 * through a real gateway on one core, beside a proxy that does nothing else and gateways that meter nothing.
 */
export const run: Benchmark = async (progress, { reduced, rounds: wanted }) => {
  const { rounds, measureMs } = { ...(reduced ? REDUCED : FULL), ...(wanted && { rounds: wanted }) }
  const peers = reduced ? [] : PEER_NAMES
  const stage = await startStage({ callers: CALLERS, peers })
  const client = new pg.Client(stage.postgres.url())
  try {
    await client.connect()
    await client.query('create table bare_commits (id bigserial primary key)')
    const sends = (['ours', 'bare', ...peers] as const).map((target) => (window: Window) => stage.send(target, window))
    await warmUp(sends, reduced ? WARM_UP.reduced : WARM_UP.full)
    const statements = await statementsOf(stage.pool)
    const measured: Round[] = []
    for (let at = 1; at <= rounds; at += 1) {
      measured.push(await measure(stage, client, measureMs, peers))
      progress(`round ${at} of ${rounds}: ${summary(measured.at(-1))}`)
    }
    return metricsOf(measured, await statements.taken())
  } finally {
    await client.end()
    await stage.stop()
  }
}

/** Ours as fast as so many connections go; then the bare proxy at the same rate over as many, and as fast as it can. */
async function measure(stage: Stage, client: pg.Client, measureMs: number, names: readonly PeerName[]): Promise<Round> {
  const window = { warmUpMs: SETTLE_MS, measureMs }
  const levels = new Map<number, Level>()
  for (const connections of LEVELS) {
    const ours = sound(await stage.send('ours', { connections, ...window }))
    const bare = sound(await stage.send('bare', { connections, rate: ours.perSecond, ...window }))
    const flatOut = sound(await stage.send('bare', { connections, ...window }))
    levels.set(connections, {
      ours: perRequest(ours, 'server'),
      bare: perRequest(bare, 'server'),
      bareFlatOut: perRequest(flatOut, 'server'),
      postgres: perRequest(ours, 'postgres'),
      perSecond: ours.perSecond,
      p50Ms: ours.p50Ms,
    })
  }
  const peers = new Map<PeerName, number>()
  for (const name of names)
    peers.set(name, perRequest(sound(await stage.send(name, { connections: 50, ...window })), 'server'))
  const low = { connections: 50, rate: LOW_RATE, ...window }
  const bare = sound(await stage.send('bare', low))
  const ours = sound(await stage.send('ours', low))
  const commit = await commitMs(client)
  const quiet = new Map<string, Quiet>()
  for (const { name, load } of QUIET) quiet.set(name, await measureQuiet(stage, { ...load, ...window }))
  return { levels, peers, low: { ours: ours.p50Ms, bare: bare.p50Ms, commit }, quiet }
}

/** Ours, and then the bare proxy at the rate that ours had. */
async function measureQuiet(stage: Stage, window: Window): Promise<Quiet> {
  const ours = sound(await stage.send('ours', window))
  const bare = sound(await stage.send('bare', { ...window, rate: ours.perSecond }))
  return {
    ours: perRequest(ours, 'server'),
    bare: perRequest(bare, 'server'),
    postgres: perRequest(ours, 'postgres'),
    perSecond: ours.perSecond,
    p50Ms: ours.p50Ms,
    bareP50Ms: bare.p50Ms,
  }
}

/** The median of bare commits: one row, one client, one after the other. */
async function commitMs(client: pg.Client): Promise<number> {
  const times: number[] = []
  for (let at = 0; at < COMMITS; at += 1) {
    const startedMs = performance.now()
    await client.query({ name: 'commit', text: 'insert into bare_commits default values' })
    times.push(performance.now() - startedMs)
  }
  return median(times)
}

function metricsOf(rounds: readonly Round[], statements: Statements): Metric[] {
  const of = (connections: number, name: keyof Level) =>
    rounds.map(({ levels }) => levels.get(connections)?.[name] ?? Number.NaN)
  const added = rounds.map(({ low }) => (low.ours - low.bare) * 1_000)
  const allowed = rounds.map(({ low }) => low.commit * 2_000 + 1_000)
  const c50 = { baseline: median(of(50, 'bare')), goal: '<= 1.9' }
  const c200 = { baseline: median(of(200, 'bare')), goal: '<= 1.7' }
  return [
    ...estimated('cpu_ratio_bare', ratiosOf(of(50, 'ours'), of(50, 'bare')), 'x', c50),
    ...estimated('cpu_ratio_bare_c200', ratiosOf(of(200, 'ours'), of(200, 'bare')), 'x', c200),
    ...estimated('cpu_ratio_bare_flat_out', ratiosOf(of(50, 'ours'), of(50, 'bareFlatOut')), 'x'),
    ...estimated('cpu_ratio_bare_flat_out_c200', ratiosOf(of(200, 'ours'), of(200, 'bareFlatOut')), 'x'),
    ...PEER_NAMES.flatMap((name) => peerMetrics(name, rounds, of(50, 'ours'))),
    ...estimated('added_p50_us', added, 'us', { baseline: median(allowed), goal: `<= ${Math.round(median(allowed))}` }),
    ...QUIET.flatMap(({ name }) => quietMetrics(name, rounds)),
    ...LEVELS.flatMap((connections) => levelMetrics(connections, (name) => median(of(connections, name)))),
    ...postgresMetrics(median(of(50, 'postgres')), statements),
  ]
}

/** What a core can do is one divided by what a request takes of it. */
function peerMetrics(name: PeerName, rounds: readonly Round[], ours: readonly number[]): Metric[] {
  const costs = rounds.flatMap(({ peers }) => peers.get(name) ?? [])
  if (costs.length === 0) return []
  const beside = { baseline: median(costs), ...(name === 'portkey' && { goal: '>= 4' }) }
  return estimated(`capacity_ratio_${name}`, ratiosOf(costs, ours), 'x', beside)
}

function levelMetrics(connections: number, middle: (name: keyof Level) => number): Metric[] {
  return [
    metric(`gateway_us_c${connections}`, middle('ours'), 'us'),
    metric(`bare_us_c${connections}`, middle('bare'), 'us'),
    metric(`bare_flat_out_us_c${connections}`, middle('bareFlatOut'), 'us'),
    metric(`postgres_us_c${connections}`, middle('postgres'), 'us'),
    metric(`requests_c${connections}`, middle('perSecond'), 'req/s'),
    metric(`p50_ms_c${connections}`, middle('p50Ms'), 'ms'),
  ]
}

function quietMetrics(name: string, rounds: readonly Round[]): Metric[] {
  const measured = rounds.flatMap(({ quiet }) => quiet.get(name) ?? [])
  const of = (what: keyof Quiet) => measured.map((one) => one[what])
  const added = measured.map(({ p50Ms, bareP50Ms }) => (p50Ms - bareP50Ms) * 1_000)
  return [
    ...estimated(`added_p50_us_${name}`, added, 'us', { baseline: median(of('bareP50Ms')) * 1_000 }),
    metric(`gateway_us_${name}`, median(of('ours')), 'us', { baseline: median(of('bare')) }),
    metric(`postgres_us_${name}`, median(of('postgres')), 'us'),
    metric(`requests_${name}`, median(of('perSecond')), 'req/s'),
    metric(`p50_ms_${name}`, median(of('p50Ms')), 'ms'),
  ]
}

/** PostgreSQL's CPU time, split as the time was that its statements took. */
function postgresMetrics(perCallUs: number, { begin, end, all }: Statements): Metric[] {
  if (all === 0) return []
  return [
    metric('postgres_begin_us', (perCallUs * begin) / all, 'us'),
    metric('postgres_end_us', (perCallUs * end) / all, 'us'),
    metric('postgres_other_us', (perCallUs * (all - begin - end)) / all, 'us'),
  ]
}

function summary(round: Round | undefined): string {
  if (round === undefined) return ''
  const levels = [...round.levels].map(
    ([connections, { ours, bare, bareFlatOut, postgres, perSecond }]) =>
      `c${connections} ours ${ours.toFixed(0)}, bare ${bare.toFixed(0)} (flat out ${bareFlatOut.toFixed(0)}), PostgreSQL ${postgres.toFixed(0)} µs at ${perSecond.toFixed(0)}/s`,
  )
  const { ours, bare, commit } = round.low
  const low = `at ${LOW_RATE}/s p50 ${ours.toFixed(2)}, bare ${bare.toFixed(2)}, commit ${commit.toFixed(2)} ms`
  const quiet = [...round.quiet].map(
    ([name, one]) =>
      `${name} ours ${one.ours.toFixed(0)}, bare ${one.bare.toFixed(0)}, PostgreSQL ${one.postgres.toFixed(0)} µs at ${one.perSecond.toFixed(0)}/s, p50 ${one.p50Ms.toFixed(2)}, bare ${one.bareP50Ms.toFixed(2)} ms`,
  )
  const peers = Array.from(round.peers, ([name, cost]) => `${name} ${cost.toFixed(0)} µs`)
  return [...levels, ...peers, low, ...quiet].join('; ')
}

import { copyFileSync } from 'node:fs'
import type pg from 'pg'
import { type Benchmark, type Metric, median, metric } from '../bench.ts'
import type { LoadReport } from '../load/load.ts'
import { type Stage, startStage } from '../load/stage.ts'
import { storeCharges } from './charges.ts'

const FULL = {
  rounds: 3,
  measureMs: 3_000,
  warmUpMs: 15_000,
  processes: [1, 2, 3],
  inFlight: [1, 10, 100, 1_000],
  accounts: [1_000, 10_000, 100_000, 1_000_000],
  charges: [0, 100_000, 1_000_000, 10_000_000],
}
const REDUCED = {
  rounds: 1,
  measureMs: 700,
  warmUpMs: 700,
  processes: [1, 2],
  inFlight: [1, 100],
  accounts: [1_000, 5_000],
  charges: [0, 50_000],
}
type Sizes = typeof FULL

const CONNECTIONS = 100
const MOST_PROCESSES = 3

type Point = { readonly gateway: number; readonly postgres: number }

/**
 * How the cost of a call grows: with processes, calls in flight, accounts that are stored and of which always the same call, accounts that
 * all call, and stored charges. Each by itself, in this order.
 */
export const run: Benchmark = async (progress, { reduced, rounds }) => {
  const sizes = { ...(reduced ? REDUCED : FULL), ...(rounds && { rounds }) }
  const stage = await startStage({ callers: sizes.accounts[0] ?? 1, processes: MOST_PROCESSES })
  try {
    for (let gateway = 0; gateway < MOST_PROCESSES; gateway += 1)
      await stage.send('ours', { connections: CONNECTIONS, gateway, warmUpMs: 0, measureMs: sizes.warmUpMs })
    const metrics: Metric[] = []
    const note = (what: string, size: number, { gateway, postgres }: Point) => {
      metrics.push(
        metric(`gateway_us_${what}_${size}`, gateway, 'us'),
        metric(`postgres_us_${what}_${size}`, postgres, 'us'),
      )
      progress(`${what} ${size}: gateway ${gateway.toFixed(0)}, PostgreSQL ${postgres.toFixed(0)} µs a call`)
    }
    for (const count of sizes.processes) note('processes', count, await measure(stage, sizes, count, CONNECTIONS))
    for (const count of sizes.inFlight) note('in_flight', count, await measure(stage, sizes, 1, count))
    const regulars = keepRegulars(stage)
    let accounts = sizes.accounts[0] ?? 1
    for (const count of sizes.accounts) {
      await stage.addCallers(count - accounts)
      accounts = count
      await warmUp(stage, sizes, regulars)
      note('regulars', count, await measure(stage, sizes, 1, CONNECTIONS, regulars))
      await warmUp(stage, sizes)
      note('accounts', count, await measure(stage, sizes, 1, CONNECTIONS))
    }
    let stored = 0
    for (const count of sizes.charges) {
      await addCharges(stage.bulk, count - stored, progress)
      stored = count
      await warmUp(stage, sizes, regulars)
      note('charges', count, await measure(stage, sizes, 1, CONNECTIONS, regulars))
    }
    return [...metrics, ...bends(metrics, sizes)]
  } finally {
    await stage.stop()
  }
}

/** So many connections, spread over so many processes, each with a generator of its own. */
async function measure(
  stage: Stage,
  { rounds, measureMs }: Sizes,
  processes: number,
  connections: number,
  secretsFile = stage.secretsFile,
): Promise<Point> {
  const points: Point[] = []
  for (let at = 0; at < rounds; at += 1) {
    const share = Math.ceil(connections / processes)
    const reports = await Promise.all(
      Array.from({ length: processes }, (_, gateway) =>
        stage.send('ours', { connections: share, gateway, secretsFile, warmUpMs: 500, measureMs }),
      ),
    )
    points.push(pointOf(reports))
  }
  return {
    gateway: median(points.map(({ gateway }) => gateway)),
    postgres: median(points.map(({ postgres }) => postgres)),
  }
}

/** Every report has the CPU time of all processes; what one of them saw is as long as what the others did. */
function pointOf(reports: readonly LoadReport[]): Point {
  const answered = reports.reduce((sum, report) => sum + report.answered, 0)
  const mean = (name: string) =>
    reports.reduce((sum, { cpuUs }) => sum + (cpuUs[name] ?? Number.NaN), 0) / reports.length / answered
  return { gateway: mean('server'), postgres: mean('postgres') }
}

async function addCharges(pool: pg.Pool, count: number, progress: (line: string) => void): Promise<void> {
  if (count === 0) return
  const startedMs = performance.now()
  await storeCharges(pool, count)
  progress(`stored ${count} charges in ${((performance.now() - startedMs) / 1_000).toFixed(0)} s`)
}

/**
 * What was loaded is vacuumed and written out now, and not beside the calls, whose cost it is not. So each size is measured right after a checkpoint, when calls are dearest: the first change
 * of each page is logged with all of the page. It is no cost of a call either that a process looks up whom it has not seen, or that its code is cold after minutes without calls.
 */
async function warmUp(stage: Stage, { warmUpMs }: Sizes, secretsFile = stage.secretsFile): Promise<void> {
  await stage.bulk.query('vacuum (analyze)')
  await stage.bulk.query('checkpoint')
  await stage.send('ours', { connections: CONNECTIONS, secretsFile, warmUpMs: 0, measureMs: warmUpMs })
}

/** The callers that there are at first: they have all called by the end of a warm-up, so that no first call is among those that are measured. */
function keepRegulars({ secretsFile }: Stage): string {
  const regulars = `${secretsFile}-regulars`
  copyFileSync(secretsFile, regulars)
  return regulars
}

/** How much dearer a call is at the largest size than at the smallest. */
function bends(metrics: readonly Metric[], { processes, inFlight, accounts, charges }: Sizes): Metric[] {
  const figure = (name: string) => metrics.find((one) => one.name === name)?.value ?? Number.NaN
  const sizes = { processes, in_flight: inFlight, regulars: accounts, accounts, charges }
  return Object.entries(sizes).flatMap(([what, all]) =>
    (['gateway', 'postgres'] as const).map((whose) =>
      metric(
        `${whose}_growth_${what}`,
        figure(`${whose}_us_${what}_${all.at(-1)}`) / figure(`${whose}_us_${what}_${all[0]}`),
        'x',
      ),
    ),
  )
}

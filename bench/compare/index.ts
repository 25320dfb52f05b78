import { buildCommit, buildThis, THIS_VERSION, type Version } from '../../harness/versions.ts'
import type { Benchmark } from '../bench.ts'
import type { LoadReport } from '../load/load.ts'
import { perRequest, SETTLE_MS, WARM_UP, warmUp } from '../load/window.ts'
import { APART, LOW_RATE, metricsOf, type Reports, type Round } from './figures.ts'
import { type Side, type Sides, startSides } from './sides.ts'
import { createUndisturbed, type Undisturbed } from './undisturbed.ts'

const CALLERS = 1_000
type Step = { readonly name: string; readonly connections: number; readonly rate?: number }
/** As fast as so many connections go. */
const FLAT_OUT: readonly Step[] = [
  { name: 'c50', connections: 50 },
  { name: 'c200', connections: 200 },
  { name: 'single', connections: 1 },
]
const LADDER = [100, LOW_RATE, 1_000, 1_500]
const FULL = { rounds: 9, measureMs: 4_000, settleMs: SETTLE_MS, rates: LADDER, bounds: { perWindow: 3, perRun: 60 } }
/** In seconds nothing is measured anyway, so nothing is repeated. */
const REDUCED = { rounds: 1, measureMs: 300, settleMs: 100, rates: [LOW_RATE], bounds: { perWindow: 0, perRun: 0 } }

/**
 * What a metered call costs in this version, beside what it cost in another: both at once on the machine, each with a PostgreSQL of
 * its own, one window after the other in turn, beside the bare proxy. Without another version this one is compared with itself,
 * which shows what a difference has to exceed.
 */
export const run: Benchmark = async (progress, { reduced, rounds: wanted, against }) => {
  const { rounds, rates, bounds, ...window } = { ...(reduced ? REDUCED : FULL), ...(wanted && { rounds: wanted }) }
  const versions = versionsFor(against?.commit, reduced, progress)
  try {
    const sides = await startSides(versions, CALLERS)
    try {
      const undisturbed = createUndisturbed(bounds)
      await warmUp([sides.to('new'), sides.to('old'), sides.to('bare')], reduced ? WARM_UP.reduced : WARM_UP.full)
      const measured: Round[] = []
      for (let at = 1; at <= rounds; at += 1) {
        const order: readonly Side[] = at % 2 === 0 ? ['new', 'old'] : ['old', 'new']
        measured.push(await measure({ sides, undisturbed, order, ...window }, rates))
        progress(`round ${at} of ${rounds}: ${summary(measured.at(-1))}`)
      }
      return metricsOf(measured, undisturbed.counts())
    } finally {
      await sides.stop()
    }
  } finally {
    versions.remove()
  }
}

type Versions = { readonly new: Version; readonly old: Version; readonly remove: () => void }

function versionsFor(commit: string | undefined, reduced: boolean, progress: (line: string) => void): Versions {
  // To see that it works, what runs need not be what is delivered.
  if (commit === undefined && reduced) return { new: THIS_VERSION, old: THIS_VERSION, remove: () => {} }
  progress('building this version')
  const ours = buildThis()
  if (commit === undefined) return { new: ours, old: ours, remove: () => {} }
  progress(`building ${commit}`)
  const { remove, ...old } = buildCommit(commit)
  return { new: ours, old, remove }
}

type Parts = {
  readonly sides: Sides
  readonly undisturbed: Undisturbed
  /** Who of the two is first. */
  readonly order: readonly Side[]
  readonly settleMs: number
  readonly measureMs: number
}

async function measure(parts: Parts, rates: readonly number[]): Promise<Round> {
  const { sides } = parts
  const round = new Map<string, Reports>()
  const rungs = rates.map((rate) => ({ name: `r${rate}`, connections: 50, rate }))
  for (const step of [...FLAT_OUT, ...rungs]) round.set(step.name, await measureStep(parts, step))
  sides.arrange('apart')
  round.set(APART, await measureStep(parts, { connections: 50, rate: LOW_RATE }))
  sides.arrange('shared')
  return round
}

/** Both versions, and then the bare proxy at the rate that this one had. */
async function measureStep(
  { sides, undisturbed, order, settleMs, measureMs }: Parts,
  { connections, rate }: Omit<Step, 'name'>,
): Promise<Reports> {
  const window = { connections, ...(rate !== undefined && { rate }), warmUpMs: settleMs, measureMs }
  const reports = new Map<Side, LoadReport>()
  for (const side of order) reports.set(side, await undisturbed.measure(sides.to(side), window))
  const [ours, old] = [reports.get('new'), reports.get('old')]
  if (ours === undefined || old === undefined) throw new Error('a window is missing')
  const bare = await undisturbed.measure(sides.to('bare'), { ...window, rate: rate ?? ours.perSecond })
  return { new: ours, old, bare }
}

function summary(round: Round | undefined): string {
  const us = (report: LoadReport, name: string) => perRequest(report, name).toFixed(0)
  const told = [...(round ?? [])].map(([name, { new: ours, old, bare }]) => {
    const gateway = `gateway ${us(ours, 'server')} (${us(old, 'server')}, bare ${us(bare, 'server')})`
    const postgres = `PostgreSQL ${us(ours, 'postgres')} (${us(old, 'postgres')}) µs`
    const rest = `${ours.perSecond.toFixed(0)} (${old.perSecond.toFixed(0)})/s, p50 ${ours.p50Ms.toFixed(2)} (${old.p50Ms.toFixed(2)}) ms`
    return `${name} ${gateway}, ${postgres}, ${rest}`
  })
  return told.join('; ')
}

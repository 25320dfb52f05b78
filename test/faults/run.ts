import { setTimeout as delay } from 'node:timers/promises'
import { createCaller, Marks } from './caller.ts'
import { type Cluster, startCluster } from './cluster.ts'
import { type Evidence, gatherEvidence } from './evidence.ts'
import { History } from './history.ts'
import { carryOut, type Trouble } from './injector.ts'
import { judge, type Verdicts } from './invariants.ts'
import { findLeaks } from './leaks.ts'
import { linkAccount, startMoods } from './linked-accounts.ts'
import { startOperators } from './operators.ts'
import { type Key, makePeople, setRate } from './people.ts'
import { type Kind, type PlannedFault, planOf } from './plan.ts'
import { readReports } from './reports.ts'
import { resolveAll } from './resolve.ts'
import { startSampling } from './sampler.ts'
import { callsOfDeviants, callsOfLinks, callsOfModels, callsOfTasks, tasksOutliving } from './sometimes.ts'
import { callsOfBudgets } from './whose-spend.ts'
import { startWorkload } from './workload.ts'

export type RunOptions = {
  readonly seed: number
  readonly seconds: number
  /** In place of the seed's own plan, to look at some faults alone. */
  readonly kinds?: readonly Kind[]
  /** Keeps the history even where all went well. */
  readonly keep?: boolean
  readonly log?: (line: string) => void
}

export type RunResult = {
  readonly ok: boolean
  readonly seed: number
  readonly seconds: number
  /** How often each kind that was planned hit something, and how often calls of models and tasks went in each way that they can. */
  readonly faults: Readonly<Record<string, number>>
  readonly invariants: Verdicts
  readonly figures: Readonly<Record<string, unknown>>
  /** Where the history is kept; undefined where all went well. */
  readonly history: string | undefined
}

/** The whole cluster under a workload and a plan of faults, then healed, resolved and judged. */
export async function runFaults({
  seed,
  seconds,
  kinds,
  keep = false,
  log = () => {},
}: RunOptions): Promise<RunResult> {
  const startedAtMs = performance.now()
  const since = () => `${((performance.now() - startedAtMs) / 1_000).toFixed(1)} s`
  const history = new History(String(seed))
  const cluster = await startCluster({ folder: history.folder, seed })
  let result: RunResult
  try {
    log(`${since()}: the cluster is up`)
    const hasDisk = cluster.postgres.disk !== undefined
    const plan = planOf(seed, seconds, { hasDisk, ...(kinds && { kinds }) })
    history.note('plan', { plan })
    const evidence = await putThrough(cluster, plan, {
      seed,
      seconds,
      history,
      log: (line) => log(`${since()}: ${line}`),
    })
    const invariants = await judge(evidence)
    const isWhole = seconds >= WHOLE_AFTER_SECONDS && kinds === undefined
    const faults = {
      ...hitsByKind(plan, evidence.troubles),
      ...(isWhole && {
        ...callsOfModels(evidence),
        ...callsOfTasks(evidence),
        ...callsOfDeviants(evidence),
        ...callsOfLinks(evidence),
        ...callsOfBudgets(evidence),
      }),
    }
    log(`${since()}: judged`)
    const ok =
      Object.values(invariants).every((verdict) => verdict === 'ok') && Object.values(faults).every((hits) => hits > 0)
    history.note('result', { ok, faults, invariants })
    history.close()
    const figures = figuresOf(evidence)
    result = { ok, seed, seconds, faults, invariants, figures, history: ok ? undefined : history.folder }
  } finally {
    await cluster.stop()
  }
  if (result.ok && !keep) history.remove()
  return result
}

/** In less, or with some faults alone, there may be no fault that meets a stream. */
const WHOLE_AFTER_SECONDS = 60

/** By then every process has heard of a change. */
const CHANGE_KNOWN_MS = 1_000

type Through = {
  readonly seed: number
  readonly seconds: number
  readonly history: History
  readonly log: (line: string) => void
}

/** One gateway after another. One that is dead refuses a connection, and what became of the call is then as unknown as any. */
function toolUrlOf({ gateways }: Cluster): () => string | undefined {
  let asked = 0
  return () => {
    asked += 1
    return gateways[asked % gateways.length]?.process().agentUrl
  }
}

async function putThrough(cluster: Cluster, plan: readonly PlannedFault[], through: Through): Promise<Evidence> {
  const { seed, seconds, history, log } = through
  const { pool } = cluster
  const marks = new Marks()
  const people = await makePeople(pool)
  const samples = startSampling(pool, people)
  const caller = createCaller(cluster.url, history, toolUrlOf(cluster))
  const link = (key: Key) => linkAccount(cluster.url, key)
  const workload = startWorkload({ seed, people, caller, marks, link })
  const moods = startMoods(seed, cluster.upstream)
  const operators = startOperators({ seed, people, pool: cluster.operator.rest, upstream: cluster.upstream, history })
  const [troubles] = await Promise.all([carryOut(plan, cluster, history), delay(seconds * 1_000)])
  log('the last fault is over')

  await heal(cluster)
  await Promise.all([workload.stop(), operators.stop(), moods.stop()])
  await operators.finish()
  log(`healed, and nobody asks any more after ${history.operations.length} operations`)
  const resolutions = await resolveAll(cluster, workload.comeBack)
  await caller.close()
  log(`${resolutions.byId.size} unsettled calls were resolved in ${resolutions.tookMs} ms`)
  await samples.stop()
  for (const { workspaceId } of people) await setRate(pool, workspaceId)
  await delay(CHANGE_KNOWN_MS)
  const reports = await readReports(cluster.url, people, history)
  const leaks = await findLeaks(cluster)
  return gatherEvidence({ history, marks, people, samples, troubles, resolutions, reports, leaks, cluster })
}

/** All faults have undone what they did; whatever they left is put right. */
async function heal(cluster: Cluster): Promise<void> {
  for (const way of cluster.ways.all) way.heal()
  cluster.postgres.disk?.empty()
  for (const member of [...cluster.gateways, cluster.worker])
    if (member.process().hasExited()) await member.turn(() => member.start())
}

function hitsByKind(plan: readonly PlannedFault[], troubles: readonly Trouble[]): Readonly<Record<string, number>> {
  const hits = new Map<Kind, number>(plan.map(({ kind }) => [kind, 0]))
  for (const { kind, hits: more } of troubles) hits.set(kind, (hits.get(kind) ?? 0) + (more > 0 ? 1 : 0))
  return Object.fromEntries([...hits].sort())
}

function figuresOf(evidence: Evidence) {
  const { operations, charges, journal, samples, resolutions, entries } = evidence
  const count = (outcome: string) => operations.filter((one) => one.outcome === outcome).length
  const codes = Object.groupBy(operations, ({ outcome, told }) =>
    outcome === 'fail' ? (told.code ?? String(told.status)) : outcome,
  )
  return {
    operations: operations.length,
    ok: count('ok'),
    fail: count('fail'),
    unknown: count('unknown'),
    answers: Object.fromEntries(Object.entries(codes).map(([code, ones]) => [code, ones?.length ?? 0])),
    charges: [...charges.values()].filter(({ amount }) => amount > 0n).length,
    voids: [...charges.values()].filter(({ outcome }) => outcome === 'voided').length,
    forgiven: entries.filter(({ kind }) => kind === 'forgiveness').length,
    upstream_calls: journal.length,
    ...callsOfModels(evidence),
    ...callsOfDeviants(evidence),
    ...callsOfLinks(evidence),
    tasks: evidence.tasks.size,
    ...callsOfTasks(evidence),
    tasks_settled_after_the_death_of_who_created_them: tasksOutliving(evidence),
    tasks_never_ended: resolutions.tasks.neverEnded.size,
    tasks_attached: operations.filter(({ what, outcome }) => what === 'attachment' && outcome === 'ok').length,
    samples: samples.looks(),
    unsettled: samples.unsettled.size,
    resolved: resolutions.byId.size,
    resolved_in_ms: resolutions.tookMs,
  }
}

import type { Clock } from '../../kernel/clock.ts'
import { OUTPUT_LIMITS } from '../../protocols/output-limits.ts'
import type { RouteProfile } from '../../protocols/route-profile.ts'
import type { Binding } from '../bindings.ts'
import { type Transport, UpstreamFailure } from '../transport.ts'
import { DIALECTS, type ProbedProtocol } from './dialects.ts'
import {
  abortExperiment,
  answerExperiment,
  caseExperiment,
  type Experiment,
  limitExperiment,
  reasoningExperiment,
} from './experiments.ts'
import { type Observation, observe } from './observe.ts'
import { mostOf, type ProbeRates, type Purse, type Spending, spendingOf } from './spending.ts'
import {
  type CaseVerdict,
  caseVerdict,
  type LimitVerdict,
  limitVerdict,
  outputLimitOf,
  type ReasoningVerdict,
  reasoningVerdict,
  type SizeVerdict,
  sizeVerdict,
} from './verdicts.ts'

/** Measures how the upstream of a route differs from what its protocol says, by asking it a few short questions. */

export type ProbedRoute = {
  readonly protocol: ProbedProtocol
  readonly upstreamModel: string
  /** The most that the model can answer. */
  readonly outputMost: number
  readonly rates: ProbeRates
}

/** An experiment that was made, and what came of it. */
export type Trial = { readonly experiment: Experiment; readonly seen: Observation; readonly spending: Spending }

export type Findings = {
  readonly trials: readonly Trial[]
  readonly limits: readonly { readonly member: string; readonly verdict: LimitVerdict | undefined }[]
  /** Undefined where it was not measured. */
  readonly casing: CaseVerdict | undefined
  readonly reasoning: ReasoningVerdict | undefined
  /** What had been reported of an answer that we left at its first words. */
  readonly onAbort: AbortVerdict | undefined
  readonly size: SizeVerdict | undefined
  /** What is known of the profile. Whether leaving stops the vendor's meter can't be seen from outside. */
  readonly profile: Partial<Pick<RouteProfile, 'outputLimit' | 'reasoning'>>
  /** What was not asked because the budget does not hold it. */
  readonly unaffordable: readonly { readonly name: string; readonly most: bigint }[]
  /** Why the probe ended before its end; undefined where it did not. */
  readonly stopped: string | undefined
}

export type AbortVerdict = 'no stream' | 'nothing' | 'input' | 'input and output'

type Parts = {
  readonly transport: Pick<Transport, 'open'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly binding: Binding
  readonly purse: Purse
}

export async function probeRoute(parts: Parts, route: ProbedRoute): Promise<Findings> {
  const trials = createTrials(parts, route)
  const limits: { member: string; seen: Observation | undefined }[] = []
  for (const member of OUTPUT_LIMITS[route.protocol])
    limits.push({ member, seen: await trials.make(limitExperiment(route, member)) })
  const member = limits.find(
    ({ seen }) => seen !== undefined && limitVerdict(route.protocol, seen) === 'obeyed',
  )?.member
  const answer = await trials.make(answerExperiment(route, member))
  trials.requireAnAnswer()
  const reasoned = await trials.make(reasoningExperiment(route, member))
  const folded = await trials.make(caseExperiment(route, member))
  const left = await trials.make(abortExperiment(route, member))

  const judged = limits.map(({ member, seen }) => ({
    member,
    verdict: seen && limitVerdict(route.protocol, seen, answer),
  }))
  const limited = limits.flatMap(({ seen }) =>
    seen !== undefined && limitVerdict(route.protocol, seen, answer) === 'obeyed' ? seen : [],
  )
  const whole = [...limits.map(({ seen }) => seen), answer, reasoned].filter((seen) => seen !== undefined)
  const outputLimit = outputLimitOf(judged)
  const reasoning = reasoningVerdict(route.protocol, whole, limited)
  const profile = {
    ...(outputLimit !== undefined && { outputLimit }),
    ...(reasoning && { reasoning: reasoning.counted }),
  }
  return {
    trials: trials.made,
    limits: judged,
    casing: folded && caseVerdict(folded, DIALECTS[route.protocol].foldsIntoStream),
    reasoning,
    onAbort: left && abortVerdict(left),
    size: answer?.isReadable === true ? sizeVerdict(answer) : undefined,
    profile: trials.stopped() === undefined ? profile : {},
    unaffordable: trials.unaffordable,
    stopped: trials.stopped(),
  }
}

/** A vendor may refuse one of our questions. What it says of our account, or that it can't answer now, ends the probe. */
const FINAL: ReadonlySet<number> = new Set([401, 402, 403, 407, 408, 409, 425, 429])

function createTrials({ purse, ...parts }: Parts, { protocol, rates, outputMost }: ProbedRoute) {
  const made: Trial[] = []
  const unaffordable: { name: string; most: bigint }[] = []
  let stopped: string | undefined

  /** A limit bounds nothing where reasoning goes beyond it. */
  function worstOf(experiment: Experiment) {
    const whole = made.map(({ seen }) => seen)
    const limited = made.filter(({ experiment: { limit } }) => limit === undefined).map(({ seen }) => seen)
    const isBounded = reasoningVerdict(protocol, whole, limited)?.counted !== 'apart'
    return mostOf(isBounded ? experiment : { ...experiment, limit: undefined }, rates, outputMost)
  }

  async function make(experiment: Experiment | undefined): Promise<Observation | undefined> {
    if (experiment === undefined || stopped !== undefined) return undefined
    const worst = worstOf(experiment)
    if (!purse.holds(worst)) {
      unaffordable.push({ name: experiment.name, most: worst })
      return undefined
    }
    try {
      const seen = await observe({ ...parts, protocol }, experiment)
      const spending = spendingOf(experiment, seen, rates, worst)
      purse.take(spending)
      if (FINAL.has(seen.status) || seen.status >= 500) stopped = `it answered with status ${seen.status}`
      else made.push({ experiment, seen, spending })
      return stopped === undefined ? seen : undefined
    } catch (error) {
      if (!(error instanceof UpstreamFailure || error instanceof RangeError)) throw error
      // Nobody knows what became of it.
      purse.take({ known: worst, most: worst })
      stopped = error.message
      return undefined
    }
  }

  /** A name that is refused says nothing of limits where everything is. */
  function requireAnAnswer(): void {
    if (made.length === 0 || made.some(({ seen }) => seen.isReadable)) return
    stopped ??= `none of its answers could be read (status ${made.at(-1)?.seen.status})`
  }

  return { make, made, unaffordable, requireAnAnswer, stopped: () => stopped }
}

function abortVerdict({ isStream, reported }: Observation): AbortVerdict {
  if (!isStream) return 'no stream'
  if (reported.output !== undefined) return 'input and output'
  return reported.input === undefined ? 'nothing' : 'input'
}

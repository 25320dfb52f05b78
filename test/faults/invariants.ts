import type { Evidence } from './evidence.ts'
import { holdsAreEnough, lossesAreBounded } from './invariants-of-deviants.ts'
import { usedIsPaid } from './invariants-of-models.ts'
import {
  attemptsKept,
  chargedOnce,
  moneyConserved,
  noMistakes,
  nothingLost,
  nothingOverspent,
  toldAgrees,
  upstreamAskedOnce,
} from './invariants-of-money.ts'
import {
  everythingResolved,
  noDeaths,
  nothingLeaks,
  pricesKnown,
  revokedStartNothing,
  unsettledForReason,
  windowsKept,
} from './invariants-of-processes.ts'
import { createdOnce, endedAsTold, madeIsPaid, neverGoesBack, placesKept } from './invariants-of-tasks.ts'
import { replayProblems } from './replay.ts'
import { budgetsKept } from './whose-spend.ts'

/** By name: `ok`, or `broken: …` with the ids of what broke it. */
export type Verdicts = Readonly<Record<string, string>>

type Invariant = (evidence: Evidence) => readonly string[] | Promise<readonly string[]>

/** What must hold after any run, whatever was done to the cluster. Each says what breaks it. */
export const INVARIANTS: Readonly<Record<string, Invariant>> = {
  'money is conserved': moneyConserved,
  'nobody overspends': nothingOverspent,
  'calls count against every budget of whose spend they are': budgetsKept,
  'no call is charged twice': chargedOnce,
  'no acknowledged charge is lost': nothingLost,
  'models cost what was used': usedIsPaid,
  'no call gets more than its hold buys': holdsAreEnough,
  'the loss of a call is bounded': lossesAreBounded,
  'tasks are created once': createdOnce,
  'tasks end as their upstream says': endedAsTold,
  'tasks cost what was made': madeIsPaid,
  'what is told of a task only goes on': neverGoesBack,
  'three tasks at once': placesKept,
  'header, record, usage and ledger agree': toldAgrees,
  'no window is exceeded': windowsKept,
  'nothing leaks': nothingLeaks,
  'unsettled only for a reason': unsettledForReason,
  'everything is resolved': everythingResolved,
  'one billed upstream call per charge': upstreamAskedOnce,
  'no call asks more than its operation says': attemptsKept,
  'revoked keys start nothing': revokedStartNothing,
  'a new price is known in time': pricesKnown,
  'the ledger replays': replayProblems,
  'no process ends by itself': noDeaths,
  'nobody is told of a mistake of ours': noMistakes,
}

const SHOWN = 4

export async function judge(evidence: Evidence): Promise<Verdicts> {
  const verdicts: Record<string, string> = {}
  for (const [name, problemsOf] of Object.entries(INVARIANTS)) {
    const problems = [...(await problemsOf(evidence))]
    verdicts[name] = problems.length === 0 ? 'ok' : `broken: ${inShort(problems)}`
  }
  return verdicts
}

function inShort(problems: readonly string[]): string {
  const rest = problems.length - SHOWN
  return problems.slice(0, SHOWN).join('; ') + (rest > 0 ? `; and ${rest} more` : '')
}

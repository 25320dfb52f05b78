import type { BudgetKind, Ceiling } from '../budgets/account-budgets.ts'
import type { Extension, Growth as Grown } from '../calls/call.ts'
import type { Calls, Unheard } from '../calls/calls.ts'
import type { Clock } from '../kernel/clock.ts'
import { FAULTS, Fault, type FaultCode, unavailable } from '../kernel/fault.ts'
import { largestThat } from '../kernel/largest.ts'
import type { Nanos } from '../kernel/money.ts'
import type { Held } from '../pricing/terms.ts'
import type { MoneyAdvice } from '../wording/money-advice.ts'
import { ceilingName } from '../wording/money-words.ts'

/** What a stream holds and reserves for so many tokens of output. */
export type Slice = { readonly held: Held; readonly tokens: number }

/** How a stream could be held for as it goes on, where its upstreams allow that. */
export type GrowthPlan = {
  /** For so many tokens of output, of all choices together. */
  readonly sliceFor: (outputTokens: number) => Slice
  /** More can't come. */
  readonly outputMost: number
  readonly choices: number
  /** How what was made is bounded: by the text that came, or by the time that its upstream has had. */
  readonly counted: Counted
  /** What to do where the first slice is more than there is. */
  readonly moneyAdvice?: MoneyAdvice | undefined
}

export type Counted =
  | { readonly by: 'text'; readonly tokenBytes: number }
  | { readonly by: 'time'; readonly tokensPerSecond: number }

/** Which limit there is no more of. A budget without a word before it is the caller's own: of its key, or its mandate. */
export type Short = 'balance' | 'budget' | `${BudgetKind}_budget` | 'tokens_per_minute' | 'credential'

/** A stream was cut because there is no more to hold for it. */
export class HoldSpent extends Error {
  readonly endedBy: Short
  /** Of which budget, where it is one. */
  readonly ceiling: Ceiling | undefined

  constructor(endedBy: Short, ceiling?: Ceiling) {
    super(`there is no more to hold: ${endedBy}`)
    this.endedBy = endedBy
    this.ceiling = ceiling
  }
}

/** Whoever passes the stream on. */
export type Grower = {
  /** How many bytes of text have passed. */
  readonly textBytes: () => number
  /** Whether the answer has been written, so that nothing more can come of it. */
  readonly isWritten: () => boolean
  /** So many bytes of text may pass from now on. */
  readonly allow: (textBytes: number) => void
  /** There is no more, or nobody can say. */
  readonly stop: (reason: unknown) => void
}

/** A time of the process's clock. */
export type HoldStep = { readonly atMs: number; readonly amount: Nanos }

/** The hold of one stream. */
export type Growth = {
  /** What it holds now. */
  readonly held: () => Held
  /** When it was raised, and to how much. */
  readonly steps: () => readonly HoldStep[]
  /** Has it told where there is no more before anything has come, at once where that is so already. Call off what comes back. */
  readonly whenShort: (work: () => void) => () => void
  /** Why there is no more; undefined where nobody has met a limit. */
  readonly short: () => unknown
  /** Begins to count what passes. How many bytes of text may pass at first. */
  readonly start: (grower: Grower) => number
  /** Text has passed, or waits to pass. */
  readonly note: (isWaiting: boolean) => void
  /** Nothing more is asked for. Resolves when it is known what is held. */
  readonly end: () => Promise<void>
  /** Holds for what its upstream says that it made, where that is more and there is money for it: what is held too late is no loss. */
  readonly cover: (tokens: number) => Promise<void>
  /** Holds for all that an answer used that came in one piece, so that nothing of it has passed. Why it can't; undefined where it does. */
  readonly holdAll: (tokens: number) => Promise<unknown>
}

/** What is held for at first, and the most that is asked for at once. */
const FIRST_TOKENS = 1_024
const MOST_TOKENS = 16_384
/** Of what is made unseen, as much as can be in so long, so that a question and its answer are in time. */
const FIRST_SECONDS = 2
const MOST_SECONDS = 8
/** And so long before more can have been made it is given up: that takes a moment too. */
const LEAD_MS = 250
/** Less is not worth a question. */
const LEAST_TOKENS = 64
/** Tokens that are no text: of the beginning and the end of each thing that is written. */
const UNSEEN_TOKENS = { least: 64, ofChoice: 16 }
/** A stream whose text waits is not kept waiting for longer, and it is asked again so often. */
const PATIENCE_MS = 2_000
const RETRY_MS = 250
const RETRY_MOST_MS = 1_000
/** By time, nobody looks more often. */
const LOOK_MS = 125
/** How many steps are kept for the record of a call; of more, the latest. */
const STEPS_KEPT = 60

type Parts = {
  readonly extend: Calls['extend']
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>
}

type Growing = Pick<Extension, 'id' | 'accountId' | 'windows'> & {
  /** What it is held against beside the balance. */
  readonly ceilings: readonly Ceiling[]
}

export type CreateGrowth = (plan: GrowthPlan, call: Growing) => Growth

/** How much output a stream is begun with. */
export function firstTokens(counted: Counted): number {
  return counted.by === 'text' ? FIRST_TOKENS : Math.max(FIRST_TOKENS, FIRST_SECONDS * counted.tokensPerSecond)
}

function mostTokens(counted: Counted): number {
  return counted.by === 'text' ? MOST_TOKENS : Math.max(MOST_TOKENS, MOST_SECONDS * counted.tokensPerSecond)
}

/** What a stream is begun with; undefined where that is all that it can come to. */
export function firstSlice(plan: GrowthPlan | undefined): Slice | undefined {
  if (plan === undefined) return undefined
  const first = firstTokens(plan.counted)
  return plan.outputMost <= first ? undefined : plan.sliceFor(first)
}

/** Asks for more to be held ahead of what a stream can have used, so that it never uses what is not held. */
export function createGrowths({ extend, clock }: Parts): CreateGrowth {
  return (plan, { ceilings, ...call }) => {
    const { counted, outputMost, sliceFor } = plan
    const unseen = Math.max(UNSEEN_TOKENS.least, UNSEEN_TOKENS.ofChoice * plan.choices)
    const over = new AbortController()
    let grower: Grower | undefined
    /** Why there is no more, and who has it told before anything has come. */
    let reason: unknown
    let abort: () => void = () => {}
    /** Why there was no more when it was last asked. */
    let latest: unknown
    let covered = firstTokens(counted)
    let slice = sliceFor(covered)
    const steps: HoldStep[] = []
    /** How much was asked for last. */
    let step = covered
    const beganMs = clock.monotonicMs()
    let waitingSinceMs: number | undefined
    let asking: Promise<void> | undefined

    /** No upstream can have made more. */
    function made(): number {
      if (counted.by === 'time') return ((clock.monotonicMs() - beganMs) / 1_000) * counted.tokensPerSecond
      return Math.ceil((grower?.textBytes() ?? 0) / counted.tokenBytes)
    }

    function allowedBytes(): number {
      if (counted.by === 'time' || covered >= outputMost) return Number.POSITIVE_INFINITY
      return Math.max(0, covered - unseen) * counted.tokenBytes
    }

    function isOver(): boolean {
      return over.signal.aborted || reason !== undefined || grower?.isWritten() === true
    }

    /** Before half of what was asked for last is left; or something waits, which one frame with a lot of text does at once. */
    function isDue(): boolean {
      return covered < outputMost && (waitingSinceMs !== undefined || covered - made() < step / 2)
    }

    function look(): void {
      if (asking !== undefined || isOver() || !isDue()) return
      // Whatever is wrong with a question is no reason for this process to end.
      asking = untilAnswered()
        .catch((error: unknown) => stop(unavailable(error)))
        .finally(() => {
          asking = undefined
          look()
        })
    }

    /** Asks until there is more, or no time is left. */
    async function untilAnswered(): Promise<void> {
      for (let waitMs = RETRY_MS; !isOver(); waitMs = Math.min(2 * waitMs, RETRY_MOST_MS)) {
        const short = await raise()
        if (short === undefined) {
          waitingSinceMs = undefined
          grower?.allow(allowedBytes())
          return
        }
        latest = short.reason
        if (short.isFinal || leftMs() <= 0) return stop(short.reason)
        await clock.sleep(Math.min(waitMs, leftMs()), over.signal).catch(() => {})
      }
    }

    function stop(short: unknown): void {
      if (isOver()) return
      reason = short
      if (grower === undefined) abort()
      else grower.stop(short)
    }

    /** How long it may go on as it is: until more can have been made than is held for, or what was made has waited long enough. */
    function leftMs(): number {
      if (counted.by === 'time') return ((covered - made()) / counted.tokensPerSecond) * 1_000 - LEAD_MS
      if (waitingSinceMs === undefined) return Number.POSITIVE_INFINITY
      return waitingSinceMs + PATIENCE_MS - clock.monotonicMs()
    }

    /** The next slice, or what is left of it; why there is none. */
    async function raise(): Promise<Shortage | undefined> {
      const wanted = Math.min(outputMost, covered + Math.min(2 * step, mostTokens(counted)))
      const answer = await raiseTo(wanted)
      if (answer.outcome === 'extended') return undefined
      const fitting = isOver() ? covered : fittingOf(answer, wanted)
      if (fitting - covered >= LEAST_TOKENS && (await raiseTo(fitting)).outcome === 'extended') return undefined
      return shortageOf(answer, ceilings)
    }

    /** Without reserving more of the tokens a minute, what is asked for is money alone. */
    async function raiseTo(tokens: number, { reserves = true } = {}): Promise<Grown | Unheard> {
      const whole = sliceFor(tokens)
      const next = reserves ? whole : { ...whole, tokens: slice.tokens }
      const answer = await extend({ ...call, amount: next.held.most, tokens: next.tokens })
      if (answer.outcome !== 'extended') return answer
      step = tokens - covered
      covered = tokens
      slice = next
      steps.push({ atMs: clock.monotonicMs(), amount: next.held.most })
      if (steps.length > STEPS_KEPT) steps.shift()
      return answer
    }

    /** The most output, below what was refused, for which there is enough left. */
    function fittingOf(answer: Grown | Unheard, refused: number): number {
      if (!('left' in answer)) return covered
      const { left } = answer
      const isOfTokens = answer.outcome === 'tokens_spent'
      const needed = (tokens: number) => {
        const next = sliceFor(tokens)
        return isOfTokens ? next.tokens - slice.tokens : next.held.most - slice.held.most
      }
      return largestThat((tokens) => needed(tokens) <= left, covered, refused)
    }

    /** Where more is made without being seen, nobody else says when it is time to look. */
    async function lookInTime(tokensPerSecond: number): Promise<void> {
      while (!isOver() && covered < outputMost) {
        look()
        const dueMs = ((covered - step / 2 - made()) / tokensPerSecond) * 1_000
        await clock.sleep(Math.max(LOOK_MS, Math.min(dueMs, leftMs())), over.signal).catch(() => {})
        // Also while a question is not answered: what may be made meanwhile is not held for.
        if (covered < outputMost && leftMs() <= 0) stop(latest ?? unavailable(new Error('a hold did not grow in time')))
      }
    }

    // It may be at work before its first word comes.
    if (counted.by === 'time') void lookInTime(counted.tokensPerSecond)
    return {
      held: () => slice.held,
      steps: () => steps,
      whenShort(work) {
        abort = work
        if (reason !== undefined) work()
        return () => {
          abort = () => {}
        }
      },
      short: () => reason,
      start(one) {
        grower = one
        if (reason !== undefined) one.stop(reason)
        return allowedBytes()
      },
      note(isWaiting) {
        if (isWaiting) waitingSinceMs ??= clock.monotonicMs()
        if (counted.by === 'text') look()
      },
      async end() {
        over.abort()
        await asking
      },
      async cover(tokens) {
        const wanted = Math.min(tokens, outputMost)
        if (wanted <= covered) return
        try {
          // Of tokens a minute, what was used counts at the end, whatever was reserved.
          const answer = await raiseTo(wanted, { reserves: false })
          const fitting = answer.outcome === 'extended' ? covered : fittingOf(answer, wanted)
          if (fitting > covered) await raiseTo(fitting, { reserves: false })
        } catch {
          // It is settled with what is held.
        }
      },
      async holdAll(tokens) {
        const wanted = Math.min(tokens, outputMost)
        const lastMs = clock.monotonicMs() + PATIENCE_MS
        for (let waitMs = RETRY_MS; wanted > covered; waitMs = Math.min(2 * waitMs, RETRY_MOST_MS)) {
          const answer = await raiseTo(wanted, { reserves: false }).catch(unanswered)
          if (answer.outcome === 'extended') return undefined
          const short = shortageOf(answer, ceilings)
          if (short.isFinal || clock.monotonicMs() >= lastMs) return short.reason
          await clock.sleep(waitMs)
        }
        return undefined
      },
    }
  }
}

const unanswered = (): Unheard => ({ outcome: 'unanswered' })

function budgetSpent(ceiling: Ceiling | undefined): HoldSpent {
  if (ceiling === undefined || ceiling.kind === 'key' || ceiling.kind === 'mandate')
    return new HoldSpent('budget', ceiling)
  return new HoldSpent(`${ceiling.kind}_budget`, ceiling)
}

const SHORT_CODES = {
  balance: 'insufficient_balance',
  budget: 'budget_exceeded',
  workspace_budget: 'budget_exceeded',
  member_budget: 'budget_exceeded',
  tag_budget: 'budget_exceeded',
  end_user_budget: 'budget_exceeded',
  tokens_per_minute: 'rate_limit_exceeded',
  credential: 'invalid_credential',
} as const satisfies Readonly<Record<Short, FaultCode>>

const GIVEN_UP = 'The hold could not grow while the model was working, and no output had come. The input was charged.'
const WITHHELD =
  'The provider answered in one piece instead of a stream, and what is left does not cover what it used, so the answer is withheld. Nothing was charged.'

/** What the caller of a stream is told that was given up before anything had come of it, or whose answer is withheld. */
export function shortFault(short: unknown, { isWithheld = false } = {}): unknown {
  if (!(short instanceof HoldSpent)) return short
  const detail = isWithheld ? WITHHELD : GIVEN_UP
  const { endedBy, ceiling } = short
  const limit = endedBy === 'tokens_per_minute' ? `${FAULTS.rate_limit_exceeded.text} ` : ''
  const whose =
    ceiling === undefined || endedBy === 'budget' ? '' : ` The limit is the budget of ${ceilingName(ceiling)}.`
  return new Fault(SHORT_CODES[endedBy], { detail: limit + detail + whose, members: { ended_by: endedBy } })
}

type Shortage = {
  readonly reason: unknown
  /** Whether asking again is in vain. */
  readonly isFinal: boolean
}

function shortageOf(answer: Grown | Unheard, ceilings: readonly Ceiling[]): Shortage {
  switch (answer.outcome) {
    case 'money_spent':
      return { reason: new HoldSpent('balance'), isFinal: false }
    case 'allowance_spent':
      return {
        reason: budgetSpent(ceilings.find(({ allowanceId }) => allowanceId === answer.allowanceId)),
        isFinal: false,
      }
    case 'tokens_spent':
      return { reason: new HoldSpent('tokens_per_minute'), isFinal: false }
    case 'account_inactive':
    case 'account_suspended':
    case 'credential_inactive':
      return { reason: new HoldSpent('credential'), isFinal: true }
    default:
      // PostgreSQL may answer again; of a call that has ended, or is taken for an orphan, it has answered.
      return {
        reason: unavailable(new Error(`a hold could not grow: ${answer.outcome}`)),
        isFinal: answer.outcome !== 'unanswered',
      }
  }
}

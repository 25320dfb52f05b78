import type { Clock } from '../kernel/clock.ts'
import type { Id } from '../kernel/ids.ts'
import type { Log } from '../telemetry/log.ts'
import { beginBatch } from './begin-batch.ts'
import type { Call, Ending, Judgement, Settlement } from './call.ts'
import { endBatch } from './end-batch.ts'
import { Failed, orFailed } from './failed.ts'
import { beginFitting, isUsual, type UsualCall } from './fast-begin.ts'
import { endFitting, isUsualEnding, type UsualEnding } from './fast-end.ts'
import { Contended, Unanswered } from './money-query.ts'
import { type Query, Row } from './query.ts'

/** How batches are begun and ended. Where one throws, it failed with all of them. */
export type Path = {
  readonly begin: (query: Query, ownerId: Id, calls: readonly Call[]) => Promise<(Judgement | Failed)[]>
  readonly end: (query: Query, endings: readonly Ending[]) => Promise<(Settlement | Error | Failed)[]>
}

/** By the judging functions alone. */
export const judgedPath: Path = { begin: beginBatch, end: endBatch }

/** How long calls of somebody for whom they did not fit are sent to the judging functions at once. */
const UNFIT_MS = 2_000
/** Of each thing that is remembered. */
const REMEMBERED_MOST = 50_000
/** That wait to be put to their credentials; the others are, with their next call that does not fit. */
const UNMETERED_MOST = 1_000

type Parts = { readonly clock: Clock; readonly log: Log }

/**
 * The usual calls by one statement, which leaves alone what does not fit. All others, and those that did not fit, by the judging functions, which read the same rows.
 * Calls of one account that hold money are not parted beforehand, so that they are judged in the order of their arrival.
 */
export function createFastPath({ clock, log }: Parts): Path {
  /** The usual calls that this process has begun and not ended yet. Those that somebody else ends stay until there are too many. */
  const open = new Map<Id, UsualCall>()
  /** Calls whose statement failed. One that is sent again may be known already. */
  const sent = new WeakSet<Call>()
  const [unfitCredentials, unfitAccounts] = [createMemory(clock), createMemory(clock)]
  /** Credentials, and their own budgets. */
  const unmetered = new Map<Id, Id>()
  let isMetering = false

  async function begin(query: Query, ownerId: Id, calls: readonly Call[]): Promise<(Judgement | Failed)[]> {
    const usual = alike(calls, usualCall, budgetAndWindow)
    const judgements = await carryOut<Call, UsualCall, Judgement>(calls, log, {
      usual,
      itemOf: (call) => call,
      fit: (some) => beginFitting(query, ownerId, some),
      judge: (some) => beginBatch(query, ownerId, some),
      misfit: (call, { outcome }) => {
        unfitCredentials.note(call.credentialId)
        if (outcome === 'begun') meterBudget(query, call)
      },
    })
    for (const [at, call] of calls.entries()) {
      const judgement = judgements[at]
      if (judgement instanceof Failed) sent.add(call)
      else if (judgement?.outcome === 'begun' && isUsual(call)) remember(call)
    }
    return judgements
  }

  function usualCall(call: Call): UsualCall | undefined {
    return isUsual(call) && !sent.has(call) && !unfitCredentials.has(call.credentialId) ? call : undefined
  }

  function remember(call: UsualCall): void {
    if (open.size >= REMEMBERED_MOST) {
      const [oldest] = open.keys()
      if (oldest !== undefined) open.delete(oldest)
    }
    open.set(call.id, call)
  }

  /** A call that would fit but for its budget, which does not stand with its credential: as when a period has begun. */
  function meterBudget(query: Query, { credentialId, hold }: Call): void {
    if (hold?.own === undefined || unmetered.size >= UNMETERED_MOST) return
    unmetered.set(credentialId, hold.own)
    if (!isMetering) void meterBudgets(query)
  }

  /** One after the other: connections for money are few, and each may wait for an account. */
  async function meterBudgets(query: Query): Promise<void> {
    isMetering = true
    for (const [credentialId, allowanceId] of unmetered) {
      unmetered.delete(credentialId)
      const values = [credentialId, allowanceId]
      const text = 'select meter_budget(credential => $1, allowance => $2)'
      try {
        const [moved] = await query({ name: 'meter_budget', text, values })
        // Where it stood there already, it is not why the call did not fit.
        if (new Row(moved).boolean(0)) unfitCredentials.forget(credentialId)
      } catch (error) {
        // It is asked for again with the next call that does not fit.
        log.warn('a budget could not be put to its credential', { error })
        if (!(error instanceof Contended)) unmetered.clear()
      }
    }
    isMetering = false
  }

  async function end(query: Query, endings: readonly Ending[]): Promise<(Settlement | Error | Failed)[]> {
    const usual = alike(endings, usualEnding, ({ call }) => call.hold.allowances[0] ?? '')
    const settlements = await carryOut<Ending, UsualEnding, Settlement | Error>(endings, log, {
      usual,
      itemOf: ({ ending }) => ending,
      fit: (some) => endFitting(query, some),
      judge: (some) => endBatch(query, some),
      misfit: ({ accountId }) => unfitAccounts.note(accountId),
    })
    for (const [at, { id }] of endings.entries()) if (!(settlements[at] instanceof Failed)) open.delete(id)
    return settlements
  }

  function usualEnding(ending: Ending): UsualEnding | undefined {
    const call = open.get(ending.id)
    if (call?.accountId !== ending.accountId || !isUsualEnding(ending) || unfitAccounts.has(ending.accountId))
      return undefined
    return { ending, call, accountId: call.accountId, credentialId: call.credentialId }
  }

  return { begin, end }
}

type Steps<Item, Usual, Answer> = {
  /** Those of the batch that are usual. */
  readonly usual: readonly Usual[]
  readonly itemOf: (usual: Usual) => Item
  readonly fit: (usual: readonly Usual[]) => Promise<readonly (Answer | Failed | undefined)[]>
  readonly judge: (items: readonly Item[]) => Promise<readonly Answer[]>
  /** Of each that was judged although it is usual. */
  readonly misfit: (item: Item, answer: Answer) => void
}

/**
 * Carries out a batch: what is usual by its statement, the rest beside it by the judging function, and then what did not fit. Where one of these fails, the others are
 * answered all the same, once we wait for none of them any more.
 */
async function carryOut<Item, Usual, Answer>(
  items: readonly Item[],
  log: Log,
  steps: Steps<Item, Usual, Answer>,
): Promise<(Answer | Failed)[]> {
  const answered = new Map<Item, Answer | Failed>()
  const usual = steps.usual.map(steps.itemOf)
  const isTried = new Set(usual)

  function note(some: readonly Item[], answers: readonly (Answer | Failed | undefined)[] | Failed): void {
    for (const [at, item] of some.entries()) {
      const answer = answers instanceof Failed ? answers : answers[at]
      if (answer !== undefined) answered.set(item, answer)
    }
  }

  async function judge(some: readonly Item[]): Promise<void> {
    if (some.length > 0) note(some, await orFailed(() => steps.judge(some)))
  }

  async function fit(): Promise<void> {
    if (usual.length === 0) return
    note(usual, unlessRefused(await steps.fit(steps.usual), log))
    const left = usual.filter((item) => !answered.has(item))
    await judge(left)
    for (const item of left) {
      const answer = answered.get(item)
      if (answer !== undefined && !(answer instanceof Failed)) steps.misfit(item, answer)
    }
  }

  await Promise.all([fit(), judge(items.filter((item) => !isTried.has(item)))])
  return items.map((item) => answered.get(item) ?? new Failed(new Error('PostgreSQL left an item out')))
}

/**
 * A statement that PostgreSQL refuses was not carried out: then its calls are judged. That is seldom: a constraint is checked before PostgreSQL finds that a row was
 * changed while the statement waited.
 */
function unlessRefused<T>(answers: readonly (T | Failed | undefined)[], log: Log): readonly (T | Failed | undefined)[] {
  const isRefused = (answer: unknown): answer is Failed =>
    answer instanceof Failed && !(answer.error instanceof Unanswered)
  const refusals = new Set(answers.filter(isRefused).map(({ error }) => error))
  for (const error of refusals) log.warn('calls that seemed to fit were refused by PostgreSQL', { error })
  return answers.map((answer) => (isRefused(answer) ? undefined : answer))
}

type Whose = Pick<Call, 'accountId' | 'credentialId'>

/**
 * Those that are usual, and alike for each credential in what the statement asks once. One that is not takes all of its account with it, so that they are judged together, in the
 * order of their arrival.
 */
function alike<T extends Pick<Call, 'accountId'>, U extends Whose>(
  items: readonly T[],
  usualOf: (item: T) => U | undefined,
  likenessOf: (item: U) => string,
): readonly U[] {
  const usual: U[] = []
  const apart = new Set<Id>()
  const likeness = new Map<Id, string>()
  for (const item of items) {
    const one = usualOf(item)
    const known = one && likeness.get(one.credentialId)
    const own = one && `${one.accountId} ${likenessOf(one)}`
    if (one === undefined || own === undefined || (known !== undefined && known !== own)) apart.add(item.accountId)
    else {
      usual.push(one)
      likeness.set(one.credentialId, own)
    }
  }
  return apart.size === 0 ? usual : usual.filter(({ accountId }) => !apart.has(accountId))
}

function budgetAndWindow({ hold, windows: [{ seconds }] }: UsualCall): string {
  return `${seconds} ${hold.allowances[0]}`
}

/** Whose calls, or whose endings, did not fit. */
function createMemory(clock: Pick<Clock, 'monotonicMs'>) {
  const until = new Map<Id, number>()
  return {
    has(id: Id): boolean {
      const untilMs = until.get(id)
      if (untilMs === undefined) return false
      if (untilMs > clock.monotonicMs()) return true
      until.delete(id)
      return false
    },
    note(id: Id): void {
      if (until.size >= REMEMBERED_MOST) until.clear()
      until.set(id, clock.monotonicMs() + UNFIT_MS)
    },
    forget: (id: Id) => until.delete(id),
  }
}

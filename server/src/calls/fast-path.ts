import type { Clock } from '../kernel/clock.ts'
import type { Id } from '../kernel/ids.ts'
import { isRefusal } from '../storage/refusal.ts'
import type { Log } from '../telemetry/log.ts'
import { beginBatch } from './begin-batch.ts'
import type { Call, Ending, Judgement, Settlement } from './call.ts'
import { endBatch } from './end-batch.ts'
import { Failed, orFailed } from './failed.ts'
import { beginFitting, isUsual, type UsualCall } from './fast-begin.ts'
import { endFitting, isUsualEnding, type UsualEnding } from './fast-end.ts'
import { Unanswered } from './money-query.ts'
import type { Query } from './query.ts'

/** How batches are begun and ended. Where one throws, it failed with all of them. */
export type Path = {
  readonly begin: (query: Query, ownerId: Id, calls: readonly Call[]) => Promise<(Judgement | Failed)[]>
  readonly end: (query: Query, endings: readonly Ending[]) => Promise<(Settlement | Error | Failed)[]>
}

/** By the judging functions alone. */
export const judgedPath: Path = { begin: beginBatch, end: endBatch }

/** How long calls of somebody for whom they did not fit are sent to the judging functions at once. */
const UNFIT_MS = 2_000
/** The limit of each memory of this process. */
const REMEMBERED_MOST = 50_000
/** As many as a process keeps keys. */
const BUDGETS_MOST = 200_000

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
  /** The own budget that stands with each credential, as far as this process knows. The first call of a credential is judged, and puts it there. */
  const metered = new Map<Id, Id>()

  async function begin(query: Query, ownerId: Id, calls: readonly Call[]): Promise<(Judgement | Failed)[]> {
    const usual = alike(calls, usualCall, budgetAndWindow)
    const judgements = await carryOut<Call, UsualCall, Judgement>(calls, log, {
      usual,
      itemOf: (call) => call,
      fit: (some) => beginFitting(query, ownerId, some),
      judge: (some, areTried) => judge(query, ownerId, some, areTried),
      misfit: ({ credentialId }) => unfitCredentials.note(credentialId),
    })
    for (const [at, call] of calls.entries()) {
      const judgement = judgements[at]
      if (judgement instanceof Failed) sent.add(call)
      else if (judgement?.outcome === 'begun' && isUsual(call)) keep(open, REMEMBERED_MOST, call.id, call)
    }
    return judgements
  }

  function usualCall(call: Call): UsualCall | undefined {
    return mayFit(call) && (call.hold.own === undefined || metered.get(call.credentialId) === call.hold.own)
      ? call
      : undefined
  }

  function mayFit(call: Call): call is UsualCall {
    return isUsual(call) && !sent.has(call) && !unfitCredentials.has(call.credentialId)
  }

  /** What PostgreSQL refuses because of the budgets is judged without them: they only save work. */
  async function judge(query: Query, ownerId: Id, calls: readonly Call[], areTried: boolean): Promise<Judgement[]> {
    const toMeter = calls.filter((call) => mayMeter(call, areTried))
    const judged = await orFailed(() => beginBatch(query, ownerId, calls, toMeter))
    if (judged instanceof Failed) {
      for (const { credentialId } of toMeter) unfitCredentials.note(credentialId)
      if (toMeter.length === 0 || !isRefusal(judged.error)) throw judged.error
      log.warn('calls were refused together with the budgets that were put to their credentials', {
        error: judged.error,
      })
      return beginBatch(query, ownerId, calls)
    }
    for (const call of toMeter) if (judged[calls.indexOf(call)]?.outcome === 'begun') rememberBudget(call)
    return judged
  }

  /** Where the budget of a usual call may stand elsewhere: it is the first of its credential, or did not fit, as when a period has begun. */
  function mayMeter(call: Call, isTried: boolean): boolean {
    if (!mayFit(call) || call.hold.own === undefined) return false
    return isTried || metered.get(call.credentialId) !== call.hold.own
  }

  function rememberBudget({ credentialId, hold }: Call): void {
    if (hold?.own !== undefined && metered.get(credentialId) !== hold.own)
      keep(metered, BUDGETS_MOST, credentialId, hold.own)
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
  readonly fit: (usual: readonly Usual[]) => Promise<readonly (Answer | undefined)[]>
  /** Those that were tried did not fit. */
  readonly judge: (items: readonly Item[], areTried: boolean) => Promise<readonly Answer[]>
  /** Called for each that was judged although it is usual. */
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

  function note(some: readonly Item[], answers: readonly (Answer | undefined)[] | Failed): void {
    for (const [at, item] of some.entries()) {
      const answer = answers instanceof Failed ? answers : answers[at]
      if (answer !== undefined) answered.set(item, answer)
    }
  }

  async function judge(some: readonly Item[], areTried: boolean): Promise<void> {
    if (some.length > 0) note(some, await orFailed(() => steps.judge(some, areTried)))
  }

  async function fit(): Promise<void> {
    if (usual.length === 0) return
    const answers = await orFailed(() => steps.fit(steps.usual))
    if (isRefused(answers)) log.warn('calls that seemed to fit were refused by PostgreSQL', { error: answers.error })
    else note(usual, answers)
    const left = usual.filter((item) => !answered.has(item))
    await judge(left, true)
    for (const item of left) {
      const answer = answered.get(item)
      if (answer !== undefined && !(answer instanceof Failed)) steps.misfit(item, answer)
    }
  }

  const rest = items.filter((item) => !isTried.has(item))
  await Promise.all([fit(), judge(rest, false)])
  return items.map((item) => answered.get(item) ?? new Failed(new Error('PostgreSQL left an item out')))
}

/**
 * A statement that PostgreSQL refuses was not carried out: then its calls are judged. That is seldom: a constraint is checked before PostgreSQL finds that a row was
 * changed while the statement waited.
 */
function isRefused<T>(answers: T | Failed): answers is Failed {
  return answers instanceof Failed && !(answers.error instanceof Unanswered)
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

/** The oldest goes where there are too many. */
function keep<Key, Value>(map: Map<Key, Value>, most: number, key: Key, value: Value): void {
  if (map.size >= most) {
    const [oldest] = map.keys()
    if (oldest !== undefined) map.delete(oldest)
  }
  map.set(key, value)
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
  }
}

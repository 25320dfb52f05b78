import { z } from 'zod'
import { derivedId } from '../kernel/derived-id.ts'
import type { Id } from '../kernel/ids.ts'
import { nanos } from '../kernel/money.ts'
import { PERIODS, type Period, periodStartMs } from '../kernel/period.ts'
import type { Budget } from './budgets.ts'

/**
 * Budgets of an account beside those of its keys: of all of it, of a member, of a tag and of an end user. They come with the workspace into
 * the memory of a process, and say which ceilings a call is held against.
 */

export const BUDGET_KINDS = ['workspace', 'member', 'tag', 'end_user'] as const
export type BudgetKind = (typeof BUDGET_KINDS)[number]

/** In place of an end user, or of the value of a tag: each of them has the amount for itself. */
export const EVERY = '*'

export type AccountBudget = Budget & {
  readonly id: Id
  readonly accountId: Id
  readonly kind: BudgetKind
  /** Nothing for a workspace, who a member is (memberSubjects), the id of an end user, `name=value` of a tag; or every one of them. */
  readonly subject: string
  /** The subject as people know it. */
  readonly label: string
  /** Whether an operator has set it: members neither change nor remove it. */
  readonly isOperators?: boolean
}

/** What a call is held against beside the balance. */
export type Ceiling = {
  readonly allowanceId: Id
  readonly kind: BudgetKind | 'key' | 'mandate'
  /** Of which member, tag or end user; null where there is one alone. */
  readonly subject: string | null
  readonly budget: Budget
  /** The budget of everybody that it is one of: its allowance is made when it is met first. */
  readonly follows?: Id
  /** Whether it counts only where there is an allowance already, and none is made. */
  readonly isLookedFor?: true
}

/** The most that a call is held against, whatever it says of itself. What would be more is refused when it is set. */
export const CEILINGS_LIMIT = 8

/** The same whoever makes it, so that nobody who meets it first makes a second one. */
export function allowanceIdOf(accountId: Id, kind: BudgetKind, subject: string, period: Period): Id {
  return derivedId('budget', accountId, kind, subject, period)
}

/** In the JSON of a statement, of rows that it calls b. */
export const BUDGETS_JSON = `coalesce(jsonb_agg(jsonb_build_object('id', b.id, 'account_id', b.account_id, 'kind', b.kind,
  'subject', b.subject, 'label', b.label, 'period', b.period, 'amount', b.amount::text)), '[]')`

export const budgetRow = z
  .object({
    id: z.string(),
    account_id: z.string(),
    kind: z.enum(BUDGET_KINDS),
    subject: z.string(),
    label: z.string(),
    period: z.enum(PERIODS),
    amount: z.coerce.bigint(),
    is_operators: z.boolean().default(false),
  })
  .transform(
    ({ account_id: accountId, amount, is_operators: isOperators, ...row }): AccountBudget => ({
      ...row,
      accountId,
      amount: nanos(amount),
      isOperators,
    }),
  )

/** Those of one account, by what they are of. */
export type BudgetsOfAccount = {
  readonly workspace: readonly Ceiling[]
  readonly ofMember: ReadonlyMap<string, readonly Ceiling[]>
  /** Those that hang on what a call says of itself; null where none does, so that no call is asked. */
  readonly ofCalls: BudgetsOfCalls | null
}

export type BudgetsOfCalls = {
  /** By `name=value` and `name=*`. */
  readonly tags: ReadonlyMap<string, readonly AccountBudget[]>
  /** By the id of an end user and `*`. */
  readonly endUsers: ReadonlyMap<string, readonly AccountBudget[]>
}

export const NO_BUDGETS: BudgetsOfAccount = { workspace: [], ofMember: new Map(), ofCalls: null }

export function budgetsOf(accountId: Id, all: readonly AccountBudget[]): BudgetsOfAccount {
  const own = all.filter((budget) => budget.accountId === accountId)
  if (own.length === 0) return NO_BUDGETS
  const of = (kind: BudgetKind) =>
    Map.groupBy(
      own.filter((budget) => budget.kind === kind),
      ({ subject }) => subject,
    )
  const [tags, endUsers] = [of('tag'), of('end_user')]
  return {
    workspace: (of('workspace').get('') ?? []).map(ceilingOf),
    ofMember: new Map([...of('member')].map(([id, some]) => [id, some.map(ceilingOf)])),
    ofCalls: tags.size + endUsers.size === 0 ? null : { tags, endUsers },
  }
}

/** Of a budget with one subject, whose allowance has its id. */
function ceilingOf({ id, kind, label, period, amount }: AccountBudget): Ceiling {
  return { allowanceId: id, kind, subject: kind === 'workspace' ? null : label, budget: { period, amount } }
}

/** Whose a call is, as far as budgets ask. */
type Whose = {
  readonly endUser: BudgetedEndUser | null
  readonly tags: readonly { readonly name: string; readonly value: string }[]
}

/** An end user by its own name, and with whom else it is or was counted, where the account has no place for it or had none. */
export type BudgetedEndUser = {
  readonly id: Id
  readonly label: string
  readonly others?: {
    readonly id: Id
    readonly label: string
    /** Until when it can have been one of them, in Unix milliseconds; null while it is. */
    readonly untilMs: number | null
    readonly nowMs: number
  }
}

const NONE: readonly AccountBudget[] = []

/** What a call is held against because of what it says of itself. One of its own takes the place of everybody's in the same period. */
export function ceilingsOfCall(
  { tags, endUsers }: BudgetsOfCalls,
  { endUser, tags: given }: Whose,
): readonly Ceiling[] {
  const ceilings: Ceiling[] = []
  const add = (from: BudgetsOfCalls['tags'], subject: string, every: string, label: string) => {
    const own = from.get(subject) ?? NONE
    ceilings.push(...own.map(ceilingOf))
    for (const budget of from.get(every) ?? NONE)
      if (!own.some(({ period }) => period === budget.period)) ceilings.push(followerOf(budget, subject, label))
  }
  for (const { name, value } of given) add(tags, `${name}=${value}`, everyOf(name), `${name}=${value}`)
  if (endUser !== null) {
    add(endUsers, endUser.id, EVERY, endUser.label)
    if (endUser.others !== undefined) return withOthers(ceilings, endUsers.get(EVERY) ?? NONE, endUser.others)
  }
  return ceilings
}

/** Clocks may differ by as much, and a call may begin in the period before. */
const PERIOD_MARGIN_MS = 3_600_000

/**
 * One for whom there is no place counts against what the others share, and against its own where it had one before. One who got a place later
 * counts against both for as long as the period lasts: so nobody has an amount once with the others and once alone.
 */
function withOthers(
  ceilings: readonly Ceiling[],
  everybodys: readonly AccountBudget[],
  { id, label, untilMs, nowMs }: NonNullable<BudgetedEndUser['others']>,
): readonly Ceiling[] {
  return ceilings.flatMap((ceiling) => {
    const budget = ceiling.kind === 'end_user' && everybodys.find((one) => one.id === ceiling.follows)
    if (!budget) return [ceiling]
    const shared = followerOf(budget, id, label)
    if (untilMs === null) return [{ ...ceiling, isLookedFor: true as const }, shared]
    return untilMs >= periodStartMs(budget.period, nowMs - PERIOD_MARGIN_MS) ? [ceiling, shared] : [ceiling]
  })
}

/** Every value of a tag. */
export function everyOf(name: string): string {
  return `${name}=${EVERY}`
}

/** Whether it is of everybody, each of whom has it for themselves. */
export function isOfEvery({ kind, subject }: Pick<AccountBudget, 'kind' | 'subject'>): boolean {
  return kind === 'end_user' ? subject === EVERY : kind === 'tag' && subject.endsWith(`=${EVERY}`)
}

function followerOf({ id, accountId, kind, period, amount }: AccountBudget, subject: string, label: string): Ceiling {
  const allowanceId = allowanceIdOf(accountId, kind, subject, period)
  return { allowanceId, kind, subject: label, budget: { period, amount }, follows: id }
}

/** The tags of a call, of which each has a name of its own. */
const TAGS_MOST = 8

/** The most ceilings that a call can meet: the key's own, and of each kind the subject that has most. */
export function ceilingsMost(own: readonly AccountBudget[]): number {
  const of = (kind: BudgetKind) => own.filter((budget) => budget.kind === kind)
  const byName = Map.groupBy(of('tag'), ({ subject }) => subject.slice(0, subject.indexOf('=')))
  const ofTags = [...byName.values()].map(mostOfOne).sort((one, other) => other - one)
  const kinds = [1, of('workspace').length, mostOfOne(of('member')), mostOfOne(of('end_user'))]
  return [...kinds, ...ofTags.slice(0, TAGS_MOST)].reduce((sum, count) => sum + count, 0)
}

/** Of the subject that has most: its own, and everybody's in other periods. Everybody's among end users may count twice: see withOthers. */
function mostOfOne(budgets: readonly AccountBudget[]): number {
  const everybodys = budgets.filter(isOfEvery).map(({ period }) => period)
  const weight = budgets.some(({ kind }) => kind === 'end_user') ? 2 : 1
  const own = Map.groupBy(
    budgets.filter((budget) => !isOfEvery(budget)),
    ({ subject }) => subject,
  )
  const counts = [...own.values()].map((some) => {
    const others = everybodys.filter((period) => !some.some((one) => one.period === period))
    return some.length + weight * others.length
  })
  return Math.max(weight * everybodys.length, ...counts)
}

import { allowanceIdOf } from '../../server/src/budgets/account-budgets.ts'
import { endUserOf } from '../../server/src/budgets/end-users.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { endUserNamed } from '../../server/src/protocols/end-user.ts'
import type { Evidence } from './evidence.ts'
import type { Person } from './people.ts'

const TEAMS = ['search', 'mail', 'maps'] as const
const END_USERS = 5

/** For whom a call with a mark is made, and by which team: the mark tells, so that a repetition says the same. */
export function saidOf(mark: string): { readonly team: string; readonly endUser: string } {
  const number = Number(mark.replaceAll(/\D/g, ''))
  return { team: TEAMS[number % TEAMS.length] ?? '', endUser: `user ${number % END_USERS}` }
}

type Budgeted = Person & { readonly budgets: NonNullable<Person['budgets']> }
const isBudgeted = (person: Person): person is Budgeted => person.budgets !== undefined

/** The allowances of a call with a mark, each with its amount. */
function allowancesOf({ accountId, budgets }: Budgeted, mark: string): ReadonlyMap<Id, bigint> {
  const { team, endUser } = saidOf(mark)
  const { id } = endUserOf(accountId, endUserNamed(endUser))
  return new Map([
    [allowanceIdOf(accountId, 'workspace', '', 'total'), usd(budgets.workspace)],
    [allowanceIdOf(accountId, 'tag', `team=${team}`, 'total'), usd(budgets.team)],
    [allowanceIdOf(accountId, 'end_user', id, 'total'), usd(budgets.endUser)],
  ])
}

/**
 * Every call of who has budgets counted against that of its workspace, of its team and of its end user, and none of them was passed by what was
 * charged and not given back.
 */
export function budgetsKept({ people, operations, charges, givenBack }: Evidence): string[] {
  const problems: string[] = []
  for (const person of people.filter(isBudgeted)) {
    const markById = new Map(
      operations.flatMap(({ mark, accountId, told }) =>
        mark !== undefined && accountId === person.accountId && told.id !== undefined ? [[told.id, mark] as const] : [],
      ),
    )
    const spent = new Map<Id, bigint>()
    const amounts = new Map<Id, bigint>()
    for (const { id, account_id, amount, held, allowances } of charges.values()) {
      if (account_id !== person.accountId || held === 0n) continue
      const mark = markById.get(id)
      const expected = mark === undefined ? undefined : allowancesOf(person, mark)
      if (expected !== undefined && [...expected.keys()].sort().join() !== [...allowances].sort().join())
        problems.push(`${id} (${mark}) counted against ${allowances.length} budgets, and not against its own`)
      // Of who was told nothing the mark is not known; it counted against three all the same.
      if (allowances.length !== 3) problems.push(`${id} counted against ${allowances.length} budgets`)
      for (const [one, most] of expected ?? []) amounts.set(one, most)
      for (const one of allowances) spent.set(one, (spent.get(one) ?? 0n) + amount - (givenBack.get(id) ?? 0n))
    }
    for (const [one, most] of amounts)
      if ((spent.get(one) ?? 0n) > most) problems.push(`${spent.get(one)} was spent of ${most} of budget ${one}`)
    if (spent.size === 0) problems.push(`${person.name} spent nothing`)
  }
  return problems
}

/** A run that has none of one of these has not tried what it is for. */
export function callsOfBudgets({ people, operations }: Pick<Evidence, 'people' | 'operations'>) {
  const accounts = new Set(people.filter(isBudgeted).map(({ accountId }) => accountId))
  const theirs = operations.filter(({ accountId }) => accounts.has(accountId ?? ''))
  return {
    'calls paid within budgets of a team and an end user': theirs.filter(({ told }) => (told.costNanos ?? 0n) > 0n)
      .length,
    'calls refused by such a budget': theirs.filter(({ told }) => told.code === 'budget_exceeded').length,
  }
}

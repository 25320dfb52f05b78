import { z } from 'zod'
import { type AccountBudget, isOfEvery } from '../budgets/account-budgets.ts'
import type { Budget } from '../budgets/budgets.ts'
import { changeBudget, listBudgets, removeBudget, setBudget } from '../budgets/set-budgets.ts'
import { listKeys } from '../identity/listed-keys.ts'
import type { Mode } from '../kernel/mode.ts'
import { formatUsd, usd } from '../kernel/money.ts'
import { leftOf, readBudgets } from '../ledger/balance.ts'
import { budgetSubject } from '../people/budget-subjects.ts'
import { ceilingName } from '../wording/money-words.ts'
import { findWorkspace } from '../workspaces/workspaces.ts'
import { action, field, flag } from './action.ts'
import { accountField, budgetLine, budgetOf, idField, unknown } from './fields.ts'

const test = flag('of test money (default: of live money)')
const modeOf = (isTest: boolean): Mode => (isTest ? 'test' : 'live')

const set = action({
  name: 'budgets set',
  summary:
    'set a budget, such as 100/month, 20/week, 5/day or 50/total, or change its amount; of the whole account unless an option says of what',
  effect: 'writes',
  positional: ['account', 'budget'],
  input: z.object({
    account: accountField(),
    budget: field('usd/period', 'amount in USD and period, such as 100/month', budgetOf),
    member: field(
      'member',
      'budget of a member, by id or e-mail address: keys assigned to it and its grants (default: any)',
      String,
    ).optional(),
    tag: field(
      'name=value',
      'budget of calls with a tag, or name=* for each value by itself (default: any)',
      String,
    ).optional(),
    endUser: field(
      'name',
      'budget of an end user, as callers name it, or * for each end user by itself (default: any)',
      String,
    ).optional(),
    test,
  }),
  async run({ pool, by }, { account, budget, member, tag, endUser, test: isTest }) {
    if ([member, tag, endUser].filter((one) => one !== undefined).length > 1)
      throw new Error('a budget is of one thing: give --member, --tag or --end-user')
    const workspace = await findWorkspace(pool, account).catch(unknown(`account ${account}`))
    const mode = modeOf(isTest)
    const subject = { ...(member && { member }), ...(tag && { tag }), ...(endUser && { endUser }) }
    const what = await budgetSubject(pool, workspace, mode, subject).catch(
      unknown(`member ${member}: see farebox members list`),
    )
    return { ...(await setBudget({ pool }, by, { workspaceId: workspace.id, mode, budget, ...what })), mode }
  },
  lines: (made) => [`Budget ${made.id}: ${nameOf(made)} may spend ${budgetLine(made)} of ${made.mode} money.`],
})

function nameOf(budget: AccountBudget): string {
  if (!isOfEvery(budget)) return ceilingName({ kind: budget.kind, subject: budget.label })
  return budget.kind === 'end_user' ? 'each end user' : `each value of tag ${budget.subject.slice(0, -2)}`
}

const list = action({
  name: 'budgets list',
  summary: 'list the budgets of a customer, those of keys among them, with what is left',
  effect: 'reads',
  positional: ['account'],
  input: z.object({ account: accountField(), test }),
  async run({ pool }, { account, test: isTest }) {
    const { id: workspaceId } = await findWorkspace(pool, account).catch(unknown(`account ${account}`))
    const mode = modeOf(isTest)
    const budgets = (await listBudgets(pool, workspaceId, mode)).map((one) => viewOf(one.id, one.id, nameOf(one), one))
    const keys = (await listKeys(pool, workspaceId)).filter((key) => key.mode === mode && key.revokedAt === null)
    const ofKeys = keys.flatMap(({ id, allowanceId, name, budget }) =>
      allowanceId === null || budget === null ? [] : [viewOf(id, allowanceId, `key ${name}`, budget)],
    )
    const all = [...budgets, ...ofKeys]
    const states = await readBudgets(
      pool,
      all.map(({ allowanceId }) => allowanceId),
    )
    return all.map(({ allowanceId, ...one }) => {
      const state = states.get(allowanceId)
      return { ...one, left: state === undefined ? null : leftOf(state) }
    })
  },
  lines: (all) =>
    all.length === 0
      ? ['There are no budgets.']
      : all.map(
          ({ left, id, name, ...budget }) =>
            `${id}  ${name}  ${budgetLine(budget)}${left === null ? '' : `  ${formatUsd(left)} left`}`,
        ),
})

function viewOf(id: string, allowanceId: string, name: string, { amount, period }: Budget) {
  return { id, allowanceId, name, amount, period }
}

const change = action({
  name: 'budgets change',
  summary: 'change the amount of a budget; a lower amount applies at once',
  effect: 'writes',
  positional: ['budget', 'amount'],
  input: z.object({
    budget: idField('budget', 'id of the budget'),
    amount: field('usd', 'new amount in USD', usd),
  }),
  run: ({ pool, by }, { budget, amount }) =>
    changeBudget({ pool }, by, budget, amount).catch(unknown(`budget ${budget}`)),
  lines: (changed) => [`Budget ${changed.id}: ${nameOf(changed)} may spend ${budgetLine(changed)}.`],
})

const remove = action({
  name: 'budgets remove',
  summary: 'remove a budget',
  effect: 'writes',
  positional: ['budget'],
  input: z.object({ budget: idField('budget', 'id of the budget') }),
  run: ({ pool, by }, { budget }) => removeBudget({ pool }, by, budget).catch(unknown(`budget ${budget}`)),
  lines: (removed) => [`The budget of ${nameOf(removed)}, ${budgetLine(removed)}, is removed.`],
})

export const budgets = [set, list, change, remove]

import { z } from 'zod'
import { amountForm, budgetForm, budgetOf, idForm, orFault } from '../../api/forms.ts'
import { money, moneyBody } from '../../api/money.ts'
import { PAGE, pageAmong, pageOf } from '../../api/pages.ts'
import { type AccountBudget, BUDGET_KINDS, isOfEvery } from '../../budgets/account-budgets.ts'
import {
  changeBudget,
  findBudget,
  listBudgets,
  lockBudgets,
  removeBudget,
  setBudget,
} from '../../budgets/set-budgets.ts'
import { Fault, invalidRequest } from '../../kernel/fault.ts'
import { UUID } from '../../kernel/ids.ts'
import { ZERO } from '../../kernel/money.ts'
import { PERIODS } from '../../kernel/period.ts'
import { leftOf, readBudgets } from '../../ledger/balance.ts'
import { budgetSubject } from '../../people/budget-subjects.ts'
import type { Place } from '../../people/membership.ts'
import { resetOf } from '../../wording/money-words.ts'
import { type Member, requireOwnMode } from '../authenticate.ts'
import { type AccountRoute, type Given, inWorkspace } from '../route.ts'

const budget = z.strictObject({
  id: z.string(),
  mode: z.enum(['live', 'test']),
  kind: z.enum(BUDGET_KINDS),
  subject: z
    .string()
    .nullable()
    .meta({ description: 'Of which member, tag or end user; null for the whole workspace.' }),
  is_for_each: z.boolean().meta({ description: 'Whether each value or end user has the amount for itself.' }),
  period: z.enum(PERIODS),
  amount: moneyBody,
  set_by: z
    .enum(['operator', 'member'])
    .meta({ description: 'Only the operator can change or remove one that the operator has set.' }),
})
const state = z
  .strictObject({ spent: moneyBody, held: moneyBody, left: moneyBody, resets_at: z.iso.datetime().nullable() })
  .nullable()
  .meta({ description: 'In the period that is running; spent has what is held. Null where each has its own.' })
const listed = budget.extend({ state })

export function toldBudget(one: AccountBudget, mode: 'live' | 'test'): z.output<typeof budget> {
  const { id, kind, label, period, amount } = one
  const subject = kind === 'workspace' ? null : label
  const setBy = one.isOperators === true ? 'operator' : 'member'
  return { id, mode, kind, subject, is_for_each: isOfEvery(one), period, amount: money(amount), set_by: setBy }
}

type AboutBudget = Pick<Given, 'on' | 'params'> & { readonly place: Place; readonly member: Member }

/** One of the workspace; that of another is as absent as one that never was. */
async function budgetIn({ on, params, place, member }: AboutBudget, isLocked = false) {
  const id = params.budget_id ?? ''
  if (!UUID.test(id)) throw new Fault('resource_not_found')
  const find = () =>
    findBudget(on, id, place.id).catch((error: unknown) => {
      throw error instanceof Fault ? new Fault('resource_not_found') : error
    })
  const found = await find()
  requireOwnMode(member, found.mode)
  if (!isLocked) return found
  await lockBudgets(on, place.id, found.mode)
  return find()
}

const ONE = '/workspaces/{workspace_id}/budgets/{budget_id}'

export const BUDGET_ROUTES: readonly AccountRoute[] = [
  inWorkspace({
    operationId: 'list_budgets',
    method: 'GET',
    path: '/workspaces/{workspace_id}/budgets',
    need: 'billing.read',
    tokens: 'own mode',
    mode: 'named',
    summary: 'Budgets of a workspace, its members, tags and end users, with what is left',
    description: 'Budgets of keys are with the keys.',
    tag: 'budgets',
    query: z.strictObject({
      ...PAGE,
      kind: z.enum(BUDGET_KINDS).optional().meta({ description: 'Only those of this kind.' }),
    }),
    answer: { description: 'A page of budgets.', body: pageOf(listed) },
    async run({ pool, time }, { place, mode, query }) {
      const all = await listBudgets(pool, place.id, mode)
      const some = all.filter(({ kind }) => query.kind === undefined || kind === query.kind)
      const page = pageAmong(some, query, (one) => one)
      const states = await readBudgets(
        pool,
        page.data.map(({ id }) => id),
      )
      const stateOf = (one: AccountBudget) => {
        if (isOfEvery(one)) return null
        const { amount, spent, held } = states.get(one.id) ?? { amount: one.amount, spent: ZERO, held: ZERO }
        const left = leftOf({ amount, spent })
        return {
          spent: money(spent),
          held: money(held),
          left: money(left),
          resets_at: resetOf(one.period, time.nowMs()),
        }
      }
      const data = page.data.map((one) => ({ ...toldBudget(one, mode), state: stateOf(one) }))
      return { body: { data, next_cursor: page.next_cursor } }
    },
  }),
  inWorkspace({
    operationId: 'set_budget',
    method: 'POST',
    path: '/workspaces/{workspace_id}/budgets',
    need: 'workspace.manage',
    tokens: 'own mode',
    mode: 'named',
    summary: 'Set a budget, or change the one of the same subject and period',
    description:
      'Of the whole workspace where neither member_id, tag nor end_user is named. A lower amount holds from the answer on.',
    tag: 'budgets',
    body: budgetForm.extend({
      member_id: idForm.optional().meta({ description: 'Of a member: their keys and grants.' }),
      tag: z
        .string()
        .min(1)
        .max(100)
        .optional()
        .meta({ description: 'Of calls with a tag: name=value, or name=* for each value by itself.' }),
      end_user: z
        .string()
        .min(1)
        .max(512)
        .optional()
        .meta({ description: 'Of an end user as callers name it, or * for each by itself.' }),
    }),
    answer: { status: 201, description: 'The budget.', body: budget, hasEtag: true },
    codes: ['quota_exceeded', 'resource_not_found'],
    async run(_, { member, place, mode, body, on }) {
      const { member_id: memberId, tag, end_user: endUser } = body
      if ([memberId, tag, endUser].filter((one) => one !== undefined).length > 1)
        throw invalidRequest('A budget is of one thing: name member_id, tag or end_user.')
      const what = await budgetSubject(on, place, mode, { member: memberId, tag, endUser }).catch((error: unknown) =>
        orFault('tag', () => fail(error)),
      )
      const made = await setBudget({ pool: on }, member.by, {
        workspaceId: place.id,
        mode,
        budget: budgetOf(body),
        ...what,
      })
      return { body: toldBudget(made, mode) }
    },
  }),
  inWorkspace({
    operationId: 'get_budget',
    method: 'GET',
    path: ONE,
    need: 'billing.read',
    tokens: 'own mode',
    mode: 'its own',
    summary: 'A budget',
    tag: 'budgets',
    answer: { description: 'The budget.', body: budget, hasEtag: true },
    async run(_, asked) {
      const found = await budgetIn(asked)
      return { body: toldBudget(found.budget, found.mode) }
    },
  }),
  inWorkspace({
    operationId: 'update_budget',
    method: 'PATCH',
    path: ONE,
    need: 'workspace.manage',
    tokens: 'own mode',
    mode: 'its own',
    summary: 'Change the amount of a budget; a lower one holds from the answer on',
    tag: 'budgets',
    body: z.strictObject({ amount_usd: amountForm }),
    answer: { description: 'The budget.', body: budget, hasEtag: true },
    codes: ['quota_exceeded'],
    async run(_, asked) {
      const { budget: found, mode } = await budgetIn(asked, true)
      asked.requireMatch(toldBudget(found, mode))
      const changed = await changeBudget({ pool: asked.on }, asked.member.by, found.id, asked.body.amount_usd)
      return { body: toldBudget(changed, mode) }
    },
  }),
  inWorkspace({
    operationId: 'remove_budget',
    method: 'DELETE',
    path: ONE,
    need: 'workspace.manage',
    tokens: 'own mode',
    mode: 'its own',
    whileClosing: true,
    summary: 'Remove a budget',
    tag: 'budgets',
    answer: { description: 'The budget as it was.', body: budget },
    async run(_, asked) {
      const { budget: found, mode } = await budgetIn(asked)
      return { body: toldBudget(await removeBudget({ pool: asked.on }, asked.member.by, found.id), mode) }
    },
  }),
]

function fail(error: unknown): never {
  throw error
}

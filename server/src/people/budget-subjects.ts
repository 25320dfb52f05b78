import { EVERY, everyOf } from '../budgets/account-budgets.ts'
import { endUserOf } from '../budgets/end-users.ts'
import { memberSubjects } from '../budgets/member-subjects.ts'
import { listBudgets, type NewBudget } from '../budgets/set-budgets.ts'
import { everyValueIn, tagIn, tagText } from '../budgets/tags.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import { endUserNamed } from '../protocols/end-user.ts'
import type { Transactions } from '../storage/transaction.ts'
import type { Workspace } from '../workspaces/workspaces.ts'
import { membersOf } from './members.ts'

/** Of what a budget is to be, as people say it: one of them, or of all of the account. */
export type BudgetOf = {
  /** By id or by address. */
  readonly member?: string | undefined
  /** `name=value`, or `name=*` for each value by itself. */
  readonly tag?: string | undefined
  /** As callers name it, or `*` for each by itself. */
  readonly endUser?: string | undefined
}

type Subject = Pick<NewBudget, 'kind' | 'subject' | 'label'>

/** What a budget is set for. Throws where it is a tag that there can't be, or a member whom there is not. */
export async function budgetSubject(
  on: Transactions,
  workspace: Workspace,
  mode: Mode,
  { member, tag, endUser }: BudgetOf,
): Promise<Subject> {
  if (member !== undefined) return memberNamed(on, workspace.id, mode, member)
  if (tag !== undefined) return tagNamed(tag)
  if (endUser === undefined) return { kind: 'workspace', subject: '', label: '' }
  if (endUser === EVERY) return { kind: 'end_user', subject: EVERY, label: EVERY }
  const accountId = mode === 'live' ? workspace.liveAccountId : workspace.testAccountId
  const { id, label } = endUserOf(accountId, endUserNamed(endUser))
  return { kind: 'end_user', subject: id, label }
}

async function memberNamed(on: Transactions, workspaceId: Id, mode: Mode, name: string): Promise<Subject> {
  const found = (await membersOf(on, workspaceId)).find(({ id, email }) => [id, email].includes(name.toLowerCase()))
  if (found === undefined) throw new Fault('resource_not_found', { detail: 'The workspace has no such member.' })
  const subjects = memberSubjects(workspaceId, found)
  // One that was set when nobody had signed up yet goes on by the address.
  const before = (await listBudgets(on, workspaceId, mode)).map(({ subject }) => subject)
  const subject = subjects.find((one) => before.includes(one)) ?? subjects[0] ?? ''
  return { kind: 'member', subject, label: found.name ?? found.id }
}

function tagNamed(text: string): Subject {
  const every = everyValueIn(text)
  const subject = every === undefined ? tagText(tagIn(text)) : everyOf(every)
  return { kind: 'tag', subject, label: subject }
}

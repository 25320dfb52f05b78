import { z } from 'zod'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import { formatUsd, type Nanos } from '../kernel/money.ts'
import { type By, difference, isOperator, record } from '../storage/audit.ts'
import { inTransaction, type Query, queryOn, type Transactions } from '../storage/transaction.ts'
import { lockOpenWorkspace } from '../workspaces/closures.ts'
import {
  type AccountBudget,
  allowanceIdOf,
  type BudgetKind,
  budgetRow,
  CEILINGS_LIMIT,
  ceilingsMost,
  EVERY,
  everyOf,
  isOfEvery,
} from './account-budgets.ts'
import type { Budget } from './budgets.ts'
import { beginNoticesAnew } from './notices.ts'

/** How budgets of workspaces, members, tags and end users are set, changed and removed: under the lock under which calls begin. */

type Parts = { readonly pool: Transactions }

export type NewBudget = {
  readonly workspaceId: Id
  readonly mode: Mode
  readonly kind: BudgetKind
  readonly subject: string
  readonly label: string
  readonly budget: Budget
}

/** Of one account, whatever they are of. */
const BUDGETS_MOST = 1_000

const COLUMNS = 'id, account_id, kind, subject, label, period, amount, is_operators'

/**
 * Sets a budget, or changes the amount of the one that there is for the same subject and period. What was counted in the period stays counted.
 * A lower amount holds from the commit on; a new budget counts what begins once a process knows of it, which is within a second.
 */
export function setBudget({ pool }: Parts, by: By, given: NewBudget): Promise<AccountBudget> {
  const { workspaceId, mode, kind, subject, label, budget } = given
  return inTransaction(pool, async (query) => {
    const accountId = await lockOpenAccount(query, workspaceId, mode)
    const all = await budgetsOfAccount(query, accountId)
    const id = allowanceIdOf(accountId, kind, subject, budget.period)
    const before = all.find((one) => one.id === id)
    requireMayChange(by, before)
    const isOperators = isOperator(by)
    const after: AccountBudget = { id, accountId, kind, subject, label, ...budget, isOperators }
    requireWithin(by, after, all)
    requireFew([...all.filter((one) => one !== before), after])
    await query(
      `insert into budgets (${COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8)
       on conflict (id) do update set amount = excluded.amount, label = excluded.label, is_operators = excluded.is_operators, set_at = clock_timestamp()`,
      [id, accountId, kind, subject, label, budget.period, budget.amount, isOperators],
    )
    if (!isOfEvery(after)) await own(query, after)
    else if (isOperators) await lowerToEverybodys(query, by, after, all)
    // People are told anew of what they have raised.
    if (before === undefined || before.amount < budget.amount) await beginNoticesAnew(query, id)
    const facts = difference(before === undefined ? null : factsOf(before), factsOf(after))
    await record(query, by, { action: 'budget.set', of: accountId, subject: id, ...facts })
    await tell(query, workspaceId)
    return after
  })
}

/** Changes the amount of one. */
export async function changeBudget({ pool }: Parts, by: By, id: Id, amount: Nanos): Promise<AccountBudget> {
  const { budget, workspaceId, mode } = await findBudget(pool, id)
  const { kind, subject, label, period } = budget
  return setBudget({ pool }, by, { workspaceId, mode, kind, subject, label, budget: { period, amount } })
}

/** Whoever it was of has everybody's from then on, where there is one for the same period. */
export async function removeBudget({ pool }: Parts, by: By, id: Id): Promise<AccountBudget> {
  const { workspaceId, mode } = await findBudget(pool, id)
  return inTransaction(pool, async (query) => {
    const accountId = await lockOpenAccount(query, workspaceId, mode)
    const all = await budgetsOfAccount(query, accountId)
    const removed = all.find((one) => one.id === id)
    if (removed === undefined) throw noSuchBudget(id)
    requireMayChange(by, removed)
    await query('delete from budgets where id = $1', [id])
    const everybodys = everybodysOf(removed)
    if (!isOfEvery(removed)) await query('update allowances set follows = $2 where id = $1', [id, everybodys])
    await beginNoticesAnew(query, id)
    await record(query, by, {
      action: 'budget.removed',
      of: accountId,
      subject: id,
      before: factsOf(removed),
      after: null,
    })
    await tell(query, workspaceId)
    return removed
  })
}

function requireMayChange(by: By, before: AccountBudget | undefined): void {
  if (before?.isOperators === true && !isOperator(by))
    throw new Fault('forbidden', {
      detail:
        'The operator has set this budget: only they can change or remove it. You can set one for another period.',
    })
}

/** One of its own takes the place of everybody's: a member's may not lift what the operator has set for everybody. */
function requireWithin(by: By, own: AccountBudget, all: readonly AccountBudget[]): void {
  const everybodys = all.find(({ id }) => id === everybodysOf(own))
  if (everybodys?.isOperators === true && !isOperator(by) && own.amount > everybodys.amount)
    throw new Fault('forbidden', {
      detail: `The operator has set ${formatUsd(everybodys.amount)} USD for everybody in this period: set no more than that.`,
    })
}

/** Those that members had set before are lowered to it: one of its own would go on lifting it. */
async function lowerToEverybodys(
  query: Query,
  by: By,
  everybodys: AccountBudget,
  all: readonly AccountBudget[],
): Promise<void> {
  const larger = all.filter(
    (one) =>
      !isOfEvery(one) &&
      one.isOperators !== true &&
      everybodysOf(one) === everybodys.id &&
      one.amount > everybodys.amount,
  )
  for (const before of larger) {
    const after = { ...before, amount: everybodys.amount }
    await query('update budgets set amount = $2, set_at = clock_timestamp() where id = $1', [after.id, after.amount])
    await own(query, after)
    const facts = difference(factsOf(before), factsOf(after))
    await record(query, by, { action: 'budget.set', of: after.accountId, subject: after.id, ...facts })
  }
}

/** The allowance of a budget with one subject. It may have been made before, because everybody has one. */
async function own(query: Query, { id, accountId, period, amount }: AccountBudget): Promise<void> {
  await query(
    `insert into allowances (id, account_id, period, amount, follows) values ($1, $2, $3, $4, $1)
     on conflict (id) do update set follows = excluded.follows, amount = excluded.amount`,
    [id, accountId, period, amount],
  )
}

/** Everybody's, by its id, whether there is one or not: if one is set later, it has this id, and its followers with it. */
function everybodysOf({ accountId, kind, subject, period }: AccountBudget): Id | null {
  if (kind === 'end_user') return allowanceIdOf(accountId, kind, EVERY, period)
  return kind === 'tag' ? allowanceIdOf(accountId, kind, everyOf(subject.slice(0, subject.indexOf('='))), period) : null
}

function requireFew(budgets: readonly AccountBudget[]): void {
  if (budgets.length > BUDGETS_MOST)
    throw new Fault('quota_exceeded', {
      detail: `The account has ${budgets.length - 1} budgets; the limit is ${BUDGETS_MOST}. Remove one first.`,
    })
  const most = ceilingsMost(budgets)
  if (most > CEILINGS_LIMIT)
    throw new Fault('quota_exceeded', {
      detail: `With this budget a call could count against ${most} budgets at once; the limit is ${CEILINGS_LIMIT}. Remove another one, or set fewer periods.`,
    })
}

const accountRow = z.object({ id: z.string() })

/** Nobody else sets, changes or removes one in that mode until the transaction has ended. */
export async function lockBudgets(on: Transactions, workspaceId: Id, mode: Mode): Promise<void> {
  await lockAccount(queryOn(on), workspaceId, mode)
}

/** The workspace first, as everybody locks them, so that it is not closed meanwhile: the name of a member or an end user would stay in it. */
async function lockOpenAccount(query: Query, workspaceId: Id, mode: Mode): Promise<Id> {
  await lockOpenWorkspace(query, workspaceId)
  return lockAccount(query, workspaceId, mode)
}

/** The account of a workspace, locked: everything that a call touches is changed under that lock. */
async function lockAccount(query: Query, workspaceId: Id, mode: Mode): Promise<Id> {
  const { rows } = await query(
    `select id from accounts where id = (
       select case $2 when 'live' then live_account_id else test_account_id end from workspaces where id = $1) for no key update`,
    [workspaceId, mode],
  )
  if (rows[0] === undefined) throw new Fault('resource_not_found', { detail: `There is no workspace ${workspaceId}.` })
  return accountRow.parse(rows[0]).id
}

async function budgetsOfAccount(query: Query, accountId: Id): Promise<readonly AccountBudget[]> {
  const { rows } = await query(`select ${COLUMNS} from budgets where account_id = $1`, [accountId])
  return z.array(budgetRow).parse(rows)
}

/** Of a workspace in one mode, those of all of it first. */
export async function listBudgets(on: Transactions, workspaceId: Id, mode: Mode): Promise<readonly AccountBudget[]> {
  const { rows } = await queryOn(on)(
    `select ${COLUMNS} from budgets where account_id = (
       select case $2 when 'live' then live_account_id else test_account_id end from workspaces where id = $1)
     order by array_position(array['workspace', 'member', 'tag', 'end_user'], kind), label, period`,
    [workspaceId, mode],
  )
  return z.array(budgetRow).parse(rows)
}

const ownerRow = z.object({ workspace_id: z.string(), mode: z.enum(['live', 'test']) })

/** With whose it is. */
/** One; of the workspace, where that is named: that of another is as absent as one that never was. */
export async function findBudget(on: Transactions, id: Id, of: Id | null = null) {
  const { rows } = await queryOn(on)(
    `select b.${COLUMNS.replaceAll(', ', ', b.')}, w.id as workspace_id, case b.account_id when w.live_account_id then 'live' else 'test' end as mode
     from budgets b join workspaces w on b.account_id in (w.live_account_id, w.test_account_id)
     where b.id = $1 and ($2::uuid is null or w.id = $2)`,
    [id, of],
  )
  if (rows[0] === undefined) throw noSuchBudget(id)
  const { workspace_id: workspaceId, mode } = ownerRow.parse(rows[0])
  return { budget: budgetRow.parse(rows[0]), workspaceId, mode }
}

function noSuchBudget(id: Id): Fault {
  return new Fault('resource_not_found', { detail: `There is no budget ${id}.` })
}

/** For the audit log, which is never emptied: an end user is known there by the id alone. */
function factsOf({ kind, subject, period, amount }: AccountBudget) {
  return { kind, subject, period, usd: formatUsd(amount) }
}

/** Every process forgets what it knows of a workspace, its budgets among it. */
async function tell(query: Query, workspaceId: Id): Promise<void> {
  await query("select record_change(topic => 'workspace', key => $1)", [workspaceId])
}

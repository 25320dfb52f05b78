import type pg from 'pg'
import { z } from 'zod'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, type Nanos, usd, ZERO } from '../kernel/money.ts'
import { type Credit, creditAccountBy, hasPaidDebt } from '../ledger/credit.ts'
import { explainId } from '../ledger/explain.ts'
import { reverseCredit } from '../ledger/reverse-credit.ts'
import type { By } from '../storage/audit.ts'
import { inTransaction, OpenTransaction } from '../storage/transaction.ts'
import { type Closure, requireNotClosed } from '../workspaces/closures.ts'
import { lockWorkspace } from '../workspaces/stops.ts'
import { findWorkspace, type Workspace } from '../workspaces/workspaces.ts'
import { action, field, flag, type OperatorParts } from './action.ts'
import { accountField, choiceOf, futureOf, idField, textOf, unknown } from './fields.ts'

const KINDS = { payment: 'payment', promotion: 'promotion' } as const

const input = z.object({
  account: accountField().optional(),
  amount: field('usd', 'amount in USD', amountOf).optional(),
  kind: field(
    'kind',
    'payment, such as a bank transfer with its --reference, or promotion: spent first, and does not count towards a tier (default: payment)',
    (text) => choiceOf(text, KINDS),
  ).optional(),
  expires: field(
    'time',
    'when a promotion expires, such as 2027-01-31T00:00:00Z (default: never)',
    futureOf,
  ).optional(),
  reference: field(
    'text',
    'by which who paid knows it, such as the number of a transfer: once, and in the statement (default: none)',
    (text) => textOf(text, 200),
  ).optional(),
  note: field('text', 'a note for operators, in the audit log (default: none)', (text) =>
    textOf(text, 2_000),
  ).optional(),
  test: flag('add test money (default: live money)'),
  id: idField('uuid', 'idempotency id: the credit is added once per id (default: a new id)').optional(),
  reverse: idField(
    'entry',
    'reverse this credit, once; the part of a payment that is already spent becomes debt (default: add a credit)',
  ).optional(),
})

type Input = z.output<typeof input>
type Result = Awaited<ReturnType<typeof add>> | Awaited<ReturnType<typeof takeBack>>

const change = action({
  name: 'credit',
  summary:
    'add credit to a customer account, or reverse a mistaken credit; refused for a workspace that is closed, or whose grace period is over unless it owes',
  effect: 'writes',
  positional: ['account', 'amount'],
  input,
  run: (parts, { reverse, ...given }): Promise<Result> =>
    reverse === undefined ? add(parts, given) : takeBack(parts, reverse, given),
  lines: (result) => ('debt' in result ? reversedLines(result) : addedLines(result)),
})

async function add({ pool, ids, by, say }: OperatorParts, given: Omit<Input, 'reverse'>) {
  const { account, amount, kind = 'payment', expires, test, reference, note } = given
  if (account === undefined || amount === undefined)
    throw new Error('name the account and the amount: farebox credit <account> <usd>, or --reverse <entry>')
  if (expires !== undefined && kind === 'payment')
    throw new Error('--expires is only for --kind promotion: paid credit does not expire')
  const entryId: Id = given.id ?? ids.next()
  const workspace = await findWorkspace(pool, account).catch(unknown(`account ${account}`))
  // Told before it is sent: whoever is not sure whether it happened repeats it with this id, and adds nothing twice.
  if (given.id === undefined) say(`To retry safely, add: --id ${entryId}`)
  const expiresAt = expires === undefined ? {} : { expiresAt: expires }
  const { isNew, closure } = await addTo(pool, by, workspace, {
    entryId,
    accountId: test ? workspace.testAccountId : workspace.liveAccountId,
    ...{ amount, reference, note },
    ...(kind === 'promotion' ? { kind, ...expiresAt } : { kind }),
  })
  return {
    ...{ id: entryId, amount, kind, mode: test ? 'test' : 'live', isNew, closure },
    explained: isNew ? [] : await explainId(pool, entryId),
  }
}

function addedLines({ id, amount, kind, mode, isNew, closure, explained }: Awaited<ReturnType<typeof add>>) {
  if (!isNew) return [`Entry ${id} already exists, so nothing was added:`, ...explained]
  const words = [...(mode === 'test' ? ['test'] : []), ...(kind === 'promotion' ? ['promotional'] : []), 'credit']
  return [
    ...(closure === null ? [] : [closingText(closure)]),
    `Added ${formatUsd(amount)} USD of ${words.join(' ')} as entry ${id}.`,
  ]
}

function closingText({ isDue, closesAt }: Closure): string {
  return isDue
    ? 'The grace period is over and the workspace is being closed for good: the credit pays what it owes, and the rest cannot be spent.'
    : `The workspace will be closed at ${closesAt.toISOString()}: until an owner cancels that, nothing of it can be spent.`
}

/**
 * Under the lock of the workspace, which is closed under it too. What is being closed takes money, because it may owe some and because the closure can be
 * canceled; once it can not, only where it owes. What is closed takes none. A credit that is there already is told, whatever became of the workspace since.
 */
function addTo(pool: pg.Pool, by: By, { id }: Workspace, credit: Credit) {
  return inTransaction(pool, async (query) => {
    await lockWorkspace(query, id)
    const isNew = await creditAccountBy(new OpenTransaction(query), by, credit)
    if (!isNew) return { isNew, closure: null }
    const closure = await requireNotClosed(query, id).catch((error: unknown) => {
      if (!(error instanceof Fault)) throw error
      throw new Error('this workspace is closed for good, so no credit can be added. Return the money to who paid it.')
    })
    if (closure?.isDue === true && !(await hasPaidDebt(query, credit.entryId)))
      throw new Error(
        `the grace period of this workspace ended at ${closure.closesAt.toISOString()}: it cannot be canceled any more and the account owes nothing, so no credit can be added. Return the money to who paid it.`,
      )
    return { isNew, closure }
  })
}

async function takeBack({ pool, by }: OperatorParts, id: Id, others: Omit<Input, 'reverse'>) {
  if (Object.values(others).some((other) => other !== undefined && other !== false))
    throw new Error('--reverse reverses a whole credit by its id: give no other argument and no other option')
  const reversed = await reverseCredit(pool, id, by)
  if (reversed === undefined) throw new Error(`there is no credit ${id}: see farebox ledger explain <account>`)
  return { id, ...reversed }
}

function reversedLines({ id, kind, accountId, amount, debt, isNew }: Awaited<ReturnType<typeof takeBack>>) {
  if (!isNew) return [`The ${kind} ${id} is already reversed, so nothing was changed.`]
  return [
    `Reversed the ${kind} ${id}: ${formatUsd(amount)} USD taken from account ${accountId}.`,
    ...(kind === 'promotion' ? ['The part that is already spent stays spent.'] : []),
    ...(debt > ZERO
      ? [
          `${formatUsd(debt)} USD of it is already spent or held. The account owes this amount, and is suspended until it is paid.`,
        ]
      : []),
  ]
}

function amountOf(text: string): Nanos {
  const amount = usd(text)
  if (amount <= ZERO) throw new Error('a credit must be more than 0 USD')
  return amount
}

export const credit = [change]

import type { Command } from 'commander'
import type pg from 'pg'
import type { Config } from '../config.ts'
import { type Closure, lockWorkspace, requireNotClosed } from '../identity/closures.ts'
import { findWorkspace, type Workspace } from '../identity/workspaces.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, type Nanos, usd, ZERO } from '../kernel/money.ts'
import { type Credit, creditAccountBy, hasPaidDebt } from '../ledger/credit.ts'
import { explainId } from '../ledger/explain.ts'
import { reverseCredit } from '../ledger/reverse-credit.ts'
import { inTransaction, OpenTransaction } from '../storage/transaction.ts'
import { accountIdOf, futureOf, idOf, ids, operator, print, running, unknown, withPools, writing } from './command.ts'

export function addCreditCommand(program: Command): void {
  writing(program, 'credit [account] [usd]')
    .description(
      'add credit to a customer account, or reverse a mistaken credit; refused for a workspace that is closed, or whose grace period is over unless it owes',
    )
    .option('--promotion', 'promotional credit: spent first, and does not count towards a tier (default: a payment)')
    .option('--expires <time>', 'when promotional credit expires, such as 2027-01-31T00:00:00Z (default: never)')
    .option('--test', 'add test money (default: live money)')
    .option('--id <uuid>', 'idempotency id: the credit is added once per id (default: a new id)')
    .option(
      '--reverse <entry>',
      'reverse this credit, once; the part of a payment that is already spent becomes debt (default: add a credit)',
    )
    .action((account: string | undefined, amount: string | undefined, options: CreditOptions) =>
      running((config) =>
        options.reverse === undefined
          ? credit(config, account, amount, options)
          : takeBack(config, options.reverse, [account, amount, ...Object.values({ ...options, reverse: undefined })]),
      ),
    )
}

type CreditOptions = {
  readonly promotion?: true
  readonly expires?: string
  readonly test?: true
  readonly id?: string
  readonly reverse?: string
}

async function credit(
  config: Config,
  account: string | undefined,
  text: string | undefined,
  options: CreditOptions,
): Promise<void> {
  if (account === undefined || text === undefined)
    throw new Error('name the account and the amount: farebox credit <account> <usd>, or --reverse <entry>')
  const amount = moreThanNothing(text)
  const entryId: Id = options.id === undefined ? ids.next() : idOf(options.id)
  if (options.expires !== undefined && options.promotion === undefined)
    throw new Error('--expires is only for --promotion: paid credit does not expire')
  const expiresAt = options.expires === undefined ? {} : { expiresAt: futureOf(options.expires) }
  await withPools(config, async ({ rest: pool }) => {
    const workspace = await findWorkspace(pool, accountIdOf(account)).catch(unknown(`account ${account}`))
    // Told before it is sent: whoever is not sure whether it happened repeats it with this id, and adds nothing twice.
    if (options.id === undefined) print(`To retry safely, add: --id ${entryId}`)
    const { isNew, closure } = await addTo(pool, workspace, {
      entryId,
      accountId: options.test === true ? workspace.testAccountId : workspace.liveAccountId,
      amount,
      ...(options.promotion === true ? { kind: 'promotion', ...expiresAt } : { kind: 'payment' }),
    })
    const kind = [
      ...(options.test === true ? ['test'] : []),
      ...(options.promotion === true ? ['promotional'] : []),
      'credit',
    ]
    if (isNew) {
      if (closure !== null) print(closingText(closure))
      return print(`Added ${formatUsd(amount)} USD of ${kind.join(' ')} as entry ${entryId}.`)
    }
    print(`Entry ${entryId} already exists, so nothing was added:`)
    for (const line of await explainId(pool, entryId)) print(line)
  })
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
function addTo(pool: pg.Pool, { id }: Workspace, credit: Credit) {
  return inTransaction(pool, async (query) => {
    await lockWorkspace(query, id)
    const isNew = await creditAccountBy(new OpenTransaction(query), operator(), credit)
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

async function takeBack(config: Config, text: string, others: readonly unknown[]): Promise<void> {
  if (others.some((other) => other !== undefined))
    throw new Error('--reverse reverses a whole credit by its id: give no other argument and no other option')
  const id = idOf(text)
  await withPools(config, async ({ rest: pool }) => {
    const reversed = await reverseCredit(pool, id, operator())
    if (reversed === undefined) throw new Error(`there is no credit ${id}: see farebox ledger explain <account>`)
    const { kind, accountId, amount, debt, isNew } = reversed
    if (!isNew) return print(`The ${kind} ${id} is already reversed, so nothing was changed.`)
    print(`Reversed the ${kind} ${id}: ${formatUsd(amount)} USD taken from account ${accountId}.`)
    if (kind === 'promotion') print('The part that is already spent stays spent.')
    if (debt > ZERO)
      print(
        `${formatUsd(debt)} USD of it is already spent or held. The account owes this amount, and is suspended until it is paid.`,
      )
  })
}

function moreThanNothing(text: string): Nanos {
  const amount = usd(text)
  if (amount <= ZERO) throw new Error('a credit must be more than 0 USD')
  return amount
}

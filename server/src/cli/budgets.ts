import type { Command } from 'commander'
import type { Config } from '../config.ts'
import { ceilingName } from '../gateway/money-words.ts'
import { type AccountBudget, isOfEvery } from '../identity/account-budgets.ts'
import { budgetSubject } from '../identity/budget-subjects.ts'
import { listKeys } from '../identity/listed-keys.ts'
import { changeBudget, listBudgets, removeBudget, setBudget } from '../identity/set-budgets.ts'
import { findWorkspace } from '../identity/workspaces.ts'
import type { Mode } from '../kernel/mode.ts'
import { formatUsd, usd } from '../kernel/money.ts'
import { leftOf, readBudgets } from '../ledger/balance.ts'
import { budgetLine, budgetOf } from './budget-text.ts'
import { accountIdOf, idOf, operator, plain, print, reading, running, unknown, withPools, writing } from './command.ts'

export function addBudgetCommands(program: Command): void {
  const budgets = program
    .command('budgets')
    .description('manage spending limits of a customer: of the account, a member, a tag or an end user')
  writing(budgets, 'set <account> <usd/period>')
    .description(
      'set a budget, such as 100/month, 20/week, 5/day or 50/total, or change its amount; of the whole account unless an option says of what',
    )
    .option(
      '--member <member>',
      'budget of a member, by id or e-mail address: keys assigned to it and its grants (default: any)',
    )
    .option('--tag <name=value>', 'budget of calls with a tag, or name=* for each value by itself (default: any)')
    .option(
      '--end-user <name>',
      'budget of an end user, as callers name it, or * for each end user by itself (default: any)',
    )
    .option('--test', 'of test money (default: of live money)')
    .action((account: string, text: string, options: SetOptions) =>
      running((config) => set(config, account, text, options)),
    )
  reading(budgets, 'list <account>')
    .description('list the budgets of a customer, those of keys among them, with what is left')
    .option('--test', 'of test money (default: of live money)')
    .action((account: string, options: ModeOption) => running((config) => list(config, account, options)))
  writing(budgets, 'change <budget> <usd>')
    .description('change the amount of a budget; a lower amount applies at once')
    .action((budget: string, amount: string) => running((config) => change(config, budget, amount)))
  writing(budgets, 'remove <budget>')
    .description('remove a budget')
    .action((budget: string) => running((config) => remove(config, budget)))
}

type ModeOption = { readonly test?: true }
type SetOptions = ModeOption & { readonly member?: string; readonly tag?: string; readonly endUser?: string }

const modeOf = ({ test }: ModeOption): Mode => (test === true ? 'test' : 'live')

async function set(config: Config, account: string, text: string, options: SetOptions): Promise<void> {
  const budget = budgetOf(text)
  const { member, tag, endUser } = options
  if ([member, tag, endUser].filter((one) => one !== undefined).length > 1)
    throw new Error('a budget is of one thing: give --member, --tag or --end-user')
  await withPools(config, async ({ rest: pool }) => {
    const workspace = await findWorkspace(pool, accountIdOf(account)).catch(unknown(`account ${account}`))
    const mode = modeOf(options)
    const what = await budgetSubject(pool, workspace, mode, options).catch(
      unknown(`member ${member}: see farebox members list`),
    )
    const made = await setBudget({ pool }, operator(), { workspaceId: workspace.id, mode, budget, ...what })
    print(plain(`Budget ${made.id}: ${nameOf(made)} may spend ${budgetLine(made)} of ${mode} money.`))
  })
}

function nameOf(budget: AccountBudget): string {
  if (!isOfEvery(budget)) return ceilingName({ kind: budget.kind, subject: budget.label })
  return budget.kind === 'end_user' ? 'each end user' : `each value of tag ${budget.subject.slice(0, -2)}`
}

async function list(config: Config, account: string, options: ModeOption): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const { id } = await findWorkspace(pool, accountIdOf(account)).catch(unknown(`account ${account}`))
    const mode = modeOf(options)
    const budgets = await listBudgets(pool, id, mode)
    const keys = (await listKeys(pool, id)).filter((key) => key.mode === mode && key.revokedAt === null)
    const shown = [
      ...budgets.map((one) => ({ id: one.id, allowanceId: one.id, name: nameOf(one), budget: one })),
      ...keys.flatMap(({ id: keyId, allowanceId, name, budget }) =>
        allowanceId === null || budget === null ? [] : [{ id: keyId, allowanceId, name: `key ${name}`, budget }],
      ),
    ]
    if (shown.length === 0) return print('There are no budgets.')
    const states = await readBudgets(
      pool,
      shown.map(({ allowanceId }) => allowanceId),
    )
    for (const { id: own, allowanceId, name, budget } of shown) {
      const state = states.get(allowanceId)
      const left = state === undefined ? '' : `  ${formatUsd(leftOf(state))} left`
      print(plain(`${own}  ${name}  ${budgetLine(budget)}${left}`))
    }
  })
}

async function change(config: Config, budget: string, amount: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const changed = await changeBudget({ pool }, operator(), idOf(budget), usd(amount)).catch(
      unknown(`budget ${budget}`),
    )
    print(plain(`Budget ${changed.id}: ${nameOf(changed)} may spend ${budgetLine(changed)}.`))
  })
}

async function remove(config: Config, budget: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const removed = await removeBudget({ pool }, operator(), idOf(budget)).catch(unknown(`budget ${budget}`))
    print(plain(`The budget of ${nameOf(removed)}, ${budgetLine(removed)}, is removed.`))
  })
}

import type { Command } from 'commander'
import type pg from 'pg'
import type { Config } from '../config.ts'
import { cancelClosure } from '../identity/closures.ts'
import { listKeys } from '../identity/listed-keys.ts'
import {
  createWorkspace,
  findWorkspace,
  grantTier,
  type ListedWorkspace,
  listCustomerPlans,
  listWorkspaces,
  saveCustomerPlan,
  setCustomerPlan,
  showWorkspace,
  type TierGrant,
} from '../identity/workspaces.ts'
import { systemClock } from '../kernel/clock.ts'
import { formatUsd, nanos, ZERO } from '../kernel/money.ts'
import { decimal, decimalText, type Rational } from '../kernel/rational.ts'
import { readBalance } from '../ledger/balance.ts'
import { giveTestCredit } from '../ledger/test-credit.ts'
import { listAccountPrices } from '../pricing/prices.ts'
import { createSendMail } from '../storage/mail.ts'
import { inTransaction, OpenTransaction } from '../storage/transaction.ts'
import {
  accountIdOf,
  idOf,
  ids,
  nameOf,
  operator,
  plain,
  print,
  reading,
  running,
  TOKENS_LIMIT,
  unknown,
  wholeNumber,
  withPools,
  writing,
} from './command.ts'
import { keyLines } from './key-spend.ts'
import { limitsLine } from './limits-line.ts'
import { sealFor } from './seal-for.ts'

export function addAccountCommands(program: Command): void {
  const accounts = program.command('accounts').description('manage customer accounts')
  writing(accounts, 'create')
    .description('create a customer account: a workspace with separate live and test money')
    .requiredOption('--name <name>', 'name of the account')
    .option('--email <address>', 'e-mail address of its owner (default: no owner)')
    .action((options: { name: string; email?: string }) => running((config) => create(config, options)))
  reading(accounts, 'list')
    .description('list customer accounts with their balances, newest first')
    .option('--name <part>', 'only accounts whose name contains this (default: all)')
    .option('--after <id>', 'only accounts after this one, for the next page (default: from the newest)')
    .action((options: ListOptions) => running((config) => list(config, options)))
  reading(accounts, 'show <account>')
    .description('show a customer account: balance, tier, plan, own prices and keys')
    .action((account: string) => running((config) => show(config, account)))
  writing(accounts, 'tier <account>')
    .description('raise the limits of a customer above those earned by payments: each limit is the better of both')
    .argument('<tier>', 'growth, enterprise, or earned to return to the earned tier')
    .option('--rpm <requests>', 'requests per minute, required for enterprise')
    .option('--tpm <tokens>', 'tokens per minute, required for enterprise')
    .option('--concurrency <calls>', 'concurrent calls, required for enterprise')
    .action((account: string, tier: string, options: TierOptions) =>
      running((config) => setTier(config, account, tier, options)),
    )
  writing(accounts, 'plan <account> <plan>')
    .description("assign a plan to a customer: it multiplies the prices of the reseller's operations")
    .action((account: string, plan: string) => running((config) => setPlan(config, account, plan)))
  writing(accounts, 'cancel-closure <account>')
    .description('cancel the closure that an owner has asked for, within its grace period; calls are accepted again')
    .action((account: string) => running((config) => cancel(config, account)))

  const plans = program.command('plans').description('manage customer plans')
  reading(plans, 'list')
    .description('list plans with their price multiplier and number of customers')
    .action(() => running(listPlans))
  writing(plans, 'set <plan> <times>')
    .description("create or change a plan: the multiplier of the reseller's prices, such as 0.8x")
    .action((plan: string, times: string) => running((config) => savePlan(config, plan, times)))
}

async function create(config: Config, options: { name: string; email?: string }): Promise<void> {
  const name = nameOf(options.name)
  const email = options.email === undefined ? {} : { ownerEmail: emailOf(options.email) }
  await withPools(config, async ({ rest: pool }) => {
    const { id, liveAccountId, testAccountId } = await inTransaction(pool, async (query) => {
      const parts = { pool: new OpenTransaction(query), ids }
      const workspace = await createWorkspace(parts, operator(), { name, ...email })
      const gift = { accountId: workspace.testAccountId, amount: config.people.test_credit, nowMs: systemClock.nowMs() }
      await giveTestCredit(query, operator(), gift)
      return workspace
    })
    print(`Account ${id} created.`)
    print(`Its money in the ledger: live ${liveAccountId}, test ${testAccountId}`)
    print(`Next: farebox keys create ${id}`)
  })
}

async function cancel(config: Config, account: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const [seal, siteUrl] = [await sealFor(pool, config), config.http.site_url]
    const sendMail = seal === null || siteUrl === undefined ? null : createSendMail({ ids, seal })
    await cancelClosure({ pool, sendMail, siteUrl: siteUrl ?? '' }, operator(), accountIdOf(account))
    print(`The closure of account ${account} is canceled: calls are accepted again.`)
    if (sendMail === null) print('Nobody was told: letters need secrets.master_key and http.site_url.')
  })
}

const LISTED = 100

type ListOptions = { readonly name?: string; readonly after?: string }

async function list(config: Config, { name = '', after }: ListOptions): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const page = { name, after: after === undefined ? null : idOf(after), most: LISTED }
    const accounts = await listWorkspaces(pool, page)
    if (accounts.length === 0) return print('No accounts found. To create one: farebox accounts create --name <name>')
    for (const account of accounts) print(plain(lineOf(account)))
    if (accounts.length === LISTED) print(`More: farebox accounts list --after ${accounts.at(-1)?.id}`)
  })
}

function lineOf({ id, name, tier, plan, keys, live, test }: ListedWorkspace): string {
  const owes = live.debt > 0n ? `  owes ${formatUsd(nanos(live.debt))} USD` : ''
  return [
    ...[id, name, tier, ...(plan === 'standard' ? [] : [`plan ${plan}`]), `${keys} ${keys === 1 ? 'key' : 'keys'}`],
    `${formatUsd(nanos(live.free))} USD${owes}`,
    `${formatUsd(nanos(test.free))} test`,
  ].join('  ')
}

async function show(config: Config, text: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    for (const line of await accountLines(pool, idOf(text)).catch(unknown(`account ${text}`))) print(plain(line))
  })
}

/** All of a customer account, a line for each thing. */
export async function accountLines(pool: pg.Pool, id: string): Promise<readonly string[]> {
  const { name, createdAt, tier, limits, plan, liveAccountId, testAccountId } = await showWorkspace(pool, id)
  const money = [await moneyLine(pool, 'Live', liveAccountId), await moneyLine(pool, 'Test', testAccountId)]
  const prices = await listAccountPrices(pool, [liveAccountId, testAccountId])
  const keys = await keyLines(pool, await listKeys(pool, id))
  return [
    `Account ${id}, ${name}, since ${createdAt.toISOString()}`,
    `Tier ${tier}, plan ${plan}: each key has ${limitsLine(limits)}`,
    ...money,
    ...prices.map(
      ({ accountId, what, price }) =>
        `Own price${accountId === testAccountId ? ' of test money' : ''}: ${what} ${price}`,
    ),
    ...(keys.length === 0 ? ['There are no keys.'] : ['Keys:', ...keys.map((line) => `  ${line}`)]),
  ]
}

async function moneyLine(pool: pg.Pool, mode: string, accountId: string): Promise<string> {
  const { free, held, promo, debt, charged } = await readBalance(pool, accountId)
  const more = [
    ...(promo > ZERO ? [`${formatUsd(promo)} of it promotional`] : []),
    ...(held > ZERO ? [`${formatUsd(held)} held`] : []),
    ...(debt > ZERO ? [`owes ${formatUsd(debt)} and is suspended`] : []),
  ]
  return `${mode} money ${accountId}: ${[`${formatUsd(free)} USD available`, ...more, `${formatUsd(charged)} charged so far`].join(', ')}`
}

type TierOptions = { readonly rpm?: string; readonly tpm?: string; readonly concurrency?: string }

async function setTier(config: Config, account: string, tier: string, options: TierOptions): Promise<void> {
  const grant = grantOf(tier, options)
  await withPools(config, async ({ rest: pool }) => {
    await grantTier({ pool, ids }, operator(), accountIdOf(account), grant).catch(unknown(`account ${account}`))
    const inForce = await showWorkspace(pool, accountIdOf(account))
    const how = tier === 'earned' ? ', which its payments have earned' : ''
    print(`Account ${account} is on the tier ${inForce.tier}${how}. Each key has ${limitsLine(inForce.limits)}.`)
  })
}

function grantOf(tier: string, { rpm, tpm, concurrency }: TierOptions): TierGrant {
  if (tier !== 'growth' && tier !== 'enterprise' && tier !== 'earned')
    throw new Error(`there is no tier ${JSON.stringify(tier)} to set: use growth, enterprise or earned`)
  if (tier !== 'enterprise') {
    if (rpm !== undefined || tpm !== undefined || concurrency !== undefined)
      throw new Error(`--rpm, --tpm and --concurrency are only for enterprise: ${tier} has fixed limits`)
    return { tier }
  }
  return {
    tier,
    limits: {
      requestsPerMinute: wholeNumber('--rpm', rpm),
      tokensPerMinute: wholeNumber('--tpm', tpm, TOKENS_LIMIT),
      concurrency: wholeNumber('--concurrency', concurrency),
    },
  }
}

async function setPlan(config: Config, account: string, plan: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    await findWorkspace(pool, accountIdOf(account)).catch(unknown(`account ${account}`))
    const plans = await listCustomerPlans(pool)
    if (!plans.some(({ id }) => id === plan))
      throw new Error(
        `there is no plan ${JSON.stringify(plan)}. Plans: ${plans.map(({ id }) => id).join(', ')}. To add one: farebox plans set`,
      )
    await setCustomerPlan({ pool, ids }, operator(), accountIdOf(account), plan)
    print(`Account ${account} is on the plan ${plan}.`)
  })
}

async function listPlans(config: Config): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    for (const { id, multiplier, customers } of await listCustomerPlans(pool))
      print(`${id}  ${timesText(multiplier)}  ${customers} ${customers === 1 ? 'customer' : 'customers'}`)
  })
}

const PLAN = /^[a-z][a-z0-9_-]{0,31}$/

async function savePlan(config: Config, plan: string, text: string): Promise<void> {
  if (!PLAN.test(plan))
    throw new Error(`${JSON.stringify(plan)} is not a valid name of a plan: use lower-case letters, digits, _ and -`)
  const multiplier = timesOf(text)
  await withPools(config, async ({ rest: pool }) => {
    await saveCustomerPlan({ pool, by: operator() }, plan, multiplier)
    print(`Customers on the plan ${plan} pay ${timesText(multiplier)} the price of the reseller's operations.`)
  })
}

/** Ten times is no discount and no surcharge that anybody means. */
const TIMES_MOST = 10n
const TIMES = /^(\d{1,2}(?:\.\d{1,4})?)x$/

/** How many times a price somebody pays, as an operator writes it. */
export function timesOf(text: string): Rational {
  const [, number = ''] = TIMES.exec(text) ?? []
  const times = number === '' ? undefined : decimal(number)
  if (times === undefined || times.numerator > TIMES_MOST * times.denominator)
    throw new Error(`${JSON.stringify(text)} is not a multiplier of the price: use 0x to ${TIMES_MOST}x, such as 0.8x`)
  return times
}

export function timesText(times: Rational): string {
  return `${decimalText(times)}x`
}

function emailOf(text: string): string {
  if (text.length > 320 || !/^[^\s@]+@[^\s@]+$/.test(text))
    throw new Error(`${JSON.stringify(text)} is not an e-mail address`)
  return text
}

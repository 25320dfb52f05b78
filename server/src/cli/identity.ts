import type { Command } from 'commander'
import type { Config } from '../config.ts'
import { refusalsOf } from '../gateway/refusals.ts'
import type { Budget } from '../identity/budgets.ts'
import {
  changeKey,
  createKey,
  findKey,
  listKeys,
  type NewKey,
  revokeKey,
  rotateKey,
  setKeyBudget,
} from '../identity/keys.ts'
import { createWorkspace, findWorkspace, grantTier, type TierGrant } from '../identity/workspaces.ts'
import { systemClock } from '../kernel/clock.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import { formatUsd, type Nanos, usd, ZERO } from '../kernel/money.ts'
import { creditAccountBy } from '../ledger/credit.ts'
import { explainId } from '../ledger/explain.ts'
import { idOf, ids, operator, print, reading, running, unknown, wholeNumber, withPools, writing } from './command.ts'
import {
  budgetLine,
  checkTerms,
  linesOf,
  ownTerms,
  stateOf,
  type TermsOptions,
  termsOf,
  withTerms,
} from './key-terms.ts'
import { timeOf } from './time.ts'

export function addIdentityCommands(program: Command): void {
  const accounts = program.command('accounts').description('look after customers')
  writing(accounts, 'create')
    .description('make a customer account: a workspace with live and test money apart')
    .requiredOption('--name <name>', 'what to call it')
    .option('--email <address>', "its owner's address")
    .action((options: { name: string; email?: string }) => running((config) => createAccount(config, options)))
  writing(accounts, 'tier <account>')
    .description('grant a tier beyond what the paid total earns')
    .argument('<tier>', 'growth, enterprise, or earned to take a grant back')
    .option('--rpm <requests>', 'requests a minute, for enterprise')
    .option('--tpm <tokens>', 'tokens a minute, for enterprise')
    .option('--concurrency <calls>', 'calls at once, for enterprise')
    .action((account: string, tier: string, options: TierOptions) =>
      running((config) => setTier(config, account, tier, options)),
    )

  const keys = program.command('keys').description("look after a customer's API keys")
  withTerms(writing(keys, 'create <account>'))
    .description('make a key; its secret is shown once')
    .option('--name <name>', 'what to call it', 'key')
    .option('--test', 'spend test money on sandbox upstreams only')
    .option('--expires <time>', 'when it stops working, such as 2027-01-31T00:00:00Z')
    .option('--budget <usd/period>', 'the most that it may spend, such as 20/month, 5/day or 100/total')
    .action((account: string, options: KeyOptions) => running((config) => addKey(config, account, options)))
  withTerms(writing(keys, 'change <key>'))
    .description('change how fast, for what and from where a key may be used; every process follows within a second')
    .action((key: string, options: TermsOptions) => running((config) => change(config, key, options)))
  reading(keys, 'show <key>')
    .description('show a key: its limits, its scopes, and from where it may be used')
    .action((key: string) => running((config) => show(config, key)))
  reading(keys, 'list <account>')
    .description('list the keys of a customer')
    .action((account: string) => running((config) => list(config, account)))
  writing(keys, 'rotate <key>')
    .description('give a key a new secret; the old one works for a while')
    .option('--overlap <seconds>', 'for how long', '86400')
    .action((key: string, { overlap }: { overlap: string }) => running((config) => rotate(config, key, overlap)))
  writing(keys, 'revoke <key>')
    .description('end a key: no paid call begins with it from now on')
    .action((key: string) => running((config) => revoke(config, key)))
  writing(keys, 'budget <key> <usd/period>')
    .description('change what a key may spend, such as 20/month, or none')
    .action((key: string, budget: string) => running((config) => changeBudget(config, key, budget)))
  reading(keys, 'refusals <key>')
    .description('list how often calls of a key were refused in the last 30 days, by hour and reason')
    .action((key: string) => running((config) => listRefusals(config, key)))

  writing(program, 'credit <account> <usd>')
    .description('add money to a customer account')
    .option('--promotion', 'given, not paid: spent first, and counts for no tier')
    .option('--expires <time>', 'when a promotion ends')
    .option('--test', 'test money')
    .option('--id <uuid>', 'add it once under this id, however often it is sent')
    .action((account: string, amount: string, options: CreditOptions) =>
      running((config) => credit(config, account, amount, options)),
    )
}

async function createAccount(config: Config, options: { name: string; email?: string }): Promise<void> {
  const name = nameOf(options.name)
  const email = options.email === undefined ? {} : { ownerEmail: emailOf(options.email) }
  await withPools(config, async ({ rest: pool }) => {
    const { id, liveAccountId, testAccountId } = await createWorkspace({ pool, ids }, operator(), { name, ...email })
    print(`Account ${id} was made.`)
    print(`In the ledger its live money is ${liveAccountId}, its test money ${testAccountId}.`)
    print(`Next: farebox keys create ${id}`)
  })
}

type TierOptions = { readonly rpm?: string; readonly tpm?: string; readonly concurrency?: string }

async function setTier(config: Config, account: string, tier: string, options: TierOptions): Promise<void> {
  const grant = grantOf(tier, options)
  await withPools(config, async ({ rest: pool }) => {
    await grantTier({ pool, ids }, operator(), idOf(account), grant).catch(unknown(`account ${account}`))
    print(
      tier === 'earned'
        ? `Account ${account} has the tier that it has paid for.`
        : `Account ${account} has the tier ${tier}.`,
    )
  })
}

function grantOf(tier: string, { rpm, tpm, concurrency }: TierOptions): TierGrant {
  if (tier !== 'growth' && tier !== 'enterprise' && tier !== 'earned')
    throw new Error(`${JSON.stringify(tier)} can't be granted: write growth, enterprise or earned`)
  if (tier !== 'enterprise') {
    if (rpm !== undefined || tpm !== undefined || concurrency !== undefined)
      throw new Error(`--rpm, --tpm and --concurrency are for enterprise: ${tier} has limits already`)
    return { tier }
  }
  return {
    tier,
    limits: {
      requestsPerMinute: wholeNumber('--rpm', rpm),
      tokensPerMinute: wholeNumber('--tpm', tpm),
      concurrency: wholeNumber('--concurrency', concurrency),
    },
  }
}

type KeyOptions = TermsOptions & {
  readonly name: string
  readonly test?: true
  readonly expires?: string
  readonly budget?: string
}

async function addKey(config: Config, account: string, options: KeyOptions): Promise<void> {
  const mode: Mode = options.test === true ? 'test' : 'live'
  const { expires, budget } = options
  const terms = termsOf(options)
  const key: NewKey = {
    workspaceId: idOf(account),
    mode,
    name: nameOf(options.name),
    ...terms,
    ...(expires !== undefined && { expiresAt: futureOf(expires) }),
    ...(budget !== undefined && { budget: budgetOf(budget) }),
  }
  await withPools(config, async ({ rest: pool }) => {
    await findWorkspace(pool, key.workspaceId).catch(unknown(`account ${account}`))
    await checkTerms({ pool, config }, terms)
    const { id, secret } = await createKey({ pool, ids }, operator(), key).catch(unknown(`account ${account}`))
    print(`Key ${id} was made. This is its secret, which is shown only now:`)
    print(secret.reveal())
  })
}

async function list(config: Config, account: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const { id } = await findWorkspace(pool, idOf(account)).catch(unknown(`account ${account}`))
    const keys = await listKeys(pool, id)
    if (keys.length === 0) return print('There are no keys.')
    for (const key of keys) {
      // Customers choose names, and a terminal obeys what it is shown.
      print([key.id, key.mode, key.name, stateOf(key), ...ownTerms(key.terms)].join('  ').replace(/\p{Cc}/gu, '?'))
    }
  })
}

async function change(config: Config, key: string, options: TermsOptions): Promise<void> {
  const terms = termsOf(options)
  if (Object.keys(terms).length === 0) throw new Error('name what to change: see farebox keys change --help')
  await withPools(config, async ({ rest: pool }) => {
    await findKey(pool, idOf(key)).catch(unknown(`key ${key}`))
    await checkTerms({ pool, config }, terms)
    await changeKey({ pool, ids }, operator(), idOf(key), terms).catch(unknown(`key ${key}`))
    const [first = '', ...rest] = ownTerms((await findKey(pool, idOf(key))).terms)
    if (first === '') return print(`Key ${key} has the limits of its tier, for everything, from anywhere.`)
    print(`Key ${key} may be used ${[first, ...rest].join(', ')}.`)
  })
}

async function show(config: Config, key: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const found = await findKey(pool, idOf(key)).catch(unknown(`key ${key}`))
    for (const line of linesOf(found)) print(line.replace(/\p{Cc}/gu, '?'))
  })
}

async function rotate(config: Config, key: string, overlap: string): Promise<void> {
  const overlapSeconds = overlap === '0' ? 0 : wholeNumber('--overlap', overlap)
  const old = overlapSeconds === 0 ? 'works no longer' : `works for ${overlapSeconds} more seconds`
  await withPools(config, async ({ rest: pool }) => {
    const secret = await rotateKey({ pool, ids }, operator(), idOf(key), overlapSeconds).catch(unknown(`key ${key}`))
    print(`Key ${key} has a new secret; the old one ${old}. This is the new one, which is shown only now:`)
    print(secret.reveal())
  })
}

async function revoke(config: Config, key: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    await revokeKey({ pool, ids }, operator(), idOf(key)).catch(unknown(`key ${key}`))
    print(`Key ${key} is revoked: no paid call begins with it from now on.`)
  })
}

async function changeBudget(config: Config, key: string, text: string): Promise<void> {
  const budget = text === 'none' ? null : budgetOf(text)
  await withPools(config, async ({ rest: pool }) => {
    await setKeyBudget({ pool, ids }, operator(), idOf(key), budget).catch(unknown(`key ${key}`))
    print(
      budget === null
        ? `Key ${key} has no budget: it may spend what the account has.`
        : `Key ${key} may spend ${budgetLine(budget)}.`,
    )
  })
}

const REFUSALS_MS = 30 * 86_400_000

async function listRefusals(config: Config, key: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const refusals = await refusalsOf(pool, idOf(key), new Date(systemClock.nowMs() - REFUSALS_MS))
    if (refusals.length === 0) return print(`Key ${key} was not refused in the last 30 days.`)
    for (const { hour, reason, count } of refusals) print(`${hour.toISOString()}  ${count}  ${reason}`)
    print('Processes write their counts once a minute.')
  })
}

type CreditOptions = {
  readonly promotion?: true
  readonly expires?: string
  readonly test?: true
  readonly id?: string
}

async function credit(config: Config, account: string, text: string, options: CreditOptions): Promise<void> {
  const amount = moreThanNothing(text)
  const entryId: Id = options.id === undefined ? ids.next() : idOf(options.id)
  if (options.expires !== undefined && options.promotion === undefined)
    throw new Error('--expires is for a promotion: paid money does not end')
  const expiresAt = options.expires === undefined ? {} : { expiresAt: futureOf(options.expires) }
  await withPools(config, async ({ rest: pool }) => {
    const workspace = await findWorkspace(pool, idOf(account)).catch(unknown(`account ${account}`))
    // Told before it is sent: whoever is not sure whether it happened repeats it with this id, and adds nothing twice.
    if (options.id === undefined) print(`To repeat it safely: --id ${entryId}`)
    const added = await creditAccountBy(pool, operator(), {
      entryId,
      accountId: options.test === true ? workspace.testAccountId : workspace.liveAccountId,
      amount,
      ...(options.promotion === true ? { kind: 'promotion', ...expiresAt } : { kind: 'payment' }),
    })
    const money = `${formatUsd(amount)} USD${options.test === true ? ' of test money' : ''}`
    if (added) return print(`${money} were added${options.promotion ? ' as a promotion' : ''}, as entry ${entryId}.`)
    print(`Entry ${entryId} was added before; nothing was added now. This is what it is:`)
    for (const line of await explainId(pool, entryId)) print(line)
  })
}

const NAME_LIMIT = 200

function nameOf(text: string): string {
  const name = text.trim()
  if (name === '' || name.length > NAME_LIMIT) throw new Error(`--name must have from 1 to ${NAME_LIMIT} characters`)
  return name
}

function emailOf(text: string): string {
  if (text.length > 320 || !/^[^\s@]+@[^\s@]+$/.test(text))
    throw new Error(`${JSON.stringify(text)} is no e-mail address`)
  return text
}

function moreThanNothing(text: string): Nanos {
  const amount = usd(text)
  if (amount <= ZERO) throw new Error('a credit must be more than nothing')
  return amount
}

const BUDGET = /^([\d.]+)\/(day|month|total)$/

function budgetOf(text: string): Budget {
  const [, amount, period] = BUDGET.exec(text) ?? []
  if (amount === undefined || (period !== 'day' && period !== 'month' && period !== 'total'))
    throw new Error(`${JSON.stringify(text)} is no budget: write 20/month, 5/day or 100/total`)
  return { period, amount: usd(amount) }
}

function futureOf(text: string): Date {
  const time = timeOf(text)
  if (time.getTime() <= systemClock.nowMs()) throw new Error(`--expires must be in the future: ${text} is over`)
  return time
}

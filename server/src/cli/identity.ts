import type { Command } from 'commander'
import type { Config } from '../config.ts'
import { refusalsOf } from '../gateway/refusals.ts'
import { assignKey, changeKey, setKeyBudget } from '../identity/key-changes.ts'
import { createKey, type NewKey, revokeKey, revokeSecret, rotateKey } from '../identity/keys.ts'
import { findKey, listKeys } from '../identity/listed-keys.ts'
import { findWorkspace } from '../identity/workspaces.ts'
import { systemClock } from '../kernel/clock.ts'
import type { Mode } from '../kernel/mode.ts'
import { Secret } from '../kernel/secret.ts'
import { budgetLine, budgetOf } from './budget-text.ts'
import {
  accountIdOf,
  futureOf,
  idOf,
  ids,
  keyIdOf,
  nameOf,
  operator,
  plain,
  print,
  readInput,
  reading,
  running,
  unknown,
  withPools,
  writing,
} from './command.ts'
import { keyLines, spendOf } from './key-spend.ts'
import { checkTerms, linesOf, ownTerms, type TermsOptions, termsOf, withTerms } from './key-terms.ts'
import { durationText } from './time.ts'

export function addIdentityCommands(program: Command): void {
  const keys = program.command('keys').description("manage a customer's API keys")
  withTerms(writing(keys, 'create <account>'))
    .description('create a key; its secret is shown once')
    .option('--name <name>', 'name of the key', 'key')
    .option('--test', 'create a test key, which spends test money on test upstreams (default: a live key)')
    .option('--expires <time>', 'when the key expires, such as 2027-01-31T00:00:00Z (default: never)')
    .option(
      '--budget <usd/period>',
      'spending limit in USD, such as 20/month, 10/week, 5/day or 100/total (default: none)',
    )
    .option(
      '--member <member>',
      'id of the member whose key it is; the budget of the member applies to it (default: nobody)',
    )
    .action((account: string, options: KeyOptions) => running((config) => addKey(config, account, options)))
  withTerms(writing(keys, 'change <key>'))
    .description('change the rate limits, scopes and addresses of a key; effective within a second')
    .action((key: string, options: TermsOptions) => running((config) => change(config, key, options)))
  reading(keys, 'show <key>')
    .description('show a key: limits, scopes, addresses and spend')
    .action((key: string) => running((config) => show(config, key)))
  reading(keys, 'list <account>')
    .description('list the keys of a customer')
    .action((account: string) => running((config) => list(config, account)))
  writing(keys, 'rotate <key>')
    .description('rotate the secret of a key; the old one works until the overlap ends')
    .option('--overlap <seconds>', 'how long the old secret still works: 0 (not at all) to 31536000 (a year)', '86400')
    .action((key: string, { overlap }: { overlap: string }) => running((config) => rotate(config, key, overlap)))
  writing(keys, 'revoke [key]')
    .description('revoke a key: it can no longer start paid calls')
    .option(
      '--secret <->',
      'revoke by a leaked secret, read from standard input; a secret from before the last rotation is revoked alone (default: name the key)',
    )
    .action((key: string | undefined, options: RevokeOptions) => running((config) => revoke(config, key, options)))
  writing(keys, 'budget <key> <usd/period>')
    .description('set the budget of a key, such as 20/month, or none to remove it')
    .action((key: string, budget: string) => running((config) => changeBudget(config, key, budget)))
  writing(keys, 'assign <key> <member>')
    .description('assign a key to a member by id, or none; the budget of the member applies to it within a second')
    .action((key: string, member: string) => running((config) => assign(config, key, member)))
  reading(keys, 'refusals <key>')
    .description('list the refused calls of a key in the last 30 days, by hour and reason')
    .action((key: string) => running((config) => listRefusals(config, key)))
}

type KeyOptions = TermsOptions & {
  readonly name: string
  readonly test?: true
  readonly expires?: string
  readonly budget?: string
  readonly member?: string
}

const MODES: Readonly<Record<Mode, string>> = {
  live: 'It is a live key: it spends live money, and reaches live upstreams only.',
  test: 'It is a test key: it spends test money, and reaches test upstreams only.',
}

async function addKey(config: Config, account: string, options: KeyOptions): Promise<void> {
  const mode: Mode = options.test === true ? 'test' : 'live'
  const { expires, budget, member } = options
  const terms = termsOf(options)
  const key: NewKey = {
    workspaceId: accountIdOf(account),
    mode,
    name: nameOf(options.name),
    ...terms,
    ...(expires !== undefined && { expiresAt: futureOf(expires) }),
    ...(budget !== undefined && { budget: budgetOf(budget) }),
    ...(member !== undefined && { memberId: idOf(member) }),
  }
  await withPools(config, async ({ rest: pool }) => {
    await findWorkspace(pool, key.workspaceId).catch(unknown(`account ${account}`))
    await checkTerms({ pool, config }, terms)
    const missing = member === undefined ? `account ${account}` : `member ${member} of the account`
    const { id, secret } = await createKey({ pool, ids }, operator(), key).catch(unknown(missing))
    print(`Key ${id} created. ${MODES[mode]} Its secret, which is shown only once:`)
    print(secret.reveal())
  })
}

async function list(config: Config, account: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const { id } = await findWorkspace(pool, accountIdOf(account)).catch(unknown(`account ${account}`))
    const keys = await listKeys(pool, id)
    if (keys.length === 0) return print('There are no keys.')
    for (const line of await keyLines(pool, keys)) print(line)
  })
}

async function change(config: Config, key: string, options: TermsOptions): Promise<void> {
  const terms = termsOf(options)
  if (Object.keys(terms).length === 0) throw new Error('name at least one change: see farebox keys change --help')
  await withPools(config, async ({ rest: pool }) => {
    await findKey(pool, keyIdOf(key)).catch(unknown(`key ${key}`))
    await checkTerms({ pool, config }, terms)
    await changeKey({ pool, ids }, operator(), keyIdOf(key), terms).catch(unknown(`key ${key}`))
    const [first = '', ...rest] = ownTerms((await findKey(pool, keyIdOf(key))).terms)
    if (first === '')
      return print(`Key ${key} has the limits of its tier, all scopes, and may be used from any address.`)
    print(`Key ${key} now has: ${[first, ...rest].join('; ')}.`)
  })
}

async function show(config: Config, key: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const found = await findKey(pool, keyIdOf(key)).catch(unknown(`key ${key}`))
    for (const line of linesOf(found, await spendOf(pool, found))) print(plain(line))
  })
}

const OVERLAP_MOST_SECONDS = 31_536_000

function overlapOf(text: string): number {
  const seconds = /^\d{1,8}$/.test(text) ? Number(text) : Number.NaN
  if (!(seconds <= OVERLAP_MOST_SECONDS))
    throw new Error(`--overlap must be a whole number of seconds from 0 to ${OVERLAP_MOST_SECONDS}`)
  return seconds
}

async function rotate(config: Config, key: string, overlap: string): Promise<void> {
  const overlapSeconds = overlapOf(overlap)
  const old = overlapSeconds === 0 ? 'no longer works' : `still works for ${durationText(overlapSeconds)}`
  await withPools(config, async ({ rest: pool }) => {
    const secret = await rotateKey({ pool, ids }, operator(), keyIdOf(key), overlapSeconds).catch(unknown(`key ${key}`))
    print(`Key ${key} has a new secret; the old one ${old}. The new secret, which is shown only once:`)
    print(secret.reveal())
  })
}

type RevokeOptions = { readonly secret?: string }

async function revoke(config: Config, key: string | undefined, { secret }: RevokeOptions): Promise<void> {
  if ((key === undefined) === (secret === undefined)) throw new Error('name the key, or give --secret -')
  if (key === undefined) return revokeLeaked(config, secret)
  await withPools(config, async ({ rest: pool }) => {
    await revokeKey({ pool, ids }, operator(), keyIdOf(key)).catch(unknown(`key ${key}`))
    print(`Key ${key} is revoked: it can no longer start paid calls.`)
  })
}

const SECRET_BYTES_MOST = 1_024

/** Whoever has found a secret need not know whose it is. It is never an argument, which others on the machine can read. */
async function revokeLeaked(config: Config, from: string | undefined): Promise<void> {
  if (from !== '-')
    throw new Error(
      'give --secret - and pass the secret on standard input: other users of the machine can read arguments',
    )
  const secret = new Secret((await readInput(SECRET_BYTES_MOST)).trim())
  await withPools(config, async ({ rest: pool }) => {
    const { id, ended } = await revokeSecret({ pool, ids }, operator(), secret)
    if (ended === 'key') print(`Key ${id} is revoked: it can no longer start paid calls.`)
    else print(`The old secret of key ${id} is revoked. Its current secret still works.`)
  })
}

async function changeBudget(config: Config, key: string, text: string): Promise<void> {
  const budget = text === 'none' ? null : budgetOf(text)
  await withPools(config, async ({ rest: pool }) => {
    await setKeyBudget({ pool, ids }, operator(), keyIdOf(key), budget).catch(unknown(`key ${key}`))
    print(
      budget === null
        ? `Key ${key} has no budget: only the balance of the account limits it.`
        : `Key ${key} may spend ${budgetLine(budget)}.`,
    )
  })
}

async function assign(config: Config, key: string, member: string): Promise<void> {
  const memberId = member === 'none' ? null : idOf(member)
  await withPools(config, async ({ rest: pool }) => {
    await findKey(pool, keyIdOf(key)).catch(unknown(`key ${key}`))
    await assignKey({ pool }, operator(), keyIdOf(key), memberId).catch(unknown(`member ${member} of its account`))
    print(memberId === null ? `Key ${key} is nobody's.` : `Key ${key} is assigned to member ${member}.`)
  })
}

const REFUSALS_MS = 30 * 86_400_000

async function listRefusals(config: Config, key: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const refusals = await refusalsOf(pool, keyIdOf(key), new Date(systemClock.nowMs() - REFUSALS_MS))
    if (refusals.length === 0) return print(`No calls of key ${key} were refused in the last 30 days.`)
    for (const { hour, reason, count } of refusals) print(`${hour.toISOString()}  ${count}  ${reason}`)
    print('Counts can be a minute old.')
  })
}

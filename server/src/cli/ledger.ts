import type { Command } from 'commander'
import type pg from 'pg'
import { accountOfCall, type Resolution, resolveWithin } from '../calls/orphans.ts'
import type { Config } from '../config.ts'
import { holdsKey } from '../identity/key-format.ts'
import { findKey } from '../identity/listed-keys.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, type Nanos, usd, ZERO } from '../kernel/money.ts'
import { callOfQuote, explainId, listUnsettled } from '../ledger/explain.ts'
import { verifyLedger } from '../ledger/verify.ts'
import { readQuote } from '../pricing/quotes.ts'
import { record } from '../storage/audit.ts'
import { inTransaction } from '../storage/transaction.ts'
import { accountLines } from './accounts.ts'
import { idOf, operator, plain, print, reading, running, withPools, writing } from './command.ts'
import { spendOf } from './key-spend.ts'
import { linesOf } from './key-terms.ts'

export function addLedgerCommands(program: Command): void {
  const ledger = program.command('ledger').description('verify and explain the ledger, and resolve unsettled calls')
  reading(ledger, 'verify')
    .description('check every invariant of the ledger over all accounts, in one snapshot')
    .action(() => running(verify))
  reading(ledger, 'explain <id>')
    .description('explain an id: an account, a key, a call, a task, an entry or a quote')
    .action((id: string) => running((config) => explain(config, id)))
  reading(ledger, 'unsettled')
    .description('list unsettled calls: their process died, and their usage is unknown')
    .action(() => running(unsettled))
  writing(ledger, 'resolve <id>')
    .description('settle an unsettled call by what the provider reports')
    .option('--charge <usd>', 'the call was executed: charge this amount, at most its hold (required without --void)')
    .option('--void', 'the call was never executed: charge nothing')
    .action((id: string, options: ResolveOptions) => running((config) => resolve(config, id, options)))
}

async function verify(config: Config): Promise<void> {
  await withPools(config, async ({ rest }) => {
    const violations = await verifyLedger(rest)
    if (violations.length === 0) return print('The ledger is consistent: every invariant holds.')
    throw new Error(violations.map(({ promise, rows }) => `Broken: ${promise} (${rows.join(', ')})`).join('\n'))
  })
}

async function explain(config: Config, text: string): Promise<void> {
  // Whoever has a secret at hand has its key's id too, and must not leave the secret in a list of processes.
  if (holdsKey(text))
    throw new Error(
      'this is the secret of a key, and other users of the machine can read arguments: give the id of the key, see farebox keys list',
    )
  await withPools(config, async ({ rest: pool }) => {
    const lines = QUOTE.test(text) ? await quoteLines(pool, config, text) : await linesOfId(pool, idOf(text))
    if (lines.length === 0) throw new Error(`there is no account, key, call, task, entry or quote ${text.slice(0, 60)}`)
    for (const line of lines) print(plain(line))
  })
}

const QUOTE = /^[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{43}$/

/** By whatever name somebody has it. */
async function linesOfId(pool: pg.Pool, id: Id): Promise<readonly string[]> {
  const known = await explainId(pool, id)
  if (known.length > 0) return known
  const key = await findKey(pool, id).catch(orNothing)
  if (key !== undefined) return [...linesOf(key, await spendOf(pool, key)), ...(await explainId(pool, key.accountId))]
  const account = await accountLines(pool, id).catch(orNothing)
  return account ?? []
}

function orNothing(error: unknown): undefined {
  if (error instanceof Fault && error.code === 'resource_not_found') return undefined
  throw error
}

async function quoteLines(pool: pg.Pool, { secrets }: Config, text: string): Promise<readonly string[]> {
  const keys = [secrets.master_key, secrets.previous_master_key].filter((key) => key !== undefined)
  if (keys.length === 0)
    throw new Error('secrets.master_key (FAREBOX_SECRETS_MASTER_KEY) is missing: it is needed to read a quote')
  const quote = readQuote(text, keys)
  if (quote === undefined) return []
  const { operation, accountId, credentialId, most, expiresAt, nonce } = quote
  const callId = await callOfQuote(pool, credentialId, nonce)
  return [
    `Quote for ${operation} of account ${accountId}, by key ${credentialId}: at most ${formatUsd(most)} USD, valid until ${expiresAt.toISOString()}.`,
    ...(callId === undefined
      ? ['No call has used it.']
      : [`Call ${callId} has used it:`, ...(await explainId(pool, callId))]),
  ]
}

async function unsettled(config: Config): Promise<void> {
  await withPools(config, async ({ rest }) => {
    const lines = await listUnsettled(rest)
    if (lines.length === 0) return print('There are no unsettled calls.')
    for (const line of lines) print(line)
  })
}

type ResolveOptions = { readonly charge?: string; readonly void?: true }

async function resolve(config: Config, text: string, options: ResolveOptions): Promise<void> {
  if ((options.charge === undefined) === (options.void === undefined))
    throw new Error('give either --charge <usd>, as the provider reports it, or --void')
  const amount = options.charge === undefined ? null : chargeOf(options.charge)
  const id = idOf(text)
  await withPools(config, async ({ rest }) => {
    const resolution = await resolveRecorded(rest, id, amount)
    if (resolution === undefined)
      throw new Error(`call ${id} is not unsettled, so there is nothing to resolve: see farebox ledger explain ${id}`)
    const { outcome, charged, overrun } = resolution
    const beyond = overrun === ZERO ? '' : ` ${formatUsd(overrun)} USD exceeded the hold and are our loss.`
    print(`Call ${id} is ${outcome}: ${formatUsd(charged)} USD charged.${beyond}`)
  })
}

/** The end of the call and the record of who ended it are written together, or neither is. */
function resolveRecorded(pool: pg.Pool, id: Id, amount: Nanos | null): Promise<Resolution | undefined> {
  return inTransaction(pool, async (query) => {
    const of = await accountOfCall(query, id)
    const resolution = await resolveWithin(query, id, amount)
    if (of === undefined || resolution === undefined) return undefined
    const { outcome, charged, overrun } = resolution
    await record(query, operator(), {
      action: 'call.resolved',
      of,
      subject: id,
      before: { state: 'unsettled' },
      after: { state: outcome, usd: formatUsd(charged), overrun: formatUsd(overrun) },
    })
    return resolution
  })
}

function chargeOf(text: string): Nanos {
  const amount = usd(text)
  if (amount < ZERO) throw new Error('--charge must be 0 or more')
  return amount
}

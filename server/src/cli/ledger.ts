import type { Command } from 'commander'
import type pg from 'pg'
import { accountOfCall, type Resolution, resolveWithin } from '../calls/orphans.ts'
import type { Config } from '../config.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, type Nanos, usd, ZERO } from '../kernel/money.ts'
import { explainId, listUnsettled } from '../ledger/explain.ts'
import { verifyLedger } from '../ledger/verify.ts'
import { record } from '../storage/audit.ts'
import { inTransaction } from '../storage/transaction.ts'
import { idOf, operator, print, reading, running, withPools, writing } from './command.ts'

export function addLedgerCommands(program: Command): void {
  const ledger = program.command('ledger').description('look after the ledger')
  reading(ledger, 'verify')
    .description('evaluate every promise of the ledger over all accounts, in one snapshot')
    .action(() => running(verify))
  reading(ledger, 'explain <id>')
    .description('say what the ledger knows of a call, an entry or an account')
    .action((id: string) => running((config) => explain(config, id)))
  reading(ledger, 'unsettled')
    .description('list the calls whose process died and of which nobody knows what they used')
    .action(() => running(unsettled))
  writing(ledger, 'resolve <id>')
    .description('end an unsettled call by what the upstream says of it')
    .option('--charge <usd>', 'it was executed: charge this much, at most what it holds')
    .option('--void', 'it was never executed: charge nothing')
    .action((id: string, options: ResolveOptions) => running((config) => resolve(config, id, options)))
}

async function verify(config: Config): Promise<void> {
  await withPools(config, async ({ rest }) => {
    const violations = await verifyLedger(rest)
    if (violations.length === 0) return print('Every promise of the ledger holds.')
    throw new Error(violations.map(({ promise, rows }) => `Broken: ${promise} (${rows.join(', ')})`).join('\n'))
  })
}

async function explain(config: Config, text: string): Promise<void> {
  await withPools(config, async ({ rest }) => {
    const lines = await explainId(rest, idOf(text))
    if (lines.length === 0) throw new Error(`the ledger knows no call, entry or account ${text}`)
    for (const line of lines) print(line)
  })
}

async function unsettled(config: Config): Promise<void> {
  await withPools(config, async ({ rest }) => {
    const lines = await listUnsettled(rest)
    if (lines.length === 0) return print('No call is unsettled.')
    for (const line of lines) print(line)
  })
}

type ResolveOptions = { readonly charge?: string; readonly void?: true }

async function resolve(config: Config, text: string, options: ResolveOptions): Promise<void> {
  if ((options.charge === undefined) === (options.void === undefined))
    throw new Error('say either --charge <usd>, as the upstream reports it, or --void')
  const amount = options.charge === undefined ? null : chargeOf(options.charge)
  const id = idOf(text)
  await withPools(config, async ({ rest }) => {
    const resolution = await resolveRecorded(rest, id, amount)
    if (resolution === undefined)
      throw new Error(`call ${id} is not unsettled, so there is nothing to resolve: see farebox ledger explain ${id}`)
    const { outcome, charged, overrun } = resolution
    const beyond = overrun === ZERO ? '' : ` ${formatUsd(overrun)} USD were beyond the hold and are our loss.`
    print(`Call ${id} is ${outcome}: ${formatUsd(charged)} USD were charged.${beyond}`)
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
  if (amount < ZERO) throw new Error("--charge can't be negative: give back what was charged by a reversal")
  return amount
}

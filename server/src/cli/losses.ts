import type { Command } from 'commander'
import type pg from 'pg'
import {
  type AccountLosses,
  ceilingsOf,
  countedForRoute,
  createLossSums,
  type LossCeilings,
  type LossWindow,
  type ReachedCeiling,
  type RouteLosses,
  reachedCeilings,
  WINDOWS,
} from '../calls/loss-sums.ts'
import { evidencedSince, type LostInMinute, readDay, releaseLosses, timeOfLosses } from '../calls/losses.ts'
import type { Config } from '../config.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, type Nanos, nanos, ZERO } from '../kernel/money.ts'
import { overrunOfLastDay } from '../ledger/overrun.ts'
import { record } from '../storage/audit.ts'
import { inTransaction } from '../storage/transaction.ts'
import { idOf, ids, operator, print, reading, running, withPools, writing } from './command.ts'

export function addLossCommands(program: Command): void {
  const losses = reading(program, 'losses')
    .description('list losses (provider cost above what was charged) and the loss limits they have reached')
    .action(() => running(list))
  writing(losses, 'release')
    .description('release a route that a loss limit stopped: losses until now no longer count')
    .requiredOption('--route <route>', 'route as listed by farebox losses, such as gpt@openai:live')
    .option('--account <id>', 'release only for this account (default: all accounts)')
    .action((options: ReleaseOptions) => running((config) => release(config, options)))
}

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

async function list(config: Config): Promise<void> {
  const ceilings = ceilingsOf(config.loss)
  await withPools(config, async ({ rest: pool }) => {
    const nowMs = await timeOfLosses(pool)
    const minute = Math.floor(nowMs / MINUTE_MS)
    const minutes = await readDay(pool, minute)
    const sums = createLossSums()
    sums.put(minutes)
    const routes = sums.at(minute)
    if (routes.length === 0) print('No proven losses in the last 24 hours: no upstream reported more than was charged.')
    const reached = reachedCeilings(routes, ceilings)
    for (const route of routes) for (const line of linesOf(route, ceilings, reached, minutes)) print(line)
    // What was released was evidenced all the same.
    const presumed = (await overrunOfLastDay(pool, nowMs)) - (await evidencedSince(pool, nowMs - DAY_MS))
    print(
      `Presumed losses in the last 24 hours, which do not count towards a limit: ${formatUsd(nanos(presumed > 0n ? presumed : 0n))} USD.`,
    )
  })
}

function linesOf(
  { route, accounts }: RouteLosses,
  ceilings: LossCeilings,
  reached: readonly ReachedCeiling[],
  minutes: readonly LostInMinute[],
): readonly string[] {
  const stateOf = (accountId: Id | null) => {
    const found = reached.find((one) => one.route === route && one.accountId === accountId)
    return found === undefined ? '' : `  REFUSED since ${sinceOf(found, minutes)}: ${howToRelease(found)}`
  }
  const counted = (window: LossWindow) => countedForRoute(accounts, window, ceilings)
  return [
    `${route}  ${sumsText({ hour: counted('hour'), day: counted('day') }, ceilings.route)}${stateOf(null)}`,
    ...accounts
      .toSorted((a, b) => Number(b.day - a.day))
      .map((one) => `  ${one.accountId}  ${sumsText(one, ceilings.account)}${stateOf(one.accountId)}`),
  ]
}

type Sums = Pick<AccountLosses, LossWindow>

function sumsText(sums: Sums, ceilings: Readonly<Record<LossWindow, Nanos | null>>): string {
  return WINDOWS.map((window) => {
    const ceiling = ceilings[window]
    const within = `USD in the last ${window}`
    if (ceiling === null) return `${formatUsd(sums[window])} ${within} (no limit)`
    return `${formatUsd(sums[window])} of ${formatUsd(ceiling)} ${within}`
  }).join('  ')
}

/**
 * The minute in which what counts now came to the ceiling; the hour, where that is a while ago. Of a route all that its accounts lost
 * is added up, so that it may be told somewhat early.
 */
function sinceOf({ route, accountId, window, ceiling }: ReachedCeiling, minutes: readonly LostInMinute[]): string {
  const last = minutes.reduce((most, { minute }) => Math.max(most, minute), 0)
  const first = window === 'day' ? 0 : last - 60
  let lost: bigint = ZERO
  const own = minutes
    .filter((one) => one.route === route && (accountId === null || one.accountId === accountId) && one.minute >= first)
    .toSorted((a, b) => a.minute - b.minute)
  for (const { minute, nanos: more } of own) {
    lost += more
    if (lost >= ceiling) return new Date(minute * MINUTE_MS).toISOString().replace(':00.000Z', 'Z')
  }
  return 'now'
}

function howToRelease({ route, accountId }: ReachedCeiling): string {
  return `farebox losses release --route ${route}${accountId === null ? '' : ` --account ${accountId}`}`
}

type ReleaseOptions = { readonly route: string; readonly account?: string }

async function release(config: Config, { route, account }: ReleaseOptions): Promise<void> {
  const accountId = account === undefined ? undefined : idOf(account)
  await withPools(config, async ({ rest }) => {
    const accounts = await releaseRecorded(rest, { route, accountId })
    if (accounts.length === 0)
      throw new Error(`there are no losses at ${route} that still count: see farebox losses for the names of routes`)
    const whose = accountId === undefined ? `${accounts.length} accounts` : `account ${accountId}`
    print(`Losses of ${whose} at ${route} until now no longer count; effective within a second.`)
  })
}

/** The release and the record of who released are written together, or neither is. */
function releaseRecorded(
  pool: pg.Pool,
  { route, accountId }: { readonly route: string; readonly accountId: Id | undefined },
): Promise<readonly Id[]> {
  const by = operator()
  return inTransaction(pool, async (query) => {
    const accounts = await releaseLosses(query, ids, { route, accountId, actor: by.actor })
    const after = { route, accounts: accounts.length }
    const whose = accountId === undefined ? { subject: route } : { of: accountId, subject: accountId }
    if (accounts.length > 0) await record(query, by, { action: 'losses.released', ...whose, before: {}, after })
    return accounts
  })
}

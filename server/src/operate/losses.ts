import { z } from 'zod'
import {
  type AccountLosses,
  countedForRoute,
  createLossSums,
  type LossCeilings,
  type LossWindow,
  type ReachedCeiling,
  reachedCeilings,
  WINDOWS,
} from '../calls/loss-sums.ts'
import { evidencedSince, type LostInMinute, readDay, releaseLosses, timeOfLosses } from '../calls/losses.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, type Nanos, nanos, ZERO } from '../kernel/money.ts'
import { overrunOfLastDay } from '../ledger/overrun.ts'
import { record } from '../storage/audit.ts'
import { inTransaction } from '../storage/transaction.ts'
import { action, field, type OperatorParts } from './action.ts'
import { idField, NO_INPUT } from './fields.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

const list = action({
  name: 'losses',
  summary: 'list losses (provider cost above what was charged) and the loss limits they have reached',
  effect: 'reads',
  positional: [],
  input: NO_INPUT,
  run: ({ pool, settings }) => readLosses(pool, settings.lossCeilings),
  lines: ({ routes, presumed }) => [
    ...(routes.length === 0
      ? ['No proven losses in the last 24 hours: no upstream reported more than was charged.']
      : []),
    ...routes.flatMap(({ route, accounts, ...sums }) => [
      `${route}  ${sumsText(sums)}${stateText(route, null, sums.refusedSince)}`,
      ...accounts.map(
        (one) => `  ${one.accountId}  ${sumsText(one)}${stateText(route, one.accountId, one.refusedSince)}`,
      ),
    ]),
    `Presumed losses in the last 24 hours, which do not count towards a limit: ${formatUsd(presumed)} USD.`,
  ],
})

/** What was lost in the last day, by route and account, and what its ceilings stop. */
export async function readLosses(pool: OperatorParts['pool'], ceilings: LossCeilings) {
  const nowMs = await timeOfLosses(pool)
  const minute = Math.floor(nowMs / MINUTE_MS)
  const minutes = await readDay(pool, minute)
  const sums = createLossSums()
  sums.put(minutes)
  const all = sums.at(minute)
  const reached = reachedCeilings(all, ceilings)
  const refusedSince = (route: string, accountId: Id | null) => {
    const found = reached.find((one) => one.route === route && one.accountId === accountId)
    return found === undefined ? null : sinceOf(found, minutes)
  }
  const routes = all.map(({ route, accounts }) => ({
    route,
    hour: countedForRoute(accounts, 'hour', ceilings),
    day: countedForRoute(accounts, 'day', ceilings),
    ceilings: ceilings.route,
    refusedSince: refusedSince(route, null),
    accounts: accounts
      .toSorted((a, b) => Number(b.day - a.day))
      .map((one) => ({ ...one, ceilings: ceilings.account, refusedSince: refusedSince(route, one.accountId) })),
  }))
  // What was released was evidenced all the same.
  const presumed = (await overrunOfLastDay(pool, nowMs)) - (await evidencedSince(pool, nowMs - DAY_MS))
  return { routes, presumed: nanos(presumed > 0n ? presumed : 0n) }
}

type Sums = Pick<AccountLosses, LossWindow> & { readonly ceilings: Readonly<Record<LossWindow, Nanos | null>> }

function sumsText({ ceilings, ...sums }: Sums): string {
  return WINDOWS.map((window) => {
    const ceiling = ceilings[window]
    const within = `USD in the last ${window}`
    if (ceiling === null) return `${formatUsd(sums[window])} ${within} (no limit)`
    return `${formatUsd(sums[window])} of ${formatUsd(ceiling)} ${within}`
  }).join('  ')
}

function stateText(route: string, accountId: Id | null, since: string | null): string {
  if (since === null) return ''
  const release = `farebox losses release --route ${route}${accountId === null ? '' : ` --account ${accountId}`}`
  return `  REFUSED since ${since}: ${release}`
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

const release = action({
  name: 'losses release',
  summary: 'release a route that a loss limit stopped: losses until now no longer count',
  effect: 'writes',
  positional: [],
  input: z.object({
    route: field('route', 'route as listed by farebox losses, such as gpt@openai:live', String),
    account: idField('id', 'release only for this account (default: all accounts)').optional(),
  }),
  async run(parts, { route, account }) {
    const accounts = await releaseRecorded(parts, { route, accountId: account })
    if (accounts.length === 0)
      throw new Error(`there are no losses at ${route} that still count: see farebox losses for the names of routes`)
    return { route, accounts }
  },
  lines: ({ route, accounts }, { account }) => {
    const whose = account === undefined ? `${accounts.length} accounts` : `account ${account}`
    return [`Losses of ${whose} at ${route} until now no longer count; effective within a second.`]
  },
})

/** The release and the record of who released are written together, or neither is. */
function releaseRecorded(
  { pool, ids, by }: OperatorParts,
  { route, accountId }: { readonly route: string; readonly accountId: Id | undefined },
): Promise<readonly Id[]> {
  return inTransaction(pool, async (query) => {
    const accounts = await releaseLosses(query, ids, { route, accountId, actor: by.actor })
    const after = { route, accounts: accounts.length }
    const whose = accountId === undefined ? { subject: route } : { of: accountId, subject: accountId }
    if (accounts.length > 0) await record(query, by, { action: 'losses.released', ...whose, before: {}, after })
    return accounts
  })
}

export const losses = [list, release]

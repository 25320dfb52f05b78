import type pg from 'pg'
import type { Clock } from '../kernel/clock.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd } from '../kernel/money.ts'
import type { Log } from '../telemetry/log.ts'
import { createLossSums, type LossCeilings, type ReachedCeiling, reachedCeilings } from './loss-sums.ts'
import { lastRelease, readLosses } from './losses.ts'

/**
 * Which ceilings on loss are reached, as far as this process knows: it adds up what all have lost every second. While PostgreSQL
 * can't be asked, what was known last stays.
 */
export type LossWatch = {
  /** Whether no ceiling is reached at all, as a rule. */
  readonly isQuiet: () => boolean
  /** The ceiling for which an account's call to a route is refused: the account's own, else the route's. */
  readonly find: (accountId: Id, route: string) => ReachedCeiling | undefined
  readonly look: () => Promise<void>
}

type Parts = {
  readonly pool: pg.Pool
  readonly ceilings: LossCeilings
  /** PostgreSQL's time, which is that of the losses. */
  readonly time: Pick<Clock, 'nowMs'>
  readonly log: Pick<Log, 'error' | 'info'>
  readonly metrics: {
    readonly lossCeilingsReached: { set(labels: { readonly scope: 'account' | 'route' }, value: number): void }
  }
}

const MINUTE_MS = 60_000
/** The whole minutes of a day, and the one that runs. */
const DAY_MS = (24 * 60 + 1) * MINUTE_MS
/** A loss has the time at which its call was judged, and can be read once it is committed: a moment later, as a rule. */
const LATE_MS = 3 * MINUTE_MS
/** Who committed later still, because a standby was waited for, is seen when all is read again. */
const WHOLE_EVERY_MS = 10 * MINUTE_MS

export function createLossWatch({ pool, ceilings, time, log, metrics }: Parts): LossWatch {
  const sums = createLossSums()
  let read: { readonly atMs: number; readonly wholeAtMs: number; readonly release: string | null } | undefined
  let known: ReadonlyMap<string, ReachedCeiling> = new Map()

  async function look(): Promise<void> {
    const atMs = time.nowMs()
    const release = await lastRelease(pool)
    const isWhole = read === undefined || read.release !== release || atMs - read.wholeAtMs >= WHOLE_EVERY_MS
    const sinceMs = read === undefined || isWhole ? atMs - DAY_MS : read.atMs - LATE_MS
    // Minutes are replaced, and have to be read whole.
    const minutes = await readLosses(pool, Math.floor(sinceMs / MINUTE_MS) * MINUTE_MS)
    if (isWhole) sums.clear()
    sums.put(minutes)
    read = { atMs, wholeAtMs: isWhole ? atMs : (read?.wholeAtMs ?? atMs), release }
    tell(reachedCeilings(sums.at(Math.floor(atMs / MINUTE_MS)), ceilings))
  }

  function tell(reached: readonly ReachedCeiling[]): void {
    const before = known
    known = new Map(reached.map((one) => [keyOf(one.accountId, one.route), one]))
    for (const [key, one] of known) if (!before.has(key)) sayReached(log, one)
    for (const [key, { route, accountId }] of before)
      if (!known.has(key))
        log.info('a ceiling on loss is no longer reached', { route, ...(accountId && { account_id: accountId }) })
    const ofAccounts = reached.filter(({ accountId }) => accountId !== null).length
    metrics.lossCeilingsReached.set({ scope: 'account' }, ofAccounts)
    metrics.lossCeilingsReached.set({ scope: 'route' }, reached.length - ofAccounts)
  }

  return {
    isQuiet: () => known.size === 0,
    find: (accountId, route) => known.get(keyOf(accountId, route)) ?? known.get(keyOf(null, route)),
    look,
  }
}

function keyOf(accountId: Id | null, route: string): string {
  return `${accountId ?? ''} ${route}`
}

function sayReached(log: Pick<Log, 'error'>, { route, accountId, window, lost, ceiling }: ReachedCeiling): void {
  const fields = { route, amount: formatUsd(lost), reason: `ceiling ${formatUsd(ceiling)} USD in a ${window}` }
  if (accountId === null) log.error('loss ceiling reached: a route is asked for nobody', fields)
  else log.error('loss ceiling reached: an account is refused at a route', { ...fields, account_id: accountId })
}

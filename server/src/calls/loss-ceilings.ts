import type pg from 'pg'
import type { Clock } from '../kernel/clock.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import { formatUsd } from '../kernel/money.ts'
import type { Log } from '../telemetry/log.ts'
import { createLossSums, type LossCeilings, type ReachedCeiling, reachedCeilings } from './loss-sums.ts'
import { countReleases, partsOfDay, readDay, readHour, readLosses } from './losses.ts'

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
    readonly lossCeilingsReached: {
      set(labels: { readonly scope: 'account' | 'route'; readonly mode: Mode }, value: number): void
    }
  }
}

const MINUTE_MS = 60_000
/** A loss has the time at which its call was judged, and can be read once it is committed: a moment later, as a rule. */
const LATE_MS = 3 * MINUTE_MS
/** Rows that committed later still, because a standby was waited for, are seen when their part of the day is read again: in ten minutes. */
const AGAIN_EVERY_MS = 24_000

type Read = {
  readonly atMs: number
  /** When a part of the day was last read again, and how often that was done. */
  readonly againAtMs: number
  readonly again: number
  readonly releases: string
}

export function createLossWatch({ pool, ceilings, time, log, metrics }: Parts): LossWatch {
  let sums = createLossSums()
  let read: Read | undefined
  let known: ReadonlyMap<string, ReachedCeiling> = new Map()

  /** What is new comes first: it must be known also where the rest of the day can't be read. */
  async function look(): Promise<void> {
    const atMs = time.nowMs()
    const minute = Math.floor(atMs / MINUTE_MS)
    if (read !== undefined) {
      // Minutes are replaced, and have to be read whole.
      sums.put(await readLosses(pool, Math.floor((read.atMs - LATE_MS) / MINUTE_MS) * MINUTE_MS))
      read = { ...read, atMs }
      tell(minute)
    }
    const releases = await countReleases(pool)
    if (read === undefined || read.releases !== releases) {
      const fresh = createLossSums()
      fresh.put(await readDay(pool, minute))
      sums = fresh
      read = { atMs, againAtMs: atMs, again: 0, releases }
      tell(minute)
    } else if (atMs - read.againAtMs >= AGAIN_EVERY_MS) {
      read = { ...read, againAtMs: atMs, again: read.again + 1 }
      await readAgain(read.again, minute)
      tell(minute)
    }
  }

  /** One part of the day after another: its hours, and its minutes. */
  async function readAgain(turn: number, minute: number): Promise<void> {
    const { hours, minutesSinceMs } = partsOfDay(minute)
    const hour = hours[turn % (hours.length + 1)]
    if (hour === undefined) sums.put(await readLosses(pool, minutesSinceMs))
    else sums.fold(hour, await readHour(pool, hour))
  }

  function tell(minute: number): void {
    const before = known
    const reached = reachedCeilings(sums.at(minute), ceilings)
    known = new Map(reached.map((one) => [keyOf(one.accountId, one.route), one]))
    for (const [key, one] of known) if (!before.has(key)) sayReached(log, one)
    for (const [key, { route, accountId }] of before)
      if (!known.has(key))
        log.info('a ceiling on loss is no longer reached', { route, ...(accountId && { account_id: accountId }) })
    for (const mode of ['live', 'test'] as const) {
      const ofMode = reached.filter(({ route }) => modeOf(route) === mode)
      const ofAccounts = ofMode.filter(({ accountId }) => accountId !== null).length
      metrics.lossCeilingsReached.set({ scope: 'account', mode }, ofAccounts)
      metrics.lossCeilingsReached.set({ scope: 'route', mode }, ofMode.length - ofAccounts)
    }
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

function modeOf(route: string): Mode {
  return route.endsWith(':test') ? 'test' : 'live'
}

/** Nobody loses money in test mode, where whoever has a key can ask for a loss: it must not wake anybody. */
function sayReached(
  log: Pick<Log, 'error' | 'info'>,
  { route, accountId, window, lost, ceiling }: ReachedCeiling,
): void {
  const fields = { route, amount: formatUsd(lost), reason: `ceiling ${formatUsd(ceiling)} USD in a ${window}` }
  const say = modeOf(route) === 'live' ? log.error : log.info
  if (accountId === null) say('loss ceiling reached: a route is asked for nobody', fields)
  else say('loss ceiling reached: an account is refused at a route', { ...fields, account_id: accountId })
}

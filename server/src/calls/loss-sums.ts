import { CONTRIBUTORS_LEAST } from '../kernel/contributors.ts'
import type { Id } from '../kernel/ids.ts'
import { capped, NANOS_LIMIT, type Nanos, nanos, ZERO } from '../kernel/money.ts'
import type { LostInMinute } from './losses.ts'

/** How much evidenced loss the operator bears before calls are refused; null for no ceiling. */
export type LossCeilings = {
  /** The ceiling on one account's calls to one route. */
  readonly account: ByWindow<Nanos | null>
  /** The ceiling on a route over all accounts. */
  readonly route: ByWindow<Nanos | null>
}

type ByWindow<T> = Readonly<Record<LossWindow, T>>
export type LossWindow = 'hour' | 'day'

/** A ceiling that is reached: of an account at a route, or of the whole route. */
export type ReachedCeiling = {
  readonly route: string
  /** Null where it is the route's. */
  readonly accountId: Id | null
  readonly window: LossWindow
  /** What counted towards it. */
  readonly lost: Nanos
  readonly ceiling: Nanos
}

/** What was lost at a route in the last hour and the last day, by account. */
export type RouteLosses = { readonly route: string; readonly accounts: readonly AccountLosses[] }
export type AccountLosses = ByWindow<Nanos> & { readonly accountId: Id }

export const WINDOWS: readonly LossWindow[] = ['hour', 'day']
const MINUTES: ByWindow<number> = { hour: 60, day: 24 * 60 }

type Settings = Readonly<Record<`${'account' | 'route'}_${LossWindow}_usd`, Nanos | null>>

export function ceilingsOf(loss: Settings): LossCeilings {
  return {
    account: { hour: loss.account_hour_usd, day: loss.account_day_usd },
    route: { hour: loss.route_hour_usd, day: loss.route_day_usd },
  }
}

/** Minutes of losses, added up over the last hour and the last day. The minute that runs counts beside them. */
export type LossSums = {
  /** What was known of the same minutes is replaced. */
  readonly put: (minutes: readonly LostInMinute[]) => void
  /** All minutes of an hour, counted since 1970, are replaced by one. */
  readonly fold: (hour: number, losses: readonly LostInMinute[]) => void
  readonly at: (minute: number) => readonly RouteLosses[]
}

type Kept = { readonly minutes: Map<number, Nanos>; summed?: AccountLosses & { readonly minute: number } }

export function createLossSums(): LossSums {
  const routes = new Map<string, Map<Id, Kept>>()

  /** Added up again only where something has changed, or a minute has passed. */
  function sumOf(accountId: Id, kept: Kept, minute: number): AccountLosses {
    if (kept.summed?.minute === minute) return kept.summed
    let [hour, day] = [ZERO, ZERO]
    for (const [at, lost] of kept.minutes) {
      if (at < minute - MINUTES.day) kept.minutes.delete(at)
      else day = added(day, lost)
      if (at >= minute - MINUTES.hour) hour = added(hour, lost)
    }
    kept.summed = { accountId, hour, day, minute }
    return kept.summed
  }

  function put(minutes: readonly LostInMinute[]): void {
    for (const { route, accountId, minute, nanos: lost } of minutes) {
      const accounts = routes.get(route) ?? new Map<Id, Kept>()
      const kept = accounts.get(accountId) ?? { minutes: new Map<number, Nanos>() }
      if (kept.minutes.get(minute) === lost) continue
      kept.minutes.set(minute, lost)
      delete kept.summed
      routes.set(route, accounts.set(accountId, kept))
    }
  }

  function forgetHour(kept: Kept, hour: number): void {
    for (let minute = hour * MINUTES.hour; minute < (hour + 1) * MINUTES.hour; minute += 1)
      if (kept.minutes.delete(minute)) delete kept.summed
  }

  return {
    put,
    fold(hour, losses) {
      for (const accounts of routes.values()) for (const kept of accounts.values()) forgetHour(kept, hour)
      put(losses)
    },
    at(minute) {
      const all: RouteLosses[] = []
      for (const [route, accounts] of routes) {
        const summed: AccountLosses[] = []
        for (const [accountId, kept] of accounts) {
          const sum = sumOf(accountId, kept, minute)
          if (kept.minutes.size === 0) accounts.delete(accountId)
          else summed.push(sum)
        }
        if (accounts.size === 0) routes.delete(route)
        else all.push({ route, accounts: summed })
      }
      return all
    },
  }
}

function added(a: Nanos, b: Nanos): Nanos {
  return capped(a + b)
}

function smaller(a: bigint, b: bigint): Nanos {
  return nanos(a < b ? a : b)
}

/** Which ceilings are reached. An account counts towards a route's with its own ceiling at the most, and its share of that. */
export function reachedCeilings(losses: readonly RouteLosses[], ceilings: LossCeilings): readonly ReachedCeiling[] {
  return losses.flatMap(({ route, accounts }) => [
    ...accounts.flatMap(({ accountId, ...lost }) =>
      first((window) => reached(route, accountId, window, lost[window], ceilings.account[window])),
    ),
    ...first((window) =>
      reached(route, null, window, countedForRoute(accounts, window, ceilings), ceilings.route[window]),
    ),
  ])
}

/** What an account alone has lost is not the route's fault: it takes several to reach the ceiling of a route. */
export function countedForRoute(accounts: readonly AccountLosses[], window: LossWindow, ceilings: LossCeilings): Nanos {
  const ofRoute = ceilings.route[window] ?? nanos(NANOS_LIMIT)
  const share = (ofRoute + CONTRIBUTORS_LEAST - 1n) / CONTRIBUTORS_LEAST
  const most = smaller(share, ceilings.account[window] ?? share)
  return accounts.reduce((sum, lost) => added(sum, smaller(lost[window], most)), ZERO)
}

function reached(
  route: string,
  accountId: Id | null,
  window: LossWindow,
  lost: Nanos,
  ceiling: Nanos | null,
): ReachedCeiling | undefined {
  return ceiling === null || lost < ceiling ? undefined : { route, accountId, window, lost, ceiling }
}

/** The day's rather than the hour's: it lasts longer. */
function first(find: (window: LossWindow) => ReachedCeiling | undefined): readonly ReachedCeiling[] {
  const found = find('day') ?? find('hour')
  return found === undefined ? [] : [found]
}

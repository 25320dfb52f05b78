import type { Clock } from '../../kernel/clock.ts'
import { createRecentMap } from '../../kernel/recent-map.ts'
import type { Route } from '../../pricing/models.ts'
import type { RouteReason } from '../plan.ts'
import { type Conversation, KEYS } from './conversation.ts'
import { orderFor } from './route-order.ts'

/** All routes in the order in which a call asks them, and why the first of them is the first. */
export type RouteChoice = {
  readonly routes: readonly Route[]
  readonly reason: RouteReason
  /** For a while the conversation asks this route last, so that a retry of the caller's goes on to the next. */
  readonly putLast: (route: Route) => void
}

/** Of several routes of the first priority; `group` names what they serve. */
export type ChooseRoutes = (routes: readonly Route[], conversation: () => Conversation, group: string) => RouteChoice

type Parts = { readonly clock: Pick<Clock, 'monotonicMs'>; readonly random?: () => number }

const MINUTE_MS = 60_000
/** A conversation may have so many times a route's share of the requests of the last minute. */
const SHARE_MOST = 1.25
/** And so many requests whatever the shares are: with little traffic, one conversation is most of it, and waits for its own answers. */
export const FREE_REQUESTS = 60
/** Numbers that are kept: those of the conversations that were seen last. */
const COUNTS_MOST = 20_000
/** So long a conversation asks a route last that has failed it. */
export const LAST_FOR_MS = 30_000
/** Failures that are kept, those that were used last. */
const FAILURES_MOST = 20_000

/**
 * Keeps a conversation on one route. What one name has too much of goes on along the same order: each of its conversations to one place,
 * by how it begins, or where too many begin alike, by how it goes on; what is alike in both, by chance.
 */
export function createRouteChoice({ clock, random = Math.random }: Parts): ChooseRoutes {
  const countOf = createMinuteCounts(clock)
  /** When a route has failed a conversation. */
  const failures = createRecentMap<string, number>(FAILURES_MOST)
  let lastFailureMs = Number.NEGATIVE_INFINITY

  /** None where that would be all of them. */
  function failedOf(routes: readonly Route[], name: string): readonly Route[] {
    const sinceMs = clock.monotonicMs() - LAST_FOR_MS
    if (lastFailureMs <= sinceMs) return []
    const failed = routes.filter(({ id }) => (failures.get(`${name} ${id}`) ?? Number.NEGATIVE_INFINITY) > sinceMs)
    return failed.length === routes.length ? [] : failed
  }

  function placeOf({ key, opening, continuation }: Conversation, group: string, most: number): number {
    for (const digestOf of [opening, continuation]) {
      const digest = digestOf()
      if (digest === undefined || digest === key) continue
      if (countOf(`${group} ${digest}`) <= most) return digest / KEYS
    }
    return random()
  }

  /** The place of the route that takes it, among equals in its order. */
  function spillsTo(equals: readonly Route[], conversation: Conversation, group: string, name: string): number {
    const inAll = countOf(group)
    const ofKey = countOf(name)
    if (ofKey <= FREE_REQUESTS) return 0
    const weights = equals.reduce((sum, { weight }) => sum + weight, 0)
    const most = equals.map(({ weight }) => Math.max(FREE_REQUESTS, (SHARE_MOST * inAll * weight) / weights))
    if (ofKey <= (most[0] ?? 0)) return 0
    let left = placeOf(conversation, group, most[0] ?? 0) * ofKey
    const at = most.findIndex((limit) => {
      left -= limit
      return left < 0
    })
    return Math.max(0, at)
  }

  return (routes, conversation, group) => {
    if (routes.length < 2) return { routes, reason: 'only', putLast: () => {} }
    const talk = conversation()
    const name = `${group} ${talk.key}`
    const putLast = ({ id }: Route) => {
      lastFailureMs = clock.monotonicMs()
      failures.set(`${name} ${id}`, lastFailureMs)
    }
    const order = orderFor(routes, talk.key)
    const isAlone = order[1]?.priority !== order[0]?.priority
    const failed = failedOf(order, name)
    const left = failed.length === 0 ? order : order.filter((route) => !failed.includes(route))
    const equals = left.filter(({ priority }) => priority === left[0]?.priority)
    const at = equals.length === 1 ? 0 : spillsTo(equals, talk, group, name)
    if (at === 0 && failed.length === 0) return { routes: order, reason: isAlone ? 'only' : 'sticky', putLast }
    const turned = [...equals.slice(at), ...equals.slice(0, at), ...left.slice(equals.length), ...failed]
    if (left[0] !== order[0]) return { routes: turned, reason: 'failover', putLast }
    return { routes: turned, reason: isAlone ? 'only' : at === 0 ? 'sticky' : 'spill', putLast }
  }
}

type Count = { minute: number; now: number; before: number }

/**
 * Counts one more of a name, and says how many there were in the last minute: those of this minute of the clock, and of the one before as
 * large a part as is not over yet. Of names that were not seen for long nothing is known.
 */
function createMinuteCounts(clock: Parts['clock']): (name: string) => number {
  const counts = createRecentMap<string, Count>(COUNTS_MOST)
  return (name) => {
    const ms = clock.monotonicMs()
    const minute = Math.floor(ms / MINUTE_MS)
    const known = counts.get(name)
    const count = known ?? { minute, now: 0, before: 0 }
    if (known === undefined) counts.set(name, count)
    if (count.minute !== minute) {
      count.before = count.minute === minute - 1 ? count.now : 0
      count.now = 0
      count.minute = minute
    }
    count.now += 1
    return count.now + count.before * (1 - (ms % MINUTE_MS) / MINUTE_MS)
  }
}

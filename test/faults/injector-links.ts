import { setTimeout as delay } from 'node:timers/promises'
import type { Cluster } from './cluster.ts'
import type { Link, LinkFault, LinkKind, PlannedFault } from './plan.ts'
import { prey } from './prey.ts'
import type { Way } from './way.ts'

/** What happens between two processes, by the fault proxy on their way. */

type LinkStrike = (way: Way, fault: PlannedFault, link: Link) => Promise<number>

/** Slow, and yet fast enough that most calls end. */
const LATENCY_MS: Readonly<Record<Link, number>> = {
  client: 150,
  edge: 100,
  database: 40,
  upstream: 150,
  operator: 100,
}
const BYTES_PER_SECOND: Readonly<Record<Link, number>> = {
  client: 8_000,
  edge: 8_000,
  database: 64_000,
  upstream: 16_000,
  operator: 16_000,
}
const SLICE: Readonly<Record<Link, number>> = { client: 16, edge: 16, database: 128, upstream: 16, operator: 64 }

/** How many stalls of a way last now. */
const STALLS = new WeakMap<Way, number>()

const LINK_STRIKES: Readonly<Record<LinkFault, LinkStrike>> = {
  async cut(way, { atMs }) {
    const hits = await prey(way.busy)
    way.cut(atMs % 2 === 0 ? 'reset' : 'end')
    return hits
  },
  async stall(way, { forMs }) {
    STALLS.set(way, (STALLS.get(way) ?? 0) + 1)
    way.stall()
    await delay(forMs)
    const hits = await prey(way.heldBytes)
    const others = (STALLS.get(way) ?? 1) - 1
    STALLS.set(way, others)
    // The last of those that overlap lets everything pass again.
    if (others === 0) way.resume()
    return hits
  },
  slow: (way, { forMs }, link) =>
    whilePassing(
      way,
      forMs,
      () => way.delay(LATENCY_MS[link]),
      () => way.delay(0),
    ),
  throttle: (way, { forMs }, link) =>
    whilePassing(
      way,
      forMs,
      () => way.throttle(BYTES_PER_SECOND[link]),
      () => way.throttle(Number.POSITIVE_INFINITY),
    ),
  slice: (way, { forMs }, link) =>
    whilePassing(
      way,
      forMs,
      () => way.slice(SLICE[link], 1),
      () => way.slice(Number.POSITIVE_INFINITY, 0),
    ),
  async 'half-close'(way, { atMs }) {
    const hits = await prey(way.busy)
    for (const connection of way.connections()) connection.halfClose(atMs % 2 === 0 ? 'toServer' : 'toClient')
    return hits
  },
}

export function strikeLink(fault: PlannedFault & { readonly kind: LinkKind }, cluster: Cluster): Promise<number> {
  const [verb, link] = fault.kind.split(' ') as [LinkFault, Link]
  const way = cluster.ways.all.find(({ name }) => name === fault.target)
  if (way === undefined) throw new Error(`there is no way ${fault.target}`)
  const work = () => LINK_STRIKES[verb](way, fault, link)
  // Who kills the sandbox holds its way up meanwhile.
  return link === 'upstream' && verb === 'stall' ? cluster.upstream.turn(work) : work()
}

async function whilePassing(way: Way, forMs: number, begin: () => void, end: () => void): Promise<number> {
  const before = way.passes()
  begin()
  await delay(forMs)
  const hits = await prey(() => way.passes() - before)
  end()
  return hits
}

import type { Route } from '../../pricing/models.ts'

/** What decides a route's place among its equals: each has its own chance by its weight. */
type Weighted = Pick<Route, 'id' | 'priority' | 'weight'>

/**
 * All routes in the order in which they are to be asked: by priority, and among equals by a draw from (0, 1] for each, where
 * each comes first as often as its share of their weight.
 */
export function orderRoutes<R extends Weighted>(routes: readonly R[], draw: (route: R) => number): readonly R[] {
  if (routes.length < 2) return routes
  return routes
    .map((route) => ({ route, place: -Math.log(draw(route)) / route.weight }))
    .toSorted((a, b) => a.route.priority - b.route.priority || a.place - b.place)
    .map(({ route }) => route)
}

/**
 * Weighted rendezvous hashing: key and route alone decide the draw. Every process puts a conversation's routes in the same order without
 * asking anybody, and a route that comes or goes changes the place of no other.
 */
export function orderFor<R extends Weighted>(routes: readonly R[], key: number): readonly R[] {
  return orderRoutes(routes, ({ id }) => drawOf(key, id))
}

const WORD = 2 ** 32
/** Key and draw have as many bits as a number holds exactly. */
const KEY_BITS = 53

/** Two words of 32 bits are mixed with each character, and with each other at the end (cyrb53, public domain). */
function drawOf(key: number, id: string): number {
  let one = 0xdeadbeef ^ (key % WORD)
  let other = 0x41c6ce57 ^ (key / WORD)
  for (let at = 0; at < id.length; at += 1) {
    const character = id.charCodeAt(at)
    one = Math.imul(one ^ character, 2_654_435_761)
    other = Math.imul(other ^ character, 1_597_334_677)
  }
  one = Math.imul(one ^ (one >>> 16), 2_246_822_507) ^ Math.imul(other ^ (other >>> 13), 3_266_489_909)
  other = Math.imul(other ^ (other >>> 16), 2_246_822_507) ^ Math.imul(one ^ (one >>> 13), 3_266_489_909)
  const bits = (other >>> (64 - KEY_BITS)) * WORD + (one >>> 0)
  return (bits + 1) / 2 ** KEY_BITS
}

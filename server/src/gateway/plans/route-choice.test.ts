import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Route } from '../../pricing/models.ts'
import { PLAIN_PROFILE } from '../../protocols/route-profile.ts'
import { type Conversation, conversationOf } from './conversation.ts'
import { createRouteChoice, FREE_REQUESTS, LAST_FOR_MS } from './route-choice.ts'

const MINUTE_MS = 60_000
const GROUP = 'maker/model openai test'

function route(id: string, weight = 1, priority = 0): Route {
  return { id, slot: id, protocol: 'openai', upstreamModel: id, priority, weight, profile: PLAIN_PROFILE }
}

function talk(first: string, name?: string, next?: string): Conversation {
  const answer = next === undefined ? [] : [{ role: 'assistant', content: next }]
  const messages = [{ role: 'user', content: first }, ...answer]
  const body = { messages, ...(name !== undefined && { prompt_cache_key: name }) }
  const said = { accountId: 'account', model: 'maker/model', protocol: 'openai' as const, headers: {} }
  return conversationOf({ ...said, body, endUser: undefined })
}

/** A choice whose clock stands until a test moves it, and whose chance is a sequence that fills [0, 1) evenly. */
function makeChoice() {
  let ms = 0
  let drawn = 0
  const choose = createRouteChoice({
    clock: { monotonicMs: () => ms },
    random: () => {
      drawn += 0.618_033_988_75
      return drawn % 1
    },
  })
  return {
    first(routes: readonly Route[], conversation: Conversation) {
      const { routes: order, reason } = choose(routes, () => conversation, GROUP)
      assert.deepEqual(new Set(order), new Set(routes))
      return { id: order[0]?.id ?? '', reason }
    },
    /** It is asked, and the route that takes it fails. */
    fail(routes: readonly Route[], conversation: Conversation, group = GROUP) {
      const { routes: order, reason, putLast } = choose(routes, () => conversation, group)
      const [route] = order
      if (route !== undefined) putLast(route)
      return { id: route?.id ?? '', reason }
    },
    pass: (by: number) => {
      ms += by
    },
  }
}

const THREE = [route('a'), route('b'), route('c')]

describe('the choice of a route', () => {
  it('is no choice where there is one route, or one of the first priority', () => {
    const { first } = makeChoice()
    assert.deepEqual(first([route('a')], talk('x')), { id: 'a', reason: 'only' })
    assert.deepEqual(first([route('b', 9, 2), route('a', 1, 1)], talk('x')), { id: 'a', reason: 'only' })
  })

  it('is the same for every turn of a conversation, also where there is no other', () => {
    const { first, pass } = makeChoice()
    const home = first(THREE, talk('x'))
    assert.equal(home.reason, 'sticky')
    for (let turn = 1; turn < FREE_REQUESTS; turn += 1) assert.deepEqual(first(THREE, talk('x')), home)
    pass(2 * MINUTE_MS)
    for (let turn = 0; turn < FREE_REQUESTS; turn += 1) assert.deepEqual(first(THREE, talk('x')), home)
  })

  for (const [what, firstWords] of [
    ['that begins each conversation with other words', (at: number) => `conversation ${at % 150}`],
    ['that always begins with the same', () => 'always the same'],
  ] as const)
    it(`spills the one name of a customer ${what}, over all routes`, () => {
      const { first } = makeChoice()
      const counts = new Map<string, number>()
      const reasons = new Set<string>()
      for (let at = 0; at < 3_000; at += 1) {
        const { id, reason } = first(THREE, talk(firstWords(at), 'everything'))
        counts.set(id, (counts.get(id) ?? 0) + 1)
        reasons.add(reason)
      }
      assert.deepEqual(reasons, new Set(['sticky', 'spill']))
      const sorted = [...counts.values()].sort((one, other) => other - one)
      assert.equal(sorted.length, 3)
      // 1.25 shares of a third are 41.7 %; what was free at first, and what few conversations do by chance, comes on top.
      assert.ok((sorted[0] ?? 0) < 0.5 * 3_000, sorted.join())
      assert.ok((sorted[2] ?? 0) > 0.05 * 3_000, sorted.join())
    })

  it('keeps most conversations of such a name where they are', () => {
    const { first } = makeChoice()
    const at = (turn: number) =>
      Array.from({ length: 300 }, (_, one) => first(THREE, talk(`conversation ${one}`, 'everything')).id).map(
        (id) => [turn, id] as const,
      )
    at(0)
    const before = at(1)
    const after = at(2)
    const moved = after.filter(([, id], one) => id !== before[one]?.[1])
    assert.ok(moved.length < 15, `${moved.length} of 300 moved`)
  })

  it('keeps most conversations where they are that begin alike, from their second turn on', () => {
    const { first } = makeChoice()
    const turn = () =>
      Array.from({ length: 300 }, (_, one) => first(THREE, talk('Hello', undefined, `answer ${one}`)).id)
    turn()
    const before = turn()
    const moved = turn().filter((id, one) => id !== before[one])
    assert.equal(new Set(before).size, 3)
    assert.ok(moved.length < 15, `${moved.length} of 300 moved`)
  })

  it('spills by the weights', () => {
    const routes = [route('a', 1), route('b', 3)]
    const shareAtHome = (home: string) => {
      const { first } = makeChoice()
      const names = Array.from({ length: 100 }, (_, at) => `loud ${at}`)
      const loud = names.find((name) => makeChoice().first(routes, talk(name)).id === home) ?? ''
      const asked = Array.from({ length: 3_000 }, () => first(routes, talk(loud)).id)
      return asked.filter((id) => id === home).length / asked.length
    }
    // 1.25 times a quarter, and 1.25 times three quarters, and the first requests are free.
    assert.ok(Math.abs(shareAtHome('a') - 0.312_5) < 0.05, String(shareAtHome('a')))
    assert.ok(Math.abs(shareAtHome('b') - 0.937_5) < 0.02, String(shareAtHome('b')))
  })

  it('spills no conversation but one that has too much', () => {
    const { first } = makeChoice()
    const quiet = Array.from({ length: 4 }, (_, at) => talk(`quiet ${at}`))
    const homes = quiet.map((one) => first(THREE, one))
    const loud: string[] = []
    // More each than is free, and less than a share.
    for (let at = 0; at < 2 * FREE_REQUESTS; at += 1) {
      for (let more = 0; more < 12; more += 1) loud.push(first(THREE, talk('loud')).reason)
      assert.deepEqual(
        quiet.map((one) => first(THREE, one)),
        homes,
      )
    }
    assert.ok(loud.includes('spill'))
  })

  it('ends with the minute in which there was too much', () => {
    const { first, pass } = makeChoice()
    const home = first(THREE, talk('loud'))
    const all = () => Array.from({ length: 300 }, () => first(THREE, talk('loud')).reason)
    assert.ok(all().includes('spill'))
    pass(2 * MINUTE_MS)
    assert.deepEqual(first(THREE, talk('loud')), home)
  })

  it('goes on to the next for half a minute where a route has failed the conversation, and no other conversation does', () => {
    const { first, fail, pass } = makeChoice()
    const home = fail(THREE, talk('x'))
    const others = Array.from({ length: 40 }, (_, at) => talk(`other ${at}`))
    const homes = others.map((one) => first(THREE, one))
    assert.ok(homes.some(({ id }) => id === home.id))
    assert.ok(homes.every(({ reason }) => reason === 'sticky'))
    const next = first(THREE, talk('x'))
    assert.ok(next.id !== home.id && next.reason === 'failover')
    pass(LAST_FOR_MS - 1)
    assert.deepEqual(first(THREE, talk('x')), next)
    pass(1)
    assert.deepEqual(first(THREE, talk('x')), { id: home.id, reason: 'sticky' })
  })

  it('asks a route that has failed before none at all, and where all have, each in its turn', () => {
    const { first, fail } = makeChoice()
    const asked = [fail(THREE, talk('x')), fail(THREE, talk('x')), fail(THREE, talk('x'))]
    assert.deepEqual(new Set(asked.map(({ id }) => id)), new Set(['a', 'b', 'c']))
    assert.deepEqual(first(THREE, talk('x')), asked[0])
    const two = [route('first'), route('second', 1, 1)]
    assert.deepEqual(fail(two, talk('x')), { id: 'first', reason: 'only' })
    assert.deepEqual(first(two, talk('x')), { id: 'second', reason: 'failover' })
    assert.deepEqual(fail([route('a')], talk('x')), { id: 'a', reason: 'only' })
    assert.deepEqual(first([route('a')], talk('x')), { id: 'a', reason: 'only' })
  })

  it('keeps what one group of requests was failed by from the others', () => {
    const { first, fail } = makeChoice()
    const home = fail(THREE, talk('x'), 'maker/another openai test')
    assert.deepEqual(first(THREE, talk('x')), home)
  })
})

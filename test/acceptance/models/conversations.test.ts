import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { count, isFullProof, recordProof } from '../../../harness/proof.ts'
import { SANDBOX_LIMITS, SANDBOX_PRICE } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { conversationOf } from '../../../server/src/gateway/plans/conversation.ts'
import { createRouteChoice } from '../../../server/src/gateway/plans/route-choice.ts'
import { createSeal } from '../../../server/src/kernel/seal.ts'
import { Secret } from '../../../server/src/kernel/secret.ts'
import { saveModel, saveRoute, setModelPrice } from '../../../server/src/pricing/configure-models.ts'
import { PLAIN_PROFILE } from '../../../server/src/protocols/route-profile.ts'
import { saveUpstream } from '../../../server/src/upstreams/configure.ts'
import { ask, ids, makeCustomer, startInstallation, type Told } from '../installation.ts'
import { eachOf, evidenceOf, type Protocol, question } from './streams.ts'

const TURNS = 8
const AT_ONCE = 8
const PROOF = 'conversations'
/** An upstream caches from 1,024 tokens on, of three bytes each. */
const SYSTEM_BYTES = 3 * 1_100
const TURN_BYTES = 3 * 150

const database = await freshDatabase()
const { url, pool, sandbox, masterKey, stop } = await startInstallation(database.url)
after(stop)
const seal = createSeal({ current: masterKey })
const customer = await makeCustomer(pool, { money: 1_000_000_000_000n })

/** A model with so many equal routes, each to an account of the vendor's with a cache of its own. The model has the account's name there. */
async function makeModel(protocol: 'openai' | 'anthropic', routes: number) {
  const model = `maker/${ids.next()}`
  await saveModel({ pool }, { id: model, ...SANDBOX_LIMITS })
  await setModelPrice({ pool }, { model, ...SANDBOX_PRICE })
  const accounts = Array.from({ length: routes }, () => ids.next().replaceAll('-', ''))
  for (const account of accounts) {
    const slot = `slot-${account}`
    const upstream = { slot, mode: 'test', kind: 'native', baseUrl: `${sandbox.url}/${protocol}` } as const
    await saveUpstream({ pool, ids, seal }, { ...upstream, credential: new Secret(`sandbox-key.${account}`) })
    await saveRoute({ pool, ids }, { model, protocol, slot, upstreamModel: account })
  }
  return { model, accounts }
}

/** What a conversation asks in a turn: all that was said before, with the marks of the cache where the protocol has them. */
function bodyOf(protocol: Protocol, conversation: string, turn: number) {
  const system = `You are ${conversation}. `.padEnd(SYSTEM_BYTES, 'rules ')
  const texts = Array.from({ length: 2 * turn + 1 }, (_, at) => `${conversation} ${at} `.padEnd(TURN_BYTES, 'words '))
  const roleOf = (at: number) => (at % 2 === 0 ? 'user' : 'assistant')
  if (protocol === 'openai')
    return {
      messages: [{ role: 'system', content: system }, ...texts.map((content, at) => ({ role: roleOf(at), content }))],
    }
  const mark = { cache_control: { type: 'ephemeral' } }
  return {
    system,
    messages: texts.map((text, at) => ({
      role: roleOf(at),
      content: at === texts.length - 1 ? [{ type: 'text', text, ...mark }] : text,
    })),
  }
}

type Place = { readonly protocol: Protocol; readonly model: string }

async function say({ protocol, model }: Place, conversation: string, turn: number): Promise<Told> {
  const { path, body } = question(protocol, model)
  const wanted = { ...body, max_tokens: 20, ...bodyOf(protocol, conversation, turn) }
  const told = await ask(url, customer.secret, path, { body: wanted })
  assert.equal(told.status, 200, told.text)
  return told
}

const routeOf = (told: Told) => told.headers.get('x-farebox-upstream-model') ?? ''

function cachedIn({ json }: Told): number {
  const usage = Object(json.usage)
  return Number(Object(usage.prompt_tokens_details).cached_tokens ?? usage.cache_read_input_tokens)
}

const talks = (conversations: number) => Array.from({ length: conversations }, (_, at) => `Conversation ${at}`)

/** All turns of all conversations, many at once, each conversation one turn after the other. */
async function holdAll(place: Place, conversations: number) {
  const sum = { hits: 0, cachedTokens: 0, nanos: 0, routes: new Map<string, number>() }
  await eachOf(talks(conversations), AT_ONCE, async (name) => {
    const routes = new Set<string>()
    for (let turn = 0; turn < TURNS; turn += 1) {
      const told = await say(place, name, turn)
      const cached = cachedIn(told)
      if (cached > 0) sum.hits += 1
      sum.cachedTokens += cached
      sum.nanos += Math.round(Number(told.costUsd) * 1e9)
      routes.add(routeOf(told))
    }
    for (const route of routes) sum.routes.set(route, (sum.routes.get(route) ?? 0) + 1)
  })
  return sum
}

describe('conversations over equal routes', () => {
  const CONVERSATIONS = count({ full: 200, reduced: 6 })
  for (const protocol of ['openai', 'anthropic'] as const) {
    const title = `have the cache hits of a single route, and cost what they cost there: ${protocol}`
    it(title, async () => {
      const { model: alone } = await makeModel(protocol, 1)
      const { model, accounts } = await makeModel(protocol, 3)
      const single = await holdAll({ protocol, model: alone }, CONVERSATIONS)
      const three = await holdAll({ protocol, model }, CONVERSATIONS)
      assert.equal(single.hits, CONVERSATIONS * (TURNS - 1))
      assert.ok(three.hits >= 0.95 * single.hits, `${three.hits} instead of ${single.hits} hits`)
      assert.ok(three.cachedTokens >= 0.95 * single.cachedTokens)
      assert.ok(Math.abs(three.nanos / single.nanos - 1) <= 0.02, `${three.nanos} instead of ${single.nanos} nano-USD`)
      if (isFullProof) assert.deepEqual(new Set(three.routes.keys()), new Set(accounts))
      recordProof(PROOF, title, {
        conversations: CONVERSATIONS,
        turns: TURNS,
        hits_of_a_single_route: single.hits,
        hits: three.hits,
        cost_ratio: three.nanos / single.nanos,
        conversations_of_each_route: [...three.routes.values()],
      })
    })
  }

  const killed = 'move once where their route fails, each to one place, and return when it is back; no others move'
  it(killed, async () => {
    const conversations = count({ full: 200, reduced: 12 })
    const { model, accounts } = await makeModel('openai', 3)
    const place = { protocol: 'openai', model } as const
    const names = talks(conversations)
    const last = new Map<string, string>()
    const turnOf = async (turn: number) => {
      const routes = new Map<string, string>()
      await eachOf(names, AT_ONCE, async (name) => {
        const told = await say(place, name, turn)
        routes.set(name, routeOf(told))
        last.set(name, told.id)
      })
      return routes
    }
    const homes = await turnOf(0)
    for (const turn of [1, 2]) assert.deepEqual(await turnOf(turn), homes)
    const out = homes.get(names[0] ?? '') ?? ''
    await sandbox.fault('openai', ['status=503'], 1_000_000, `sandbox-key.${out}`)
    const moved = await turnOf(3)
    const reason = Object(await evidenceOf(url, customer.secret, last.get(names[0] ?? '') ?? '')).routing.reason
    assert.equal(reason, 'failover')
    for (const [name, route] of moved) {
      if (homes.get(name) === out) assert.ok(route !== out && accounts.includes(route))
      else assert.equal(route, homes.get(name))
    }
    for (const turn of [4, 5]) assert.deepEqual(await turnOf(turn), moved)
    await sandbox.clearFaults()
    for (const turn of [6, 7]) assert.deepEqual(await turnOf(turn), homes)
    recordProof(PROOF, killed, {
      conversations,
      of_the_route_that_failed: [...homes.values()].filter((route) => route === out).length,
    })
  })

  const oneKey = 'of a customer with one prompt_cache_key for everything are on all routes'
  it(oneKey, async () => {
    const conversations = count({ full: 1_000, reduced: 300 })
    const { model, accounts } = await makeModel('openai', 3)
    const counts = new Map(accounts.map((account) => [account, 0]))
    const told: Told[] = []
    await eachOf(talks(conversations), AT_ONCE, async (name) => {
      const asked = question('openai', model, name, { prompt_cache_key: 'everything' })
      const one = await ask(url, customer.secret, asked.path, { body: asked.body })
      counts.set(routeOf(one), (counts.get(routeOf(one)) ?? 0) + 1)
      told.push(one)
    })
    const shares = [...counts.values()].map((calls) => calls / conversations)
    // Of few requests, those that are free are many.
    assert.ok(Math.max(...shares) < (isFullProof ? 0.55 : 0.7), shares.join())
    assert.ok(Math.min(...shares) > 0, shares.join())
    const { id } = told.at(-1) ?? assert.fail('nothing was asked')
    assert.match(String(Object(await evidenceOf(url, customer.secret, id)).routing.reason), /^(sticky|spill)$/)
    recordProof(PROOF, oneKey, { requests: conversations, shares })
  })

  const cost = 'cost next to nothing to place'
  it(cost, () => {
    const micros = {
      of_1_kb: microsOf(1_000),
      of_100_kb: microsOf(100_000),
      of_1_kb_of_a_key_that_spills: microsOf(1_000, 'everything'),
      of_100_kb_of_a_key_that_spills: microsOf(100_000, 'everything'),
    }
    if (isFullProof) assert.ok(micros.of_1_kb <= 5 && micros.of_100_kb <= 20, JSON.stringify(micros))
    recordProof(PROOF, cost, { rounds: ROUNDS, cpu_microseconds: micros })
  })
})

const ROUNDS = count({ full: 6_000, reduced: 600 })
/** Each asks 30 times in a minute of the clock below, which is less than spills by itself. */
const TALKS = 200
const ROUND_MS = 10

/** Of so many bytes, with tools. Those of one name begin alike too, so that they are told apart by all that there is. */
function requestOf(bytes: number, at: number, name: string | undefined) {
  const parts = bytes < 10_000 ? 4 : 20
  const tools = Array.from({ length: parts }, (_, tool) => ({
    type: 'function',
    function: { name: `tool_${tool}`, parameters: { type: 'object', description: 'd'.repeat(bytes / parts / 4) } },
  }))
  const messages = Array.from({ length: parts }, (_, turn) => ({
    role: turn === 0 ? 'system' : turn % 2 === 1 ? 'user' : 'assistant',
    content: [
      { type: 'text', text: `${name === undefined || turn > 1 ? at : ''} `.padEnd((bytes / parts / 4) * 3 - 100, 'w') },
    ],
  }))
  const body: unknown = JSON.parse(JSON.stringify({ prompt_cache_key: name, tools, messages }))
  return { accountId: customer.accountId, model: 'maker/model', protocol: 'openai' as const, body, endUser: undefined }
}

/** Microseconds of CPU for a choice among three routes, with all that it counts, where others disturb it least. */
function microsOf(bytes: number, name?: string): number {
  const routes = ['a', 'b', 'c'].map((word) => {
    const id = `${ids.next()}${word}`
    return {
      id,
      slot: id,
      protocol: 'openai' as const,
      upstreamModel: id,
      priority: 0,
      weight: 1,
      profile: PLAIN_PROFILE,
    }
  })
  let ms = 0
  const choose = createRouteChoice({ clock: { monotonicMs: () => ms } })
  const requests = Array.from({ length: TALKS }, (_, at) => requestOf(bytes, at, name))
  const reasons = new Set<string>()
  const times = Array.from({ length: count({ full: 40, reduced: 2 }) }, () => {
    const began = process.cpuUsage()
    for (let round = 0; round < ROUNDS; round += 1) {
      const said = requests[round % TALKS] ?? assert.fail('there is no request')
      reasons.add(choose(routes, () => conversationOf({ ...said, headers: {} }), 'maker/model openai test paid').reason)
      ms += ROUND_MS
    }
    const { user, system } = process.cpuUsage(began)
    return (user + system) / ROUNDS
  })
  assert.deepEqual(reasons, new Set(name === undefined ? ['sticky'] : ['sticky', 'spill']))
  return Math.min(...times)
}

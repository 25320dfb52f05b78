import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freePort } from '../../../harness/free-port.ts'
import { SANDBOX_LIMITS, SANDBOX_PRICE } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { createSeal } from '../../../server/src/kernel/seal.ts'
import { Secret } from '../../../server/src/kernel/secret.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { saveModel, saveRoute, setModelPrice } from '../../../server/src/pricing/configure-models.ts'
import { FAILURES_IN_A_ROW } from '../../../server/src/upstreams/breakers.ts'
import { saveUpstream } from '../../../server/src/upstreams/configure.ts'
import { ask, errorOf, ids, makeCustomer, startInstallation } from '../installation.ts'
import { attemptsIn } from '../recorded-attempts.ts'
import {
  chargeOf,
  costOf,
  eachOf,
  evidenceOf,
  hear,
  PROTOCOLS,
  type Protocol,
  question,
  streamed,
  tokensIn,
  upstreamOf,
} from './streams.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox, masterKey } = installation
after(installation.stop)
const seal = createSeal({ current: masterKey })
const nobody = `http://127.0.0.1:${await freePort()}`
const customer = await makeCustomer(pool)

const FORMS = [
  ['streamed', streamed],
  ['in one piece', question],
] as const

type Upstream = { readonly kind?: 'native' | 'managed'; readonly isGone?: boolean }

/** An upstream of a slot of its own: the sandbox, or an address where nobody listens. */
async function makeSlot(protocol: Protocol, { kind = 'native', isGone = false }: Upstream = {}): Promise<string> {
  const slot = `slot-${ids.next()}`
  const baseUrl = isGone ? nobody : `${sandbox.url}/${upstreamOf(protocol)}`
  const credential = new Secret('sandbox-key')
  await saveUpstream({ pool, ids, seal }, { slot, mode: 'test', baseUrl, kind, credential })
  return slot
}

type Way = {
  readonly slot: string
  readonly upstreamModel: string
  readonly priority?: number
  readonly weight?: number
}

/** A model that is served in these ways. */
async function makeModel(protocol: Protocol, ways: readonly Way[]): Promise<string> {
  const id = `maker/${ids.next()}`
  await saveModel({ pool }, { id, ...SANDBOX_LIMITS })
  await setModelPrice({ pool }, { model: id, ...SANDBOX_PRICE })
  for (const way of ways) await saveRoute({ pool, ids }, { model: id, protocol, ...way })
  return id
}

/** One that is asked for something else first. */
async function makeModelBehind(protocol: Protocol, first: string, upstreamModel: string) {
  const second = await makeSlot(protocol)
  const model = await makeModel(protocol, [
    { slot: second, upstreamModel: 'sandbox/text', priority: 2 },
    { slot: first, upstreamModel, priority: 1 },
  ])
  return { model, second }
}

const FIRST_FAILS = [
  ['answers 429', 'sandbox/429', { outcome: 'answered', status: 429, reason: null }],
  ['is overloaded', 'sandbox/overloaded', { outcome: 'answered', reason: null }],
  ['can not be reached', 'gone', { outcome: 'not_sent', status: null, reason: 'connect' }],
  ['is not asked now, having failed too often', 'broken', { outcome: 'not_sent', status: null, reason: 'breaker' }],
] as const

describe('a model with two upstreams', () => {
  for (const protocol of PROTOCOLS)
    for (const [form, asks] of FORMS)
      for (const [what, how, expected] of FIRST_FAILS)
        it(`is answered by the second where the first ${what}, and charged once: ${protocol}, ${form}`, async () => {
          const isGone = how === 'gone' || how === 'broken'
          const first = await makeSlot(protocol, { isGone })
          if (how === 'broken') await breakOff(protocol, first)
          const { model, second } = await makeModelBehind(protocol, first, isGone ? 'sandbox/text' : how)
          await sandbox.emptyJournal()
          const { id, status, end } = await hear(url, customer.secret, asks(protocol, model))
          assert.deepEqual([status, end], [200, 'clean'])
          const journal = await sandbox.journal()
          assert.deepEqual(
            journal.map((entry) => [entry.request_id, entry.model]),
            [...(isGone ? [] : [[id, how]]), [id, 'sandbox/text']],
          )
          const { amount, outcome } = await chargeOf(pool, id)
          assert.deepEqual([outcome, amount], ['posted', costOf(tokensIn(journal.at(-1)?.usage))])
          const detail = await evidenceOf(url, customer.secret, id)
          const routing = { slot: second, upstream_model: 'sandbox/text', reason: 'failover' }
          assert.deepEqual(Object(detail).routing, routing)
          const [attempt, answered] = attemptsIn(detail)
          const { slot, status: code, ...rest } = attempt ?? assert.fail('no attempt was recorded')
          const overloaded = protocol === 'anthropic' ? 529 : 503
          assert.deepEqual({ status: code, ...rest }, { status: overloaded, ...expected })
          assert.equal(slot, first)
          assert.deepEqual(answered, { slot: second, outcome: 'answered', status: 200, reason: null })
        })

  /** Opens the breaker of a slot's upstream. */
  async function breakOff(protocol: Protocol, slot: string): Promise<void> {
    const model = await makeModel(protocol, [{ slot, upstreamModel: 'sandbox/text' }])
    for (let failures = 0; failures < FAILURES_IN_A_ROW; failures += 1)
      assert.equal((await hear(url, customer.secret, question(protocol, model))).status, 502)
  }

  for (const protocol of PROTOCOLS) {
    for (const [form, asks] of FORMS)
      for (const [kind, status] of [
        ['native', 502],
        ['managed', 503],
      ] as const)
        it(`is not asked twice where the first may have begun: ${status}, not charged: ${protocol}, ${form}`, async () => {
          const first = await makeSlot(protocol, { kind })
          const { model } = await makeModelBehind(protocol, first, 'sandbox/echo')
          for (const word of ['reset=before-headers', 'close-early']) {
            await sandbox.emptyJournal()
            await sandbox.fault(upstreamOf(protocol), [word])
            // The same conversation would go on to the second.
            const { path, body } = asks(protocol, model, word)
            const told = await ask(url, customer.secret, path, { body })
            assert.equal(told.status, status, told.text)
            assert.equal(told.headers.get('x-should-retry'), 'false')
            assert.deepEqual(
              (await sandbox.journal()).map((entry) => [entry.request_id, entry.model]),
              [[told.id, 'sandbox/echo']],
            )
            const { outcome, amount, overrun, held, executed } = await chargeOf(pool, told.id)
            assert.deepEqual([outcome, amount, overrun, executed], ['voided', 0n, held, true])
            const attempts = attemptsIn(await evidenceOf(url, customer.secret, told.id))
            assert.deepEqual(attempts, [{ slot: first, outcome: 'unknown', status: null, reason: 'reset' }])
          }
        })

    for (const failing of ['sandbox/cut-mid-stream', 'sandbox/error-mid-stream', 'sandbox/no-end'])
      it(`is not asked again once a stream has begun: ${protocol}, ${failing}`, async () => {
        const { model } = await makeModelBehind(protocol, await makeSlot(protocol), failing)
        await sandbox.emptyJournal()
        const { id, end, text } = await hear(url, customer.secret, streamed(protocol, model))
        assert.equal(end, 'broken')
        assert.ok(text.length > 50)
        assert.deepEqual(
          (await sandbox.journal()).map((entry) => [entry.request_id, entry.model]),
          [[id, failing]],
        )
        assert.ok((await chargeOf(pool, id)).amount > 0n)
      })

    it(`tells what the last of them said, and charges nothing, where all refuse: ${protocol}`, async () => {
      const limited = await makeModel(protocol, [
        { slot: await makeSlot(protocol, { isGone: true }), upstreamModel: 'sandbox/text' },
        { slot: await makeSlot(protocol), upstreamModel: 'sandbox/429', priority: 1 },
      ])
      const { path, body } = streamed(protocol, limited)
      const told = await ask(url, customer.secret, path, { body })
      assert.deepEqual([told.status, errorOf(told).code], [429, 'upstream_rate_limit'])
      assert.equal(told.headers.get('retry-after'), '7')
      const { amount, overrun } = await chargeOf(pool, told.id)
      assert.deepEqual([amount, overrun], [0n, 0n])

      const gone = await makeModel(protocol, [
        { slot: await makeSlot(protocol, { isGone: true }), upstreamModel: 'sandbox/text' },
        { slot: await makeSlot(protocol, { isGone: true }), upstreamModel: 'sandbox/text', priority: 1 },
      ])
      const lost = await ask(url, customer.secret, path, { body: { ...body, model: gone } })
      assert.equal(lost.status, 502)
      const charge = await chargeOf(pool, lost.id)
      assert.deepEqual([charge.outcome, charge.overrun, charge.executed], ['voided', 0n, true])
    })
  }

  for (const protocol of PROTOCOLS)
    it(`makes as many requests as its operation says at the most, though more would be left to ask: ${protocol}`, async () => {
      // Who can not be reached has got no request.
      const ways: Way[] = [{ slot: await makeSlot(protocol, { isGone: true }), upstreamModel: 'gone' }]
      for (let priority = 1; priority <= 6; priority += 1)
        ways.push({ slot: await makeSlot(protocol), upstreamModel: 'sandbox/429', priority })
      const { path, body } = question(protocol, await makeModel(protocol, ways))
      await sandbox.emptyJournal()
      const told = await ask(url, customer.secret, path, { body })
      assert.deepEqual([told.status, errorOf(told).code], [429, 'upstream_rate_limit'])
      const journal = await sandbox.journal()
      assert.deepEqual(
        journal.map(({ request_id }) => request_id),
        [told.id, told.id, told.id],
      )
      assert.equal((await chargeOf(pool, told.id)).amount, 0n)
    })

  it('is asked where its priority is lowest, and among equals as often as their weights say over many conversations', async () => {
    const CALLS = 200
    const slot = await makeSlot('openai')
    const model = await makeModel('openai', [
      { slot, upstreamModel: 'heavy', weight: 3 },
      { slot, upstreamModel: 'light', weight: 1 },
      { slot, upstreamModel: 'last', weight: 1_000_000, priority: 1 },
    ])
    await sandbox.emptyJournal()
    const calls = Array.from({ length: CALLS }, (_, at) => question('openai', model, `number ${at}`))
    await eachOf(calls, 8, async (one) => assert.equal((await hear(url, customer.secret, one)).status, 200))
    const asked = Object.groupBy(await sandbox.journal(), ({ model: name }) => name ?? '')
    assert.deepEqual(Object.keys(asked).toSorted(), ['heavy', 'light'])
    const share = (asked.heavy?.length ?? 0) / CALLS
    // Beyond four and a half standard deviations.
    assert.ok(Math.abs(share - 0.75) < 0.14, String(share))
  })

  it('is asked for a conversation by one of equal routes, which its record names with the reason', async () => {
    const slot = await makeSlot('openai')
    const ways = ['one', 'two', 'three', 'four'].map((upstreamModel) => ({ slot, upstreamModel }))
    const model = await makeModel('openai', ways)
    const routingOf = async (asked: string, text: string) => {
      const { id } = await hear(url, customer.secret, question('openai', asked, text))
      return Object(await evidenceOf(url, customer.secret, id)).routing
    }
    const home = await routingOf(model, 'first')
    assert.deepEqual({ ...home, upstream_model: '' }, { slot, upstream_model: '', reason: 'sticky' })
    for (let turn = 0; turn < 6; turn += 1) assert.deepEqual(await routingOf(model, 'first'), home)
    const alone = await makeModel('openai', [{ slot, upstreamModel: 'alone' }])
    assert.deepEqual(await routingOf(alone, 'first'), { slot, upstream_model: 'alone', reason: 'only' })
  })

  for (const [what, fault, asks, expected] of [
    ['answers 500', 'status=500', question, [500, 'clean']],
    ['answers 502', 'status=502', question, [502, 'clean']],
    ['does not answer', 'reset=before-headers', question, [502, 'clean']],
    ['breaks off its answer', 'reset=in-body', question, [502, 'clean']],
    ['breaks off its stream', 'reset=in-body', streamed, [200, 'broken']],
  ] as const)
    it(`is asked by the next route for a conversation whose first ${what}, and by no other for the others`, async () => {
      const slot = await makeSlot('openai')
      const ways = ['one', 'two', 'three'].map((upstreamModel) => ({ slot, upstreamModel }))
      const model = await makeModel('openai', ways)
      const routeOf = async (text: string) => {
        const { id, status, end } = await hear(url, customer.secret, asks('openai', model, text))
        const { routing } = Object(await evidenceOf(url, customer.secret, id))
        return { told: [status, end], route: routing.upstream_model, reason: routing.reason }
      }
      const others = Array.from({ length: 6 }, (_, at) => `other ${at}`)
      const homes = await Promise.all(others.map(routeOf))
      await sandbox.emptyJournal()
      await sandbox.fault('openai', [fault])
      const first = await routeOf('x')
      assert.deepEqual([first.told, first.reason], [expected, 'sticky'])
      assert.equal((await sandbox.journal()).length, 1)
      const retry = await routeOf('x')
      assert.deepEqual([retry.told, retry.reason], [[200, 'clean'], 'failover'])
      assert.notEqual(retry.route, first.route)
      assert.deepEqual(await routeOf('x'), retry)
      assert.deepEqual(await Promise.all(others.map(routeOf)), homes)
    })

  it('is recorded as a failover where the second credential of its slot takes the call', async () => {
    const slot = `slot-${ids.next()}`
    for (const [priority, word] of ['first', 'second'].entries()) {
      const upstream = { slot, mode: 'test', kind: 'native', baseUrl: `${sandbox.url}/openai`, priority } as const
      await saveUpstream({ pool, ids, seal }, { ...upstream, credential: new Secret(`sandbox-key.${word}`) })
    }
    const model = await makeModel('openai', [
      { slot, upstreamModel: 'one' },
      { slot, upstreamModel: 'two' },
    ])
    const routingOf = async () => {
      const { id, status } = await hear(url, customer.secret, question('openai', model))
      assert.equal(status, 200)
      return Object(await evidenceOf(url, customer.secret, id)).routing
    }
    const home = await routingOf()
    await sandbox.fault('openai', ['status=503'], 1, 'sandbox-key.first')
    assert.deepEqual(await routingOf(), { ...home, reason: 'failover' })
    assert.deepEqual(await routingOf(), { ...home, reason: 'sticky' })
  })

  it('is recorded with the route of the conversation where all refuse', async () => {
    const slot = await makeSlot('openai')
    const ways = ['one', 'two', 'three'].map((upstreamModel) => ({ slot, upstreamModel }))
    const model = await makeModel('openai', ways)
    const routingOf = async (status: number) => {
      const told = await hear(url, customer.secret, question('openai', model))
      assert.equal(told.status, status)
      return Object(await evidenceOf(url, customer.secret, told.id)).routing
    }
    const home = await routingOf(200)
    await sandbox.fault('openai', ['status=429'], 3)
    assert.deepEqual(await routingOf(429), home)
    assert.equal(home.reason, 'sticky')
  })

  it('is asked for a conversation by its own route however often its tokens were counted', async () => {
    const slot = await makeSlot('anthropic')
    const ways = ['one', 'two'].map((upstreamModel) => ({ slot, upstreamModel }))
    const model = await makeModel('anthropic', ways)
    const asked = question('anthropic', model)
    const count = { ...asked, path: `${asked.path}/count_tokens` }
    await eachOf(
      Array.from({ length: 150 }, () => count),
      8,
      async (one) => {
        assert.equal((await hear(url, customer.secret, one)).status, 200)
      },
    )
    for (let turn = 0; turn < 15; turn += 1) {
      const { id } = await hear(url, customer.secret, asked)
      assert.equal(Object(await evidenceOf(url, customer.secret, id)).routing.reason, 'sticky')
    }
  })

  it('leaves a ledger that adds up', async () => {
    assert.deepEqual(await verifyLedger(pool), [])
  })
})

import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Gateway } from '../../../harness/gateways.ts'
import { count, recordProof, seed, sometimes } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import type { JournalEntry } from '../../../sandbox/src/journal.ts'
import { hashOf, Random } from '../../../sandbox/src/random.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { FAILURES_IN_A_ROW, OPEN_FIRST_MS } from '../../../server/src/upstreams/breakers.ts'
import { makeCustomer, startInstallation } from '../installation.ts'
import { type Attempted, attemptsIn } from '../recorded-attempts.ts'
import {
  ENDINGS,
  ENDPOINTS,
  type Endpoint,
  FAULTS,
  HANG,
  hasWholeAnswer,
  judgeCall,
  type Known,
  ORDINARY,
} from './failover-random-rule.ts'
import { breakerOf, makeKeyring, makeModel, makeSlots, startFailing } from './failover-random-upstreams.ts'
import {
  chargesOf,
  eachOf,
  evidenceOf,
  type Heard,
  hear,
  leaveOnce,
  leftOver,
  settled,
  socketsOf,
  UPSTREAMS,
} from './streams.ts'

const CALLS = count({ full: 10_000, reduced: 400 })
/** How often its process is killed, is paused, hangs, and has models of its own. */
const TIMES = count({ full: 10, reduced: 1 })
const AT_ONCE = 12
const SIZES = { endings: 48, gone: 48, hanging: 24, paused: 24, coming_back: 12 } as const
const MOST_IN_A_ROUND = 200
const PAUSE_MS = 500
const RECOVERY_DEADLINE_MS = 60_000
const MONEY = 1_000_000_000_000n

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 3 })
const { pool, sandbox: well, gateways, url } = installation
const failing = await startFailing()
after(async () => {
  await failing.stop()
  await installation.stop()
})
const slots = await makeSlots(installation, failing)
const text = await makeModel(pool, slots, ORDINARY, ORDINARY)
const withEndings = await Promise.all(Object.keys(ENDINGS).map((ending) => makeModel(pool, slots, ending, ORDINARY)))
const customer = await makeCustomer(pool, { money: MONEY })
/** Nobody tells them the ids of their calls, so they have an account of their own. */
const leaver = await makeCustomer(pool, { money: MONEY })
const [keys, leaversKeys] = [makeKeyring(pool, customer), makeKeyring(pool, leaver)]
const random = new Random(hashOf(seed, 'failover'))

type Made = { readonly endpoint: Endpoint; readonly heard: Heard; readonly state: Known['state'] }
const made: Made[] = []

let asked = 0
function about(): string {
  asked += 1
  return String(asked)
}

type Planned = { readonly endpoint: Endpoint; readonly model: string; readonly gateway: Gateway }

function plan(calls: number, models: readonly string[] = [text]): Planned[] {
  return Array.from({ length: calls }, (_, number) => ({
    endpoint: random.pick(ENDPOINTS),
    model: models[number % models.length] ?? text,
    gateway: random.pick(gateways as [Gateway, ...Gateway[]]),
  }))
}

async function makeCall({ endpoint, model, gateway }: Planned, state: Known['state'] = 'there'): Promise<string> {
  const heard = await hear(gateway.url, await keys.secretFor(endpoint), endpoint.ask(model, about()))
  made.push({ endpoint, heard, state })
  return heard.id
}

const makeCalls = (planned: readonly Planned[], state: Known['state'] = 'there') =>
  eachOf(planned, AT_ONCE, async (one) => void (await makeCall(one, state)))

/** It fails in the ways that it is told, one after the other and each for one call. */
async function failAtRandom(calls: number): Promise<void> {
  // It is asked a quarter of the calls in one protocol, and less in the others. Where it is asked more, it is well.
  const most = Math.ceil(calls * 0.35)
  for (const protocol of UPSTREAMS) {
    const faults: string[] = []
    while (faults.length < most) faults.push(...shuffled(Object.keys(FAULTS)))
    for (const fault of faults.slice(0, most)) await failing.fault(protocol, [fault])
  }
  await makeCalls(plan(calls))
  await failing.forgetFaults()
}

function shuffled<T>(all: readonly T[]): T[] {
  return all
    .map((one) => ({ one, place: random.fraction() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ one }) => one)
}

/** It stops in the middle of everything and goes on, none the wiser. Whoever asked it waits. */
async function pause(calls: number): Promise<void> {
  failing.pause()
  const asked = Promise.all(plan(calls).map((one) => makeCall(one, 'paused')))
  await delay(PAUSE_MS)
  failing.resume()
  await asked
}

/** Its process dies, and calls come while nobody listens. It comes back, and is asked again. */
async function die(calls: number): Promise<void> {
  await failing.kill()
  await failing.noConnections(gateways)
  await makeCalls(plan(calls), 'gone')
  await failing.start()
  await recover()
}

/** Until every process asks it again; one that has seen too many failures waits for a while. */
async function recover(): Promise<void> {
  const levels = () =>
    Promise.all(
      gateways.flatMap((gateway) => UPSTREAMS.map((name) => breakerOf(gateway, slots[name].failing.upstreamId))),
    )
  const isClosed = async () => (await levels()).every((level) => level === undefined || level === 0)
  await until(
    async () => {
      if (await isClosed()) return true
      await makeCalls(plan(SIZES.coming_back))
      await delay(100)
      return false
    },
    RECOVERY_DEADLINE_MS,
    'that it is asked again',
  )
}

/** It takes calls and says nothing. Half of the callers leave; then its process dies with all of them under way. */
async function hang(calls: number): Promise<void> {
  for (const protocol of UPSTREAMS) await failing.fault(protocol, [HANG], calls)
  const arrivals = await countArrivals()
  const arrived = until(async () => (await arrivals()) === calls, PATIENCE_MS, 'that all have arrived')
  const haveArrived = async () => (await arrived) > 0
  const [stay, leave] = [plan(calls / 2), plan(calls / 2)]
  const staying = Promise.all(stay.map((one) => makeCall(one)))
  await Promise.all(
    leave.map(async ({ endpoint, model, gateway }) =>
      leaveOnce(gateway.url, await leaversKeys.secretFor(endpoint), endpoint.ask(model, about()), haveArrived),
    ),
  )
  await failing.kill()
  await staying
  await failing.start()
  await recover()
}

/** How often one of the two was asked from now on. */
async function countArrivals(): Promise<() => Promise<number>> {
  const [ofFailing, ofWell] = [(await failing.thisLife()).length, (await well.journal()).length]
  return async () => (await failing.thisLife(ofFailing)).length + (await well.journal(ofWell)).length
}

const EPISODES = [
  () => makeCalls(plan(SIZES.endings, withEndings)),
  () => die(SIZES.gone),
  () => pause(SIZES.paused),
  () => hang(SIZES.hanging),
]

/** Everything that happens, in an order that nobody knows. */
function rounds(): (() => Promise<void>)[] {
  const others = TIMES * (SIZES.endings + SIZES.gone + SIZES.paused + SIZES.hanging)
  const all = Array.from({ length: TIMES }, () => EPISODES).flat()
  for (let left = CALLS - others; left > 0; left -= MOST_IN_A_ROUND) {
    const calls = Math.min(left, MOST_IN_A_ROUND)
    all.push(() => failAtRandom(calls))
  }
  return shuffled(all)
}

/** All calls, by everybody who knows of them. */
async function knownCalls(): Promise<Known[]> {
  await settled(pool)
  const [ofFailing, ofWell, charges] = await Promise.all([failing.journal(), well.journal(), chargesOf(pool)])
  const [failingById, wellById] = [byId(ofFailing), byId(ofWell)]
  const told = new Map(made.map((one) => [one.heard.id, one]))
  assert.equal(told.size, made.length, 'each call has an id of its own')
  const left = new Set((await chargesOf(pool, { accountId: leaver.accountId })).keys())
  const ids = [...told.keys(), ...left]
  assert.deepEqual([...charges.keys()].toSorted(), ids.toSorted(), 'each call has a charge, and nothing else has')
  for (const id of [...failingById.keys(), ...wellById.keys()]) assert.ok(charges.has(id), `nobody called ${id}`)

  const known: Known[] = []
  const secretOf = await secretsByCall()
  await eachOf(ids, AT_ONCE, async (id) => {
    const { heard, state = 'there' } = told.get(id) ?? {}
    const attempts = await attemptsOf(secretOf(id), id)
    const charge = charges.get(id) ?? assert.fail(id)
    const entries = { failing: failingById.get(id) ?? [], well: wellById.get(id) ?? [] }
    known.push({ id, ...entries, slots: slotsOf(entries, id), attempts, charge, heard, state })
  })
  return known
}

function byId(journal: readonly JournalEntry[]): ReadonlyMap<string, readonly JournalEntry[]> {
  return Map.groupBy(journal, ({ request_id }) => request_id ?? '')
}

/** The secrets of the keys by which calls were made. */
async function secretsByCall(): Promise<(id: string) => string> {
  const secrets = new Map([...(await keys.secrets()), ...(await leaversKeys.secrets())])
  const { rows } = await pool.query<{ id: string; key: string }>('select id, credential_id as key from charges')
  const keyOf = new Map(rows.map(({ id, key }) => [id, key]))
  return (id) => secrets.get(keyOf.get(id) ?? '') ?? assert.fail(`nobody has the key of ${id}`)
}

async function attemptsOf(secret: string, id: string): Promise<readonly Attempted[]> {
  return attemptsIn(await evidenceOf(url, secret, id))
}

/** Those of the protocol in which somebody was asked: nobody at all is none of the things that can happen. */
function slotsOf({ failing: one, well: other }: Pick<Known, 'failing' | 'well'>, id: string): Known['slots'] {
  const protocol =
    UPSTREAMS.find((name) => name === (one[0] ?? other[0])?.upstream) ?? assert.fail(`nobody heard of ${id}`)
  return { failing: slots[protocol].failing.slot, well: slots[protocol].well.slot }
}

const PACE_MS = 20
/** The journal's clock is not that of the process which waits. */
const CLOCKS_MS = 20

/** A process that asks on while one of its upstreams fails. */
function startAsking(gateway: Gateway) {
  const asked = new Set<string>()
  const { upstreamId } = slots.openai.failing
  const endpoints = ENDPOINTS.filter(({ protocol }) => protocol === 'openai')
  return {
    level: () => breakerOf(gateway, upstreamId),
    /** What the failing one was asked by this process. */
    heardOf: async () => (await failing.journal()).filter(({ request_id }) => asked.has(request_id ?? '')),
    async askUntil(isSo: () => Promise<boolean>): Promise<void> {
      const ask = async () => {
        const endpoint = random.pick(endpoints as [Endpoint, ...Endpoint[]])
        asked.add(await makeCall({ endpoint, model: text, gateway }))
        await delay(PACE_MS)
        return isSo()
      }
      await until(ask, RECOVERY_DEADLINE_MS, 'what it asks for')
    },
  }
}

describe('an upstream that keeps failing', () => {
  it('is not asked for a second after ten failures in a row, then tried with one call, and asked again when one succeeds', async () => {
    await failing.fault('openai', ['close-early'], 10_000)
    const askers = gateways.map(startAsking)
    await Promise.all(
      askers.map(async ({ askUntil, level, heardOf }) => {
        await askUntil(async () => {
          const [failures, now] = [(await heardOf()).length, await level()]
          assert.equal(now === 2, failures >= FAILURES_IN_A_ROW, `${failures} failures, level ${now}`)
          return now === 2
        })
        assert.equal((await heardOf()).length, FAILURES_IN_A_ROW)
        await askUntil(async () => (await heardOf()).length > FAILURES_IN_A_ROW)
        assert.equal(await level(), 2)
      }),
    )
    await failing.forgetFaults()
    await Promise.all(askers.map(({ askUntil, level }) => askUntil(async () => (await level()) === 0)))

    const waits: number[] = []
    for (const { heardOf } of askers) {
      const [tenth, trial, success, ...others] = (await heardOf()).slice(FAILURES_IN_A_ROW - 1)
      assert.ok(tenth !== undefined && trial !== undefined && success !== undefined)
      const [first, second] = [trial.at_ms - tenth.at_ms, success.at_ms - trial.at_ms]
      assert.ok(first >= OPEN_FIRST_MS - CLOCKS_MS && second >= 2 * OPEN_FIRST_MS - CLOCKS_MS, `${first}, ${second}`)
      assert.deepEqual([trial.outcome, success.outcome, others], ['cut', 'answered', []])
      waits.push(Math.round(first), Math.round(second))
    }
    recordProof('failover', 'an upstream that keeps failing', {
      processes: gateways.length,
      failures_in_a_row_until_it_is_not_asked: FAILURES_IN_A_ROW,
      asked_in_between: 0,
      waits_until_the_first_and_second_trial_ms: waits,
    })
  })
})

describe('a model with two upstreams, one of which fails at random', () => {
  it('ERR-6 has every call served that the rule allows to be asked twice, none that may have been carried out, and bills each once', async () => {
    console.log(`seed ${seed}`)
    const startedMs = performance.now()
    for (const round of rounds()) await round()
    const seconds = Math.round((performance.now() - startedMs) / 1_000)
    const known = await knownCalls()
    assert.ok(known.length >= CALLS)

    const judged = known.map(judgeCall)
    const served = judged.filter(({ isServed }) => isServed).length
    assert.equal(known.filter(hasWholeAnswer).length, served)
    const ways = new Set(judged.map(({ way }) => way))
    for (const way of [
      ...Object.keys(FAULTS),
      ...Object.keys(ENDINGS),
      HANG,
      'paused',
      'not reached: connect',
      'not reached: breaker',
    ])
      sometimes(ways.has(way), `a call that meets ${way}`)
    assert.ok(Object.keys(FAULTS).some((way) => ways.has(way)))
    const first = known.filter(({ attempts, slots: { failing: slot } }) => attempts[0]?.slot === slot).length
    // Beyond four and a half standard deviations.
    assert.ok(Math.abs(first / known.length - 0.5) < 2.25 / Math.sqrt(known.length), `${first} of ${known.length}`)

    recordProof('failover', 'one of two upstreams fails at random', {
      calls: known.length,
      processes: gateways.length,
      by_endpoint: tally(made.map(({ endpoint }) => endpoint.name)),
      asked_the_failing_one_first: first,
      served,
      served_by_the_rule: served,
      billed_twice: 0,
      asked_again_after_it_may_have_been_carried_out: 0,
      charged_otherwise_than_reported: 0,
      outcomes_by_what_the_failing_one_did: Object.fromEntries(
        [...Map.groupBy(judged, ({ way }) => way)]
          .toSorted(([a], [b]) => a.localeCompare(b))
          .map(([way, all]) => [way, tally(all.map(({ outcome }) => outcome))]),
      ),
      seconds,
      seed,
    })
  })

  it('leaves no hold, no place taken, no connection, and a ledger that adds up', async () => {
    const left = await leftOver(pool)
    assert.deepEqual(left, { holds: 0, claims: 0 })
    await until(() => gateways.every(hasOurConnectionsOnly), PATIENCE_MS, 'no connection of a caller who has gone')
    await failing.stop()
    await failing.noConnections(gateways)
    const violations = await verifyLedger(pool)
    assert.deepEqual(violations, [])
    recordProof('failover', 'what is left afterwards', {
      ...left,
      sockets_of_callers_who_have_gone: 0,
      sockets_to_the_failing_upstream_once_it_has_ended: 0,
      violations_of_the_ledger: violations.length,
    })
  })
})

/** Those over which the test itself has looked at records are kept for the next look. */
function hasOurConnectionsOnly({ pid, url: at }: Gateway): boolean {
  const port = Number(new URL(at).port)
  return socketsOf(pid, port) === socketsOf(process.pid, port)
}

function tally(values: readonly string[]): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(values, (value) => value)].map(([value, all]) => [value, all.length]))
}

import { setTimeout as delay } from 'node:timers/promises'
import type { Call, Ending, Judgement, Settlement } from '../../server/src/calls/call.ts'
import { type Calls, NO_USAGE } from '../../server/src/calls/calls.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { connect, ids } from './world.ts'

/**
 * For tests, a process of its own that races others: it opens its connections, says that it is ready, and begins when it
 * is told to, as they are.
 */
export type Job = { readonly url: string; readonly shape: Shape; readonly race: Race }

/** How a process sends what it has: over how many connections at once, in batches of at most how many. */
export type Shape = { readonly lanes: number; readonly batchLimit: number }

export type CallTemplate = Omit<Call, 'id'>

export type Race =
  /** Begins calls, all in one turn. */
  | { readonly kind: 'begin'; readonly calls: readonly CallTemplate[] }
  /** Settles each of the calls several times, each time for another amount. */
  | {
      readonly kind: 'settle'
      readonly accountId: Id
      readonly ids: readonly Id[]
      readonly amounts: readonly bigint[]
    }
  /** Each racer tries until it gets in, stays a while, and ends its call. */
  | { readonly kind: 'slots'; readonly call: CallTemplate; readonly racers: number; readonly stayMs: number }
  /** Begins calls at a steady rate and ends those that were begun. */
  | {
      readonly kind: 'stream'
      readonly call: CallTemplate
      readonly perSecond: number
      readonly durationMs: number
    }
  /** Begins and ends calls of these credentials, so many at once, until told to stop; measures those of one more. */
  | {
      readonly kind: 'hammer'
      readonly credentials: readonly Credential[]
      readonly inFlight: number
      readonly measured: Credential | null
    }

export type Credential = { readonly id: Id; readonly accountId: Id }

export type Result = {
  readonly id: Id
  readonly judgement?: Judgement
  readonly settlement?: Settlement
  /** How long its begin took. */
  readonly tookMs?: number
}

export type ToRacer = Job | 'go' | 'stop'
export type FromRacer = 'ready' | { readonly results: readonly Result[] } | { readonly error: string }

type Lane = { readonly calls: Calls; readonly warm: () => Promise<unknown> }
const RETRY_MS = 3
const TICK_MS = 5

const lanes = new Map<string, Lane[]>()
let go = Promise.withResolvers<void>()
let stopped = false

if (process.send !== undefined) {
  process.on('disconnect', () => process.exit())
  process.on('message', (message: ToRacer) => {
    if (message === 'go') go.resolve()
    else if (message === 'stop') stopped = true
    else void run(message).then(say, (error) => say({ error: String(error?.stack ?? error) }))
  })
}

function say(message: FromRacer): void {
  process.send?.(message)
}

async function run({ url, shape, race }: Job): Promise<FromRacer> {
  const mine = lanesOf(url, shape)
  await Promise.all(mine.map(({ warm }) => warm()))
  stopped = false
  go = Promise.withResolvers()
  say('ready')
  await go.promise
  return { results: await perform(race, (at) => (mine[at % mine.length] as Lane).calls) }
}

/** Kept from race to race, so that connections are open and statements prepared. */
function lanesOf(url: string, { lanes: count, batchLimit }: Shape): Lane[] {
  const key = `${url} ${count} ${batchLimit}`
  const known = lanes.get(key)
  if (known !== undefined) return known
  const made = Array.from({ length: count }, (_, at) => {
    // Both ways at once, as while a new release is rolled out.
    const fast = at % 2 === 0
    const { calls, pools } = connect(url, { batchLimit, fast, beginDeadlineMs: 60_000, endDeadlineMs: 60_000 })
    return { calls, warm: () => pools.money.query('select') }
  })
  lanes.set(key, made)
  return made
}

async function perform(race: Race, laneOf: (at: number) => Calls): Promise<readonly Result[]> {
  switch (race.kind) {
    case 'begin':
      return Promise.all(race.calls.map((template, at) => begin(laneOf(at), template)))
    case 'settle': {
      const { accountId, ids: open, amounts } = race
      const tries = open.flatMap((id) => amounts.map((amount) => ({ id, accountId, amount })))
      return Promise.all(tries.map((one, at) => settle(laneOf(at), one)))
    }
    case 'slots':
      return Promise.all(Array.from({ length: race.racers }, (_, at) => takeSlot(laneOf(at), race)))
    case 'stream':
      return stream(laneOf(0), race)
    case 'hammer':
      return hammer(laneOf(0), race)
  }
}

async function begin(calls: Calls, template: CallTemplate): Promise<Result> {
  const id = ids.next()
  return { id, judgement: await calls.begin({ ...template, id }) }
}

type Try = { readonly id: Id; readonly accountId: Id; readonly amount: bigint }

async function settle(calls: Calls, { id, accountId, amount }: Try): Promise<Result> {
  const usage = { ...NO_USAGE, executed: true, value: nanos(amount) }
  const ending: Ending = { id, accountId, amount: nanos(amount), forgiven: false, usage }
  return { id, settlement: await calls.end(ending) }
}

async function takeSlot(calls: Calls, { call, stayMs }: Extract<Race, { kind: 'slots' }>): Promise<Result> {
  for (;;) {
    const { id, judgement } = await begin(calls, call)
    if (judgement?.outcome === 'begun') {
      await delay(stayMs)
      return { judgement, ...(await settle(calls, { id, accountId: call.accountId, amount: 1n })) }
    }
    if (judgement?.outcome !== 'claim_taken') throw new Error(`a racer for a slot was told ${judgement?.outcome}`)
    await delay(RETRY_MS)
  }
}

async function stream(calls: Calls, race: Extract<Race, { kind: 'stream' }>): Promise<readonly Result[]> {
  const { call, perSecond, durationMs } = race
  const startedAtMs = performance.now()
  const sent: Promise<Result>[] = []
  for (let passedMs = 0; passedMs < durationMs; passedMs = performance.now() - startedAtMs) {
    while (sent.length < (passedMs / 1_000) * perSecond) sent.push(beginAndEnd(calls, call))
    await delay(TICK_MS)
  }
  return Promise.all(sent)
}

async function beginAndEnd(calls: Calls, template: CallTemplate): Promise<Result> {
  const { id, judgement } = await begin(calls, template)
  if (judgement?.outcome !== 'begun') return { id, ...(judgement && { judgement }) }
  return { judgement, ...(await settle(calls, { id, accountId: template.accountId, amount: 1n })) }
}

/** Only what was measured is told; the rest left charges, which can be counted. */
async function hammer(calls: Calls, race: Extract<Race, { kind: 'hammer' }>): Promise<readonly Result[]> {
  const { credentials, inFlight, measured } = race
  let next = 0
  const strike = async () => {
    for (;;) {
      const credential = credentials[next++ % credentials.length]
      if (stopped || credential === undefined) return
      await beginAndEnd(calls, callOfHammer(credential))
    }
  }
  const striking = Array.from({ length: inFlight }, strike)
  const results: Result[] = []
  while (!stopped) {
    if (measured !== null) results.push(await measureBegin(calls, measured))
    await delay(TICK_MS)
  }
  await Promise.all(striking)
  return results
}

/** A call of next to nothing, begun under the clock and ended outside of it. */
export async function measureBegin(calls: Calls, credential: Credential): Promise<Result> {
  const startedAtMs = performance.now()
  const { id, judgement } = await begin(calls, callOfHammer(credential))
  const tookMs = performance.now() - startedAtMs
  if (judgement?.outcome !== 'begun') throw new Error(`a measured call was told ${judgement?.outcome}`)
  await settle(calls, { id, accountId: credential.accountId, amount: 1n })
  return { id, tookMs }
}

function callOfHammer({ id: credentialId, accountId }: Credential): CallTemplate {
  const hold = { amount: nanos(2n), terms: '{}', allowances: [] }
  return { accountId, credentialId, operation: 'hammer', hold, tokens: 1, windows: [], claims: [] }
}

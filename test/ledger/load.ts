import { setTimeout as delay } from 'node:timers/promises'
import type { Call } from '../../server/src/calls/call.ts'
import { type Calls, NO_USAGE } from '../../server/src/calls/calls.ts'
import { Fault } from '../../server/src/kernel/fault.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import type { Told } from './told.ts'
import { holdOf, ids } from './world.ts'

type Parts = {
  readonly calls: Calls
  readonly parties: readonly { readonly accountId: Id; readonly credentialId: Id }[]
  readonly callers: number
  readonly beginDeadlineMs: number
  readonly endDeadlineMs: number
}

/** Callers that make one call after the other and note what they were told, and when. */
export type Load = {
  readonly told: readonly Told[]
  /** How often each outcome or fault was told. */
  readonly counts: Readonly<Record<string, number>>
  /** By how much the latest fault missed its deadline. */
  readonly latestMs: () => number
  /** How long ago, by performance.now(), a call was last charged. */
  readonly lastChargedAtMs: () => number
  readonly stop: () => Promise<void>
}

/** Callers stay for different times, so that at any instant some begin and some end. */
const STAYS_MS = [0, 5, 20, 60, 150, 400]
const PAUSE_AFTER_FAULT_MS = 20
const HELD = 30n
const CHARGED = 20n

export function startLoad(parts: Parts): Load {
  const { calls, parties, callers, beginDeadlineMs, endDeadlineMs } = parts
  const told: Told[] = []
  const counts: Record<string, number> = {}
  let latestMs = 0
  let lastChargedAtMs = 0
  let stopped = false

  const note = (what: string) => {
    counts[what] = (counts[what] ?? 0) + 1
  }

  /** The answer, or undefined where there was a fault. Whatever else is thrown ends the load with it. */
  async function timed<T>(work: Promise<T>, deadlineMs: number): Promise<T | undefined> {
    const startedAtMs = performance.now()
    try {
      return await work
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      note(error.code)
      latestMs = Math.max(latestMs, performance.now() - startedAtMs - deadlineMs)
      return undefined
    }
  }

  async function call(party: Parts['parties'][number], stayMs: number): Promise<void> {
    const one: Call = {
      id: ids.next(),
      ...party,
      operation: 'load',
      hold: holdOf(HELD),
      tokens: 1,
      windows: [],
      claims: [],
    }
    const { id, accountId } = one
    const judgement = await timed(calls.begin(one), beginDeadlineMs)
    if (judgement?.outcome !== 'begun') {
      told.push({ id, accountId, charged: null })
      if (judgement !== undefined) note(judgement.outcome)
      await delay(PAUSE_AFTER_FAULT_MS)
      return
    }
    await delay(stayMs)
    const usage = { ...NO_USAGE, executed: true, value: nanos(CHARGED) }
    const ending = { id, accountId, amount: nanos(CHARGED), forgiven: false, usage }
    const settlement = await timed(calls.end(ending), endDeadlineMs)
    told.push({ id, accountId, charged: settlement === undefined ? null : BigInt(settlement.charged) })
    if (settlement === undefined) return
    note(settlement.outcome)
    lastChargedAtMs = performance.now()
  }

  const running = Array.from({ length: callers }, async (_, at) => {
    const party = parties[at % parties.length]
    for (let turn = at; !stopped && party !== undefined; turn += 1)
      await call(party, STAYS_MS[turn % STAYS_MS.length] ?? 0)
  })
  return {
    told,
    counts,
    latestMs: () => latestMs,
    lastChargedAtMs: () => lastChargedAtMs,
    async stop() {
      stopped = true
      await Promise.all(running)
    },
  }
}

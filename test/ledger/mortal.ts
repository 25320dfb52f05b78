import { openSync, writeSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Call, Claim, Ending } from '../../server/src/calls/call.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import { skewedClock, systemClock } from '../../server/src/kernel/clock.ts'
import { Fault } from '../../server/src/kernel/fault.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { composeProcess, createWatchfulLog, type Leases } from './mortal-process.ts'
import { callOf, type Party, postOf } from './session.ts'
import { ROOMY } from './world.ts'

/**
 * For tests, a process that makes calls until it is killed. What its callers are told is written to a file before they go
 * on, so that a kill loses nothing that somebody was told. SIGUSR2 ends the calls that it holds on to; SIGTERM stops it as
 * app.ts stops: what was accepted is finished first.
 */
export type Life = {
  readonly url: string
  readonly toldFile: string
  readonly ownerId: Id
  readonly parties: readonly Party[]
  readonly callers: number
  /** Calls that it begins when it is born and ends when it is told to. */
  readonly heldCalls: number
  readonly leases: Leases
  readonly sweeps: boolean
  /** By how much its clock is wrong. */
  readonly skewMs: number
  readonly batchLimit: number
  /** How long an ending may take; without it as the product has it. */
  readonly endDeadlineMs?: number
  readonly allowances: readonly Id[]
}

export const HELD = 30n
export const CHARGED = 20n
export const OVERRUN = 15n
/** In one set for each credential; few enough to be missed when the dead keep theirs. */
export const SLOT: Claim = {
  scope: 'concurrency',
  key: 'all',
  limit: 6,
  fingerprint: '',
  keepSeconds: 0,
  endsWithOwner: true,
}
export const KEPT_SECONDS = 3_600

export function keyOf(key: string): Claim {
  return { scope: 'idempotency', key, limit: 1, fingerprint: 'same', keepSeconds: KEPT_SECONDS, endsWithOwner: false }
}

const CLAIMS = ['none', 'slot', 'none', 'key'] as const
const STAYS_MS = [0, 3, 15, 40, 100, 300]
const PAUSE_MS = 20
const PORTION = 100

if (process.argv[1] === import.meta.filename) await live(JSON.parse(process.argv[2] ?? ''))

async function live(life: Life): Promise<void> {
  const file = openSync(life.toldFile, 'a')
  const tell = (...words: readonly unknown[]) => {
    writeSync(file, `${Date.now()} ${words.join(' ')}\n`)
  }
  const process_ = composeProcess({
    ...life,
    clock: skewedClock(systemClock, life.skewMs),
    log: createWatchfulLog(tell),
  })
  const { calls, ids } = process_
  let stopped = false

  async function begin(call: Call): Promise<boolean> {
    tell('invoked', call.id, call.accountId, call.credentialId, call.claims[0]?.scope ?? 'plain')
    try {
      const { outcome } = await calls.begin(call)
      if (outcome === 'begun') tell('begun', call.id)
      else tell('refused', call.id, outcome)
      return outcome === 'begun'
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      tell('faulted', call.id, error.code)
      return false
    }
  }

  async function end(ending: Ending): Promise<void> {
    tell('ending', ending.id, ending.amount ?? 'null')
    try {
      const { outcome, charged } = await calls.end(ending)
      tell('ended', ending.id, charged, outcome)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      tell('faulted', ending.id, error.code)
    }
  }

  async function callAgainAndAgain(party: Party, first: number): Promise<void> {
    for (let turn = first; !stopped; turn += 1) {
      const call = newCall(party, CLAIMS[turn % CLAIMS.length] ?? 'none')
      if (!(await begin(call))) await delay(PAUSE_MS)
      else {
        await delay(STAYS_MS[turn % STAYS_MS.length])
        await end(endingOf(call, turn))
      }
    }
  }

  function newCall(party: Party, claim: 'slot' | 'key' | 'none'): Call {
    const id = ids.next()
    const claims = claim === 'slot' ? [SLOT] : claim === 'key' ? [keyOf(id)] : []
    return callOf(party, { id, hold: HELD, tokens: 1, windows: [ROOMY], claims, allowances: life.allowances })
  }

  const partyAt = (at: number) => life.parties[at % life.parties.length] as Party

  await process_.start()
  const held = Array.from({ length: life.heldCalls }, (_, at) => newCall(partyAt(at), 'key'))
  const areBegun = await inPortions(held, begin)
  process.on('SIGUSR2', () => {
    for (const [at, call] of held.entries()) if (areBegun[at]) void end(postOf(call, CHARGED))
  })
  const callers = Array.from({ length: life.callers }, (_, at) => callAgainAndAgain(partyAt(at), at))
  process.on('SIGTERM', async () => {
    stopped = true
    await Promise.all(callers)
    await process_.stop()
    tell('stopped')
    process.exit(0)
  })
  tell('ready')
}

/** So that the last of many does not wait for all others until its deadline. */
async function inPortions(calls: readonly Call[], begin: (call: Call) => Promise<boolean>): Promise<boolean[]> {
  const areBegun: boolean[] = []
  for (let first = 0; first < calls.length; first += PORTION)
    areBegun.push(...(await Promise.all(calls.slice(first, first + PORTION).map(begin))))
  return areBegun
}

/** Most are charged less than was held, some more than that, some nothing. */
function endingOf(call: Call, turn: number): Ending {
  if (turn % 10 === 9) return voidOf(call)
  return postOf(call, turn % 10 === 8 ? HELD + OVERRUN : CHARGED)
}

import { setTimeout as delay } from 'node:timers/promises'
import { Fault } from '../../server/src/kernel/fault.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { composeProcess, SHORT_LEASES } from './mortal-process.ts'
import { callOf, extensionOf, type Party, postOf } from './session.ts'

/**
 * For tests, a process whose calls grow as they run, until it is told to stop or killed. Each line that it prints is what a caller was
 * told, of a call that has ended or met its ceiling.
 */
export type GrowingLife = {
  readonly url: string
  readonly party: Party
  readonly allowances: readonly Id[]
  readonly streams: number
  readonly sweeps: boolean
}

export const FIRST = 10n
const MOST = 640n
const BEYOND = 5n
const PAUSES_MS = [0, 1, 3, 7]
const WINDOW = { group: 'tokens', seconds: 60, requestLimit: 1_000_000_000, tokenLimit: 1_000_000_000 }

if (process.argv[1] === import.meta.filename) await live(JSON.parse(process.argv[2] ?? ''))

async function live({ url, party, allowances, streams, sweeps }: GrowingLife): Promise<void> {
  const process_ = composeProcess({ url, leases: SHORT_LEASES, sweeps })
  const { calls, ids } = process_
  let stopped = false

  /** Delivers as much as is held, asks for twice as much, and ends where there is no more or it has said enough. */
  async function stream(turn: number): Promise<void> {
    const call = callOf(party, { id: ids.next(), hold: FIRST, tokens: Number(FIRST), windows: [WINDOW], allowances })
    if ((await calls.begin(call)).outcome !== 'begun') return void (await delay(5))
    const enough = FIRST << BigInt(turn % 8)
    let held = FIRST
    let why = 'complete'
    while (held < enough && held < MOST) {
      await delay(PAUSES_MS[turn % PAUSES_MS.length])
      const growth = await calls.extend(extensionOf(call, 2n * held, Number(2n * held)))
      why = growth.outcome
      if (growth.outcome !== 'extended') break
      held = growth.held
    }
    // Most cost little, so that it is what they hold that meets the ceiling; some cost more than they hold.
    const used = turn % 50 === 0 ? held + BEYOND : 1n
    const { charged } = await calls.end(postOf(call, used, { outputTokens: Number(held) }))
    console.log(`${why === 'extended' ? 'complete' : why} ${call.id} ${held} ${charged}`)
  }

  async function streamOnAndOn(first: number): Promise<void> {
    for (let turn = first; !stopped; turn += 1) {
      // Where PostgreSQL is slow, a call may not be begun, or not be ended in time: nothing is told of it then.
      await stream(turn).catch((error: unknown) => {
        if (!(error instanceof Fault)) throw error
      })
    }
  }

  await process_.start()
  const running = Array.from({ length: streams }, (_, at) => streamOnAndOn(at))
  process.on('SIGTERM', async () => {
    stopped = true
    await Promise.all(running)
    await process_.stop()
    process.exit(0)
  })
  console.log('ready')
}

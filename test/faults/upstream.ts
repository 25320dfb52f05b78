import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../harness/free-port.ts'
import { type SandboxProcess, startSandbox } from '../../harness/sandbox.ts'
import type { JournalEntry } from '../../sandbox/src/journal.ts'
import { createTurn, type Turn } from './turn.ts'
import type { Way } from './way.ts'

/** The sandbox, which can be killed without losing what it knows of what it was asked. */
export type Upstream = {
  readonly url: string
  readonly way: Way
  readonly turn: Turn
  readonly process: () => SandboxProcess
  /** Kills it in the middle of what it answers; how many requests got no answer by it. */
  readonly kill: () => Promise<number>
  readonly start: () => Promise<void>
  /** Of all its lives, in order. */
  readonly journal: () => Promise<readonly JournalEntry[]>
  readonly stop: () => Promise<unknown>
}

const ARRIVES_WITHIN_MS = 30

export async function createUpstream(
  seed: number,
  makeWay: (name: string, port: number) => Promise<Way>,
): Promise<Upstream> {
  const port = await freePort()
  const way = await makeWay('upstream', port)
  const past: JournalEntry[] = []
  let sandbox = await startSandbox({ seed, port })

  return {
    url: sandbox.url,
    way,
    turn: createTurn(),
    process: () => sandbox,
    async kill() {
      // Nothing more arrives while its journal is read, so that the journal is all that it was ever asked.
      way.stall()
      await delay(ARRIVES_WITHIN_MS)
      past.push(...(await sandbox.journal()))
      const unanswered = way.busy()
      await sandbox.kill()
      way.cut('reset')
      way.resume()
      return unanswered
    },
    async start() {
      sandbox = await startSandbox({ seed, port })
    },
    journal: async () => [...past, ...(await sandbox.journal())],
    stop: () => sandbox.kill(),
  }
}

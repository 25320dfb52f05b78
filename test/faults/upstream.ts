import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { request } from 'undici'
import { freePort } from '../../harness/free-port.ts'
import { type SandboxProcess, startBareSandbox } from '../../harness/sandbox.ts'
import type { JournalEntry } from '../../sandbox/src/journal.ts'
import type { ShownTask } from '../../sandbox/src/upstreams/video-tasks.ts'
import { createTurn, type Turn } from './turn.ts'
import type { Way } from './way.ts'

/** The sandbox, which can be killed without losing what it knows of what it was asked. */
export type Upstream = {
  readonly url: string
  readonly way: Way
  readonly turn: Turn
  readonly process: () => SandboxProcess
  /** Kills it in the middle of what it answers; how many requests got no answer by it. It lives on where that is none. */
  readonly kill: () => Promise<number>
  readonly start: () => Promise<void>
  /** Of all its lives, in order. */
  readonly journal: () => Promise<readonly JournalEntry[]>
  /** The video tasks that it has made, in all its lives. */
  readonly videoTasks: () => Promise<readonly ShownTask[]>
  readonly stop: () => Promise<unknown>
}

const ARRIVES_WITHIN_MS = 30

type Options = {
  readonly seed: number
  /** Where it writes down what it goes on with after a death. */
  readonly folder: string
  readonly makeWay: (name: string, port: number) => Promise<Way>
}

export async function createUpstream({ seed, folder, makeWay }: Options): Promise<Upstream> {
  const videoTasks = path.join(folder, 'video-tasks.json')
  const port = await freePort()
  const way = await makeWay('upstream', port)
  const past: JournalEntry[] = []
  let sandbox = await startBareSandbox({ seed, port })

  return {
    url: sandbox.url,
    way,
    turn: createTurn(),
    process: () => sandbox,
    async kill() {
      // Nothing more arrives while its journal is read, so that the journal is all that it was ever asked.
      way.stall()
      await delay(ARRIVES_WITHIN_MS)
      const before = past.length
      past.push(...(await sandbox.journal()))
      writeFileSync(videoTasks, await textAt(`${sandbox.url}/control/video/kept`))
      const unanswered = way.busy()
      if (unanswered === 0) {
        past.splice(before)
        way.resume()
        return 0
      }
      await sandbox.kill()
      way.cut('reset')
      way.resume()
      return unanswered
    },
    async start() {
      sandbox = await startBareSandbox({ seed, port, videoTasks })
    },
    journal: async () => [...past, ...(await sandbox.journal())],
    async videoTasks() {
      const all: ShownTask[] = []
      for (let next = 0; ; ) {
        const page = JSON.parse(await textAt(`${sandbox.url}/control/video/tasks?since=${next}`))
        all.push(...page.tasks)
        if (page.tasks.length === 0) return all
        next = page.next
      }
    },
    stop: () => sandbox.kill(),
  }
}

async function textAt(address: string): Promise<string> {
  // Leaves no connection behind.
  return (await request(address, { reset: true })).body.text()
}

import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { type Gateway, startGateway } from '../../harness/gateways.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import type { Turn } from './turn.ts'
import type { Way } from './way.ts'

/** One of our processes in the cluster: killed, paused and restarted, it keeps its name, its ports and its ways. */
export type Member = {
  readonly name: string
  readonly database: Way
  /** From the load balancer to it; undefined for the worker. */
  readonly edge: Way | undefined
  readonly process: () => Gateway
  /** The owners of calls that it was, one for each time that it started. */
  readonly owners: ReadonlySet<Id>
  /** Whoever does something to the process has it for itself. */
  readonly turn: Turn
  readonly start: () => Promise<void>
  /** From its next start on it runs another program, by its path from the root. */
  readonly runs: (program: string) => void
  readonly kill: () => Promise<void>
  /** Asks it to end and waits until it has. */
  readonly stop: () => Promise<void>
  readonly moveClock: (offsetMs: number) => void
  /** How often it ended without being asked to, with its last words. */
  readonly deaths: readonly string[]
}

type Parts = {
  readonly name: string
  readonly database: Way
  readonly databaseUrl: string
  readonly edge?: Way
  readonly program: string
  readonly env: Readonly<Record<string, string>>
  readonly folder: string
  readonly pool: pg.Pool
  /** Members start one after another, so that a new owner is known to be theirs. */
  readonly starts: Turn
}

const START_DEADLINE_MS = 60_000
const START_AGAIN_MS = 300
const STOP_DEADLINE_MS = 75_000

export function createMember(parts: Parts & { readonly turn: Turn }): Member {
  const { name, database, databaseUrl, edge, env, folder, pool, starts, turn } = parts
  const clockFile = path.join(folder, `${name}.clock`)
  const owners = new Set<Id>()
  const deaths: string[] = []
  const log: string[] = []
  let { program } = parts
  let current: Gateway | undefined
  let isExpectedToEnd = false

  const options = {
    databaseUrl,
    env: { ...env, HARNESS_CLOCK_FILE: clockFile },
    onLine(line: string) {
      log.push(line)
      if (log.length > LINES_KEPT) log.shift()
      writeFileSync(path.join(folder, `${name}.log`), `${line}\n`, { flag: 'a' })
    },
  }

  async function tryToStart(): Promise<boolean> {
    try {
      const before = await ownersIn(pool)
      const started = await startGateway({ ...options, program })
      current = started
      isExpectedToEnd = false
      void started.exited.then(({ code, signal }) => {
        if (!isExpectedToEnd) deaths.push(`${name} ended by itself (${code ?? signal}): ${log.slice(-3).join(' ')}`)
      })
      for (const id of await ownersSurely(pool)) if (!before.has(id)) owners.add(id)
      return true
    } catch {
      // PostgreSQL is away: a supervisor tries again.
      return false
    }
  }

  return {
    name,
    database,
    edge,
    owners,
    turn,
    deaths,
    process() {
      if (current === undefined) throw new Error(`${name} has never been started`)
      return current
    },
    start: () =>
      starts(async () => {
        writeFileSync(clockFile, '0')
        const deadlineMs = performance.now() + START_DEADLINE_MS
        while (!(await tryToStart())) {
          if (performance.now() > deadlineMs)
            throw new Error(`${name} could not be started:\n${log.slice(-20).join('\n')}`)
          await delay(START_AGAIN_MS)
        }
      }),
    runs(other) {
      program = other
    },
    async kill() {
      isExpectedToEnd = true
      await current?.kill()
    },
    async stop() {
      isExpectedToEnd = true
      await current?.stop('SIGTERM', STOP_DEADLINE_MS)
    },
    moveClock(offsetMs) {
      writeFileSync(clockFile, String(offsetMs))
      current?.signal('SIGUSR2')
    },
  }
}

const LINES_KEPT = 200

async function ownersIn(pool: pg.Pool): Promise<ReadonlySet<Id>> {
  const { rows } = await pool.query<{ id: Id }>('select id from owners')
  return new Set(rows.map(({ id }) => id))
}

async function ownersSurely(pool: pg.Pool): Promise<ReadonlySet<Id>> {
  for (;;) {
    try {
      return await ownersIn(pool)
    } catch {
      await delay(START_AGAIN_MS)
    }
  }
}

import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { after } from 'node:test'
import type pg from 'pg'
import { count } from '../../harness/proof.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { Secret } from '../../server/src/kernel/secret.ts'
import type { MortalDoor, Opened } from './mortal-door.ts'

/** One of three processes is killed after each statement of a request, while the others get the same request. */
const MOST_STATEMENTS = 60
/** In the gate, every so many statements. */
const EVERY = count({ full: 1, reduced: 7 })

type Place = { readonly url: string; readonly masterKey: Secret; readonly pool: pg.Pool }
type Door = { readonly url: string; readonly process: ChildProcess }

export type Send<T> = (door: { readonly url: string }) => Promise<T>
export type Death = { readonly dieAfter: number; readonly isAlone: boolean }

export async function openDoors(place: Place) {
  async function open(dieAfter: number | null): Promise<Door> {
    const door = fork(path.join(import.meta.dirname, 'mortal-door.ts'))
    door.send({ url: place.url, masterKey: place.masterKey.reveal(), dieAfter } satisfies MortalDoor)
    const [{ port }]: [Opened] = (await once(door, 'message')) as [Opened]
    after(() => door.kill('SIGKILL'))
    return { url: `http://127.0.0.1:${port}`, process: door }
  }

  const living = await Promise.all([open(null), open(null)])

  async function isQuiet(): Promise<boolean> {
    const { rows } = await place.pool.query(
      "select count(*)::integer as count from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'",
    )
    return rows[0]?.count === 0
  }

  return {
    living,
    /**
     * Sends a request to a process that dies within it, and to the others, at once or when it is dead; what those answered, or null
     * once it no longer dies.
     */
    async underDeath<T>(send: Send<T>, { dieAfter, isAlone }: Death): Promise<readonly T[] | null> {
      const victim = await open(dieAfter)
      const dying = send(victim).then(
        () => false,
        () => true,
      )
      if (isAlone) await dying
      const [hasDied, ...others] = await Promise.all([dying, ...living.map(send)])
      if (hasDied && victim.process.exitCode === null && victim.process.signalCode === null)
        await once(victim.process, 'exit')
      victim.process.kill('SIGKILL')
      await until(isQuiet, PATIENCE_MS, 'that PostgreSQL has noticed')
      return hasDied ? others : null
    },
  }
}

/** Runs a scenario with a death after each of its statements, before the others begin and while they are at it. How many those were. */
export async function atEveryStatement(check: (death: Death) => Promise<boolean>): Promise<number> {
  return (
    (await atEvery((dieAfter) => check({ dieAfter, isAlone: true }))) +
    (await atEvery((dieAfter) => check({ dieAfter, isAlone: false })))
  )
}

async function atEvery(check: (dieAfter: number) => Promise<boolean>): Promise<number> {
  let deaths = 0
  for (let dieAfter = 1; dieAfter <= MOST_STATEMENTS; dieAfter += EVERY) {
    if (!(await check(dieAfter))) {
      assert.ok(deaths > 0, 'nobody died')
      return deaths
    }
    deaths += 1
  }
  return assert.fail('it never came to an end')
}

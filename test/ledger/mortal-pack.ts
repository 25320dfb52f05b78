import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Child, startChild } from '../../harness/child.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import type { Life } from './mortal.ts'
import { type Taking, ToldFile } from './mortal-told.ts'
import { ids } from './world.ts'

/** A process that makes calls and may be killed, seen from outside. */
export type Mortal = {
  readonly ownerId: Id
  readonly child: Child
  /** What it has told until now. */
  readonly told: () => ToldFile
  /** When it was killed, by the wall clock that PostgreSQL has too. */
  readonly killedAtMs: () => number | undefined
  readonly kill: () => Promise<void>
  /** SIGTERM: it finishes what it has accepted. Fails where it does not. */
  readonly stop: () => Promise<void>
}

export type Pack = {
  readonly all: readonly Mortal[]
  readonly start: (life?: Partial<Life>) => Promise<Mortal>
  /** Every call that a sweeper of the pack marked. */
  readonly swept: () => readonly Taking[]
  readonly close: () => Promise<void>
}

const PROGRAM = path.join(import.meta.dirname, 'mortal.ts')

type Common = Pick<Life, 'url' | 'parties' | 'leases'>

export function startPack(common: Common): Pack {
  const folder = mkdtempSync(path.join(tmpdir(), 'farebox-mortals-'))
  const all: Mortal[] = []

  async function start(life: Partial<Life> = {}): Promise<Mortal> {
    const ownerId = ids.next()
    const mortal = beget({ ...DEFAULTS, ...common, ...life, ownerId, toldFile: path.join(folder, ownerId) })
    all.push(mortal)
    const isBorn = () => {
      if (mortal.child.hasExited()) throw new Error(`a mortal died by itself:\n${mortal.child.output()}`)
      return mortal.told().isReady
    }
    await until(isBorn, PATIENCE_MS, 'its birth')
    return mortal
  }

  return {
    all,
    start,
    swept: () => all.flatMap((mortal) => mortal.told().swept),
    async close() {
      await Promise.all(all.map(({ child }) => child.kill()))
      for (const mortal of all) mortal.told().close()
      rmSync(folder, { recursive: true })
    },
  }
}

const DEFAULTS = { callers: 0, heldCalls: 0, sweeps: false, skewMs: 0, batchLimit: 256, allowances: [] }

function beget(life: Life): Mortal {
  const told = new ToldFile(life.toldFile)
  const child = startChild(process.execPath, [PROGRAM, JSON.stringify(life)])
  let killedAtMs: number | undefined
  return {
    ownerId: life.ownerId,
    child,
    told: () => told.read(),
    killedAtMs: () => killedAtMs,
    async kill() {
      if (child.hasExited()) throw new Error(`a mortal died before it was killed:\n${child.output()}`)
      killedAtMs = Date.now()
      child.signal('SIGKILL')
      await child.exited
    },
    async stop() {
      const { code, signal } = await child.stop('SIGTERM', PATIENCE_MS)
      if (code !== 0) throw new Error(`a mortal stopped with ${signal ?? code}:\n${child.output()}`)
    },
  }
}

import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { descendants, isAlive } from '../../harness/processes.ts'

const TASKSET = '/usr/bin/taskset'
const CORES = availableParallelism()
const BUT_THE_FIRST = CORES > 1 ? `1-${CORES - 1}` : '0'

/** The measured server; PostgreSQL; generator and upstream. */
export type Place = 'server' | 'postgres' | 'others'

/** Who has which cores. In both, the measured server has the first. */
export type Layout = 'shared' | 'apart'
const LAYOUTS: Readonly<Record<Layout, Readonly<Record<Place, string>>>> = {
  /** PostgreSQL shares its cores with generator and upstream. */
  shared: { server: '0', postgres: BUT_THE_FIRST, others: BUT_THE_FIRST },
  /** PostgreSQL is alone on the second core. Of only two, everybody else is on the first, the measured server included. */
  apart: { server: '0', postgres: '1', others: CORES > 2 ? `2-${CORES - 1}` : '0' },
}

export const isPinned = existsSync(TASKSET) && CORES > 1

/** A command line that runs on its own core, where the machine has the means. */
export function pinned(
  where: Place,
  command: string,
  args: readonly string[],
  layout: Layout = 'shared',
): [string, string[]] {
  return isPinned ? [TASKSET, ['-c', LAYOUTS[layout][where], command, ...args]] : [command, [...args]]
}

/** Moves a process that runs, with all its threads and all that it started. */
export function pin(where: Place, pid: number, layout: Layout = 'shared'): void {
  if (!isPinned) return
  for (const one of [pid, ...descendants(pid)]) {
    try {
      execFileSync(TASKSET, ['-a', '-c', '-p', LAYOUTS[layout][where], String(one)], { stdio: 'pipe' })
    } catch (error) {
      // A connection of PostgreSQL may have ended since we looked.
      if (one === pid || isAlive(one)) throw error
    }
  }
}

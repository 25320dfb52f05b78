import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'

const TASKSET = '/usr/bin/taskset'

/** Of two cores the measured server has the first, and generator, upstream and PostgreSQL the other. */
const CORES = { server: '0', others: availableParallelism() > 1 ? `1-${availableParallelism() - 1}` : '0' }

export const isPinned = existsSync(TASKSET) && availableParallelism() > 1

/** A command line that runs on its own core, where the machine has the means. */
export function pinned(where: keyof typeof CORES, command: string, args: readonly string[]): [string, string[]] {
  return isPinned ? [TASKSET, ['-c', CORES[where], command, ...args]] : [command, [...args]]
}

/** Moves a process that runs, with all its threads. */
export function pin(where: keyof typeof CORES, pid: number): void {
  if (isPinned) execFileSync(TASKSET, ['-a', '-c', '-p', CORES[where], String(pid)], { stdio: 'pipe' })
}

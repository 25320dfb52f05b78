import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { descendants } from '../harness/processes.ts'

const MICROSECONDS_PER_TICK = 1_000_000 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/** CPU time in microseconds of a process, from the kernel's own count. One that has ended counts nothing. */
function cpuMicroseconds(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
    // With those of its own that have ended meanwhile, such as a connection of PostgreSQL.
    return [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0) * MICROSECONDS_PER_TICK
  } catch {
    return 0
  }
}

/** The process and everything that it started. */
export function treeCpuMicroseconds(pid: number): number {
  return [pid, ...descendants(pid)].reduce((sum, one) => sum + cpuMicroseconds(one), 0)
}

export function ownCpuMicroseconds(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

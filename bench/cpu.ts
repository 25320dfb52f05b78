import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { descendants, processIds } from '../harness/processes.ts'

const MICROSECONDS_PER_TICK = 1_000_000 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

type Process = {
  readonly parent: number
  /** By which a number that was given again is told from the one before. */
  readonly startedAt: number
  readonly ownUs: number
  /** Of those of its own that have ended, such as a connection of PostgreSQL. */
  readonly endedUs: number
}

/** The kernel's own count for a process; undefined of one that has ended. */
function processOf(pid: number): Process | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ').map(Number) ?? []
    const [, parent = 0] = fields
    const [own = 0, ownSystem = 0, ended = 0, endedSystem = 0] = fields.slice(11)
    const [ownUs, endedUs] = [own + ownSystem, ended + endedSystem].map((ticks) => ticks * MICROSECONDS_PER_TICK)
    return { parent, startedAt: fields[19] ?? 0, ownUs: ownUs ?? 0, endedUs: endedUs ?? 0 }
  } catch {
    return undefined
  }
}

/** CPU time in microseconds of a process and everything that it started. */
export function treeCpuMicroseconds(pid: number): number {
  return [pid, ...descendants(pid)].reduce((sum, one) => {
    const { ownUs, endedUs } = processOf(one) ?? { ownUs: 0, endedUs: 0 }
    return sum + ownUs + endedUs
  }, 0)
}

/**
 * Counts the CPU time of everybody but a process and what it started, from now on; with what the host of a virtual machine
 * gave to others. By process, because the sums of /proc/stat may be sampled, and can then miss who wakes up with the clock.
 */
export function watchOthers(pid: number): () => number {
  const [before, stolenBeforeUs] = [allProcesses(), stolenUs()]
  return () => {
    const now = allProcesses()
    const ended = [...before].filter(([one, { startedAt }]) => now.get(one)?.startedAt !== startedAt)
    // What those that have ended had used before is in the count of who started them, unless nobody asked how they ended.
    const knownOfEnded = (of: number): number =>
      ended
        .filter(([, { parent }]) => parent === of)
        .reduce((sum, [one, { ownUs, endedUs }]) => sum + ownUs + endedUs + knownOfEnded(one), 0)
    let sumUs = stolenUs() - stolenBeforeUs
    for (const [one, { startedAt, ownUs, endedUs }] of now) {
      if (isWithin(now, one, pid)) continue
      const known = before.get(one)
      const was = known?.startedAt === startedAt ? known : { ownUs: 0, endedUs: 0 }
      sumUs += ownUs - was.ownUs + Math.max(0, endedUs - was.endedUs - knownOfEnded(one))
    }
    return sumUs
  }
}

function allProcesses(): ReadonlyMap<number, Process> {
  return new Map(
    processIds().flatMap((pid) => {
      const process = processOf(pid)
      return process === undefined ? [] : [[pid, process] as const]
    }),
  )
}

function isWithin(all: ReadonlyMap<number, Process>, pid: number, root: number): boolean {
  for (let one = pid; one > 1; one = all.get(one)?.parent ?? 0) if (one === root) return true
  return false
}

/** Nothing where the kernel does not tell. */
function stolenUs(): number {
  try {
    const [first = ''] = readFileSync('/proc/stat', 'utf8').split('\n')
    return Number(first.split(/\s+/)[8] ?? 0) * MICROSECONDS_PER_TICK
  } catch {
    return 0
  }
}

export function ownCpuMicroseconds(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

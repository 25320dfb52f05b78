import { readFileSync } from 'node:fs'

const TICKS_A_SECOND = 100

/** What this process and all that it started and has seen end have used, PostgreSQL among them; 0 where nothing tells, as on macOS. */
export function cpuSeconds(): number {
  return Math.round(exactCpuSeconds())
}

export function exactCpuSeconds(): number {
  return sumOf(0, 4)
}

/** What those have used that this process started, and has seen end. */
export function endedCpuSeconds(): number {
  return sumOf(2, 4)
}

function sumOf(first: number, end: number): number {
  try {
    const fields = readFileSync('/proc/self/stat', 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    // utime, stime, cutime and cstime, of which the first is the 14th field of all.
    const times = fields.slice(11, 15).slice(first, end)
    return times.reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_A_SECOND
  } catch {
    return 0
  }
}

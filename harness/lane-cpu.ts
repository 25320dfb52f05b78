import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { cpuSeconds, exactCpuSeconds } from './cpu-seconds.ts'
import { isShared, laneOf } from './lane.ts'

const FILE = 'cpu'

/** Writes down, when this test process ends, what it and the programs that it started have used. */
export function noteCpu(folder: string | undefined): void {
  if (folder === undefined) return
  const lane = isShared ? 'shared' : laneOf(process.argv[1] ?? '')
  process.once('exit', () => {
    // The run may be over, and its folder gone.
    if (existsSync(folder)) appendFileSync(path.join(folder, FILE), `${lane} ${exactCpuSeconds()}\n`)
  })
}

/** What the lanes have used; PostgreSQL and this run itself are the rest. */
export function cpuByLane(folder: string): string {
  const sums = new Map<string, number>()
  for (const line of readFileSync(path.join(folder, FILE), { encoding: 'utf8', flag: 'a+' }).trim().split('\n')) {
    const [lane = '', seconds = '0'] = line.split(' ')
    sums.set(lane, (sums.get(lane) ?? 0) + Number(seconds))
  }
  sums.delete('')
  const known = [...sums.values()].reduce((a, b) => a + b, 0)
  const rest = Math.max(0, cpuSeconds() - known)
  const lanes = [...sums, ['PostgreSQL and the run', rest] as const]
  return lanes.map(([lane, seconds]) => `${lane} ${Math.round(seconds)}`).join(', ')
}

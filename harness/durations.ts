import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from './root.ts'

/** How long each test file took when somebody last looked, in seconds. It decides the order of a run, and nothing else. */
const FILE = path.join(ROOT, 'test/durations.json')

/** The longest first, so that no run ends with one that everybody waits for. A file that nobody has timed may be the longest. */
export function longestFirst(files: readonly string[]): string[] {
  const known = readDurations()
  const secondsOf = (file: string) => Number(known[path.relative(ROOT, file)] ?? Number.POSITIVE_INFINITY)
  return files.toSorted((a, b) => secondsOf(b) - secondsOf(a) || (a < b ? -1 : 1))
}

/** What a run of some files saw takes the place of what was known of these; files that are gone go. */
export function mergeDurations(durationsMs: ReadonlyMap<string, number>): void {
  const seen = [...durationsMs].map(([file, ms]) => [path.relative(ROOT, file), Math.ceil(ms / 1000)] as const)
  const all = Object.entries({ ...readDurations(), ...Object.fromEntries(seen) })
  const there = all.filter(([file]) => existsSync(path.join(ROOT, file))).toSorted(([a], [b]) => (a < b ? -1 : 1))
  writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(there), null, 2)}\n`)
}

function readDurations(): Readonly<Record<string, unknown>> {
  return existsSync(FILE) ? JSON.parse(readFileSync(FILE, 'utf8')) : {}
}

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from './root.ts'

/** How long each test file took when somebody last looked, in seconds. It decides the order of a run, and nothing else. */
const FILE = path.join(ROOT, 'test/durations.json')

/** The longest first, so that no run ends with one that everybody waits for. A file that nobody has timed may be the longest. */
export function longestFirst(files: readonly string[]): string[] {
  const known = existsSync(FILE)
    ? new Map<string, unknown>(Object.entries(JSON.parse(readFileSync(FILE, 'utf8'))))
    : new Map()
  const secondsOf = (file: string) => Number(known.get(path.relative(ROOT, file)) ?? Number.POSITIVE_INFINITY)
  return files.toSorted((a, b) => secondsOf(b) - secondsOf(a) || (a < b ? -1 : 1))
}

export function recordDurations(durationsMs: ReadonlyMap<string, number>): void {
  const seconds = [...durationsMs]
    .map(([file, durationMs]) => [path.relative(ROOT, file), Math.ceil(durationMs / 1000)] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
  writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(seconds), null, 2)}\n`)
}

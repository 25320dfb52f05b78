import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { filesOfCheckout } from './checkout-files.ts'
import { changedSince, commitNamed } from './commit.ts'
import { laneOf } from './lane.ts'
import { isSubject } from './night-subjects.ts'
import { ROOT } from './root.ts'
import { createSources } from './sources.ts'

const Night = z.object({
  /** The commit whose tests were all green. */
  commit: z.string(),
  recorded_at: z.string(),
  passed: z.number(),
  files: z.number(),
  seconds: z.number(),
  cpu_seconds: z.number(),
})
export type Night = z.output<typeof Night>

const NIGHT = 'test/night.json'
/** What a run writes about itself. */
const RECORDS: ReadonlySet<string> = new Set([NIGHT, 'test/durations.json'])
/** With these every test may come out otherwise. */
const EVERYTHING = /^(harness\/|\.ci\/|package(-lock)?\.json$|(\w+\/)?tsconfig\.json$)/
/** The tests of documents follow the links of every paper and run what stands in its fences. */
const PAPER = /\.md$/
const TESTS_OF_PAPERS = 'test/documents/'

/**
 * Which of the tests a change reaches: those that import, start or read a changed file, as far as files say it, and that are about
 * it. A changed file that none of all tests names reaches every one of them.
 */
export function reachedBy(
  changed: Iterable<string>,
  {
    among,
    all,
    root = ROOT,
  }: { readonly among: readonly string[]; readonly all: readonly string[]; readonly root?: string },
): readonly string[] {
  const counted = [...changed].filter((file) => !RECORDS.has(file))
  if (counted.some((file) => EVERYTHING.test(file))) return among
  const sources = createSources(root, filesOfCheckout(root))
  const reaches = (file: string) => {
    const isReached = (test: string) =>
      sources.of(test).includes(file) || (PAPER.test(file) && test.startsWith(TESTS_OF_PAPERS))
    return all.some(isReached) ? among.filter((test) => isReached(test) && isSubject(test, file)) : among
  }
  const reached = new Set(counted.flatMap(reaches))
  return among.filter((test) => reached.has(test))
}

/** The tests of the gate: all but those of the night that nothing reached since the last green one. */
export function gateOf(files: readonly string[]): { readonly files: readonly string[]; readonly why: string } {
  const atNight = files.filter((file) => laneOf(file) === 'night')
  const always = files.filter((file) => laneOf(file) !== 'night')
  const night = lastNight()
  const commit = night === undefined ? undefined : commitNamed(night.commit)
  if (commit === undefined) return { files, why: 'no green night is known here, so all tests of the night join' }
  const reached = affectedSince(commit, atNight, files)
  const why = `${reached.length} of ${atNight.length} tests of the night join: reached since ${commit.slice(0, 8)}`
  return { files: [...always, ...reached], why }
}

/** Which of some test files a change since a commit reaches, by full paths. */
export function affectedSince(commit: string, among: readonly string[], all: readonly string[]): readonly string[] {
  const inProject = (files: readonly string[]) => files.map((file) => path.relative(ROOT, file))
  const reached = reachedBy(changedSince(commit), { among: inProject(among), all: inProject(all) })
  return reached.map((file) => path.join(ROOT, file))
}

function lastNight(): Night | undefined {
  const file = path.join(ROOT, NIGHT)
  return existsSync(file) ? Night.parse(JSON.parse(readFileSync(file, 'utf8'))) : undefined
}

export function recordNight(night: Night): void {
  writeFileSync(path.join(ROOT, NIGHT), `${JSON.stringify(night, undefined, 2)}\n`)
}

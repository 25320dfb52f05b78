import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { seedOfCommit } from './commit-seed.ts'
import { longestFirst } from './durations.ts'
import { ROOT } from './root.ts'
import { startTestPostgres } from './test-postgres.ts'

export type Outcome = 'passed' | 'failed' | 'skipped'
export type Result = {
  /** The titles from the outermost suite to the test, the test's own last. */
  readonly titles: readonly string[]
  readonly outcome: Outcome
  readonly file: string
  readonly durationMs: number
}

type Options = {
  readonly files: readonly string[]
  readonly quiet?: boolean
  /** Full counts take minutes and want the machine for themselves. */
  readonly oneByOne?: boolean
  /** Told how long each file took. */
  readonly onDuration?: (file: string, durationMs: number) => void
}

const TEST_FILE = /\.test\.ts$/
/** Tests that would disturb others run last, one at a time. */
const ALONE = /\.alone\.test\.ts$/
/** More files than cores: most of them wait for something most of the time. */
const TOGETHER = 4
const FOLDERS = ['server/src', 'sandbox/src', 'client/src', 'console/src', 'harness', 'scripts', 'bench', 'test']
/** Each of some hundreds of processes would strip and compile the same files again. `npm ci` empties it. */
const COMPILE_CACHE = path.join(ROOT, 'node_modules/.cache/compile')
/** A test that hangs must not hang the run; a proof at full counts takes its time. */
const TEST_TIMEOUT_MS = { proof: 90 * 60_000, otherwise: 10 * 60_000 }

export function findTests(within: readonly string[] = FOLDERS): string[] {
  return within.flatMap((place) => {
    const full = path.resolve(ROOT, place)
    if (!existsSync(full)) {
      console.error(`There is no ${place} here. Name a test file, or a folder that has some.`)
      process.exit(1)
    }
    if (TEST_FILE.test(full)) return [full]
    return readdirSync(full, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && TEST_FILE.test(entry.name) && !entry.parentPath.includes('node_modules'))
      .map((entry) => path.join(entry.parentPath, entry.name))
  })
}

/** Runs test files, each in a process of its own, on a PostgreSQL that belongs to this run. */
export async function runTests({ files, oneByOne = false, ...options }: Options): Promise<Result[]> {
  chooseSeed(options.quiet === true)
  // A proof measures what starts without one.
  if (!isFullProof()) process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE
  const postgres = await startTestPostgres()
  try {
    if (oneByOne) return await runBatch(files.toSorted(), 1, options)
    const alone = files.filter((file) => ALONE.test(file))
    const together = files.filter((file) => !alone.includes(file))
    return [
      ...(await runBatch(longestFirst(together), TOGETHER, options)),
      ...(await runBatch(longestFirst(alone), 1, options)),
    ]
  } finally {
    await postgres.remove()
  }
}

/** Once for all test processes; each process of a proof makes its own. */
function chooseSeed(quiet: boolean): void {
  if (isFullProof()) return
  const given = process.env.HARNESS_SEED
  const seed = given ?? String(seedOfCommit())
  process.env.HARNESS_SEED = seed
  const from = given === undefined ? 'from the commit' : 'given'
  if (!quiet) console.log(`seed ${seed} (${from}); HARNESS_SEED=${seed} repeats it`)
}

async function runBatch(
  files: readonly string[],
  concurrency: number,
  { quiet = false, onDuration }: Pick<Options, 'quiet' | 'onDuration'>,
): Promise<Result[]> {
  if (files.length === 0) return []
  const results: Result[] = []
  const titles: string[] = []
  const stream = run({
    files: [...files],
    concurrency,
    timeout: isFullProof() ? TEST_TIMEOUT_MS.proof : TEST_TIMEOUT_MS.otherwise,
    execArgv: ['--import', path.join(import.meta.dirname, 'exit-after-tests.ts')],
  })
  const note = (outcome: Outcome) => (event: TestEvent) => {
    if (event.details.type === 'suite' && !failedItself(event)) return
    results.push({
      titles: [...titles.slice(0, event.nesting), event.name],
      outcome: event.skip !== undefined || event.todo !== undefined ? 'skipped' : outcome,
      file: path.relative(ROOT, event.file ?? ''),
      durationMs: event.details.duration_ms,
    })
  }
  // Starts and ends are reported in the order of the source, so the titles above a test are those that started last.
  stream.on('test:start', ({ name, nesting }) => titles.splice(nesting, titles.length, name))
  stream.on('test:pass', note('passed'))
  stream.on('test:fail', note('failed'))
  stream.on('test:summary', ({ file, duration_ms }) => {
    if (file !== undefined) onDuration?.(file, duration_ms)
  })
  const report = quiet ? stream : stream.compose(spec)
  for await (const text of report) if (!quiet) process.stdout.write(String(text))
  return results
}

type TestEvent = {
  readonly name: string
  readonly nesting: number
  readonly file?: string | undefined
  readonly skip?: string | boolean | undefined
  readonly todo?: string | boolean | undefined
  readonly details: { readonly duration_ms: number; readonly type?: string | undefined; readonly error?: unknown }
}

/** A suite fails with its tests, which are counted already, or by itself when one of its hooks fails. */
function failedItself({ details: { error } }: TestEvent): boolean {
  return error instanceof Error && 'failureType' in error && error.failureType !== 'subtestsFailed'
}

export function tally(results: readonly Result[]): string {
  const count = (outcome: Outcome) => results.filter((result) => result.outcome === outcome).length
  const skipped = count('skipped')
  return `${count('passed')} passed, ${count('failed')} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`
}

/** A run with no test in it has proved nothing. */
export function isGreen(results: readonly Result[]): boolean {
  return results.length > 0 && results.every((result) => result.outcome !== 'failed')
}

/** Asked when a run starts, since the command that makes it a proof is loaded after this file. */
function isFullProof(): boolean {
  return process.env.HARNESS_PROOF === 'full'
}

import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { seedOfCommit } from './commit-seed.ts'
import { longestFirst } from './durations.ts'
import { createFileQueue } from './file-queue.ts'
import { laneOf, SHARED_PROCESS } from './lane.ts'
import { cpuByLane } from './lane-cpu.ts'
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
  /** Every file in a process of its own, whatever its lane. */
  readonly isolated?: boolean
  /** Told how long each file took. */
  readonly onDuration?: (file: string, durationMs: number) => void
}

const TEST_FILE = /\.test\.ts$/
/** More files than cores: most of them wait for something most of the time. */
const TOGETHER = 4
const FOLDERS = ['server/src', 'sandbox/src', 'client/src', 'harness', 'scripts', 'bench', 'test']
/** Each of some hundreds of processes would strip and compile the same files again. `npm ci` empties it. */
const COMPILE_CACHE = path.join(ROOT, 'node_modules/.cache/compile')
/** A test that hangs must not hang the run; a proof at full counts takes its time. */
const TEST_TIMEOUT_MS = 10 * 60_000
const RUN_TIMEOUT_MS = 90 * 60_000

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

/** Runs test files, each in the lane of its name, on a PostgreSQL that belongs to this run. */
export async function runTests({ files, isolated = false, ...options }: Options): Promise<Result[]> {
  chooseSeed(options.quiet === true)
  // A proof measures what starts without one.
  if (!isFullProof()) process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE
  const postgres = await startTestPostgres()
  const shared = longestFirst(files.filter((file) => laneOf(file) === 'shared'))
  const own = longestFirst(files.filter((file) => laneOf(file) !== 'shared'))
  const queue = createFileQueue(shared)
  process.env.HARNESS_QUEUE = queue.folder
  try {
    // Full counts take minutes and want the machine for themselves.
    if (isFullProof()) return await runBatch(files.toSorted(), 1, options)
    if (isolated) return await runBatch(longestFirst(files), TOGETHER, options)
    const processes = shared.map(() => SHARED_PROCESS)
    // Half of the places for either; whoever has nothing left makes room.
    const batch = [...processes.slice(0, TOGETHER / 2), ...own, ...processes.slice(TOGETHER / 2, TOGETHER)]
    const results = await runBatch(batch, TOGETHER, options)
    return [...results, ...unfinished(shared, results)]
  } finally {
    await postgres.remove()
    if (options.quiet !== true) console.log(`CPU seconds: ${cpuByLane(queue.folder)}`)
    queue.remove()
  }
}

/** A shared process that ends too early takes files with it that nobody would miss. */
function unfinished(files: readonly string[], results: readonly Result[]): Result[] {
  const finished = new Set(results.map(({ file }) => file))
  return files
    .map((file) => path.relative(ROOT, file))
    .filter((file) => !finished.has(file))
    .map((file) => {
      console.error(`${file} has no result: the process that ran it, or should have, has ended`)
      return { titles: ['the file runs to its end'], outcome: 'failed', file, durationMs: 0 }
    })
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
  { quiet = false, onDuration }: RunOptions,
): Promise<Result[]> {
  if (files.length === 0) return []
  const results: Result[] = []
  const titles: string[] = []
  let isInShared = false
  const stream = run({
    files: [...files],
    concurrency,
    // Of a process; a shared one takes as long as its files.
    timeout: RUN_TIMEOUT_MS,
    execArgv: [
      ...['--import', path.join(import.meta.dirname, 'exit-after-tests.ts')],
      `--test-timeout=${isFullProof() ? RUN_TIMEOUT_MS : TEST_TIMEOUT_MS}`,
    ],
  })
  const note = (outcome: Outcome) => (event: TestEvent) => {
    const { name, nesting, details, file: definedIn = '' } = event
    // In a shared process, a test around the tests of a file.
    const isFile = definedIn === SHARED_PROCESS
    if (isFile) onDuration?.(path.join(ROOT, name), details.duration_ms)
    if ((isFile || details.type === 'suite') && !(outcome === 'failed' && failedItself(event))) return
    const above = titles.slice(0, nesting)
    results.push({
      titles: [...(isInShared ? above.slice(1) : above), name],
      outcome: event.skip !== undefined || event.todo !== undefined ? 'skipped' : outcome,
      file: isFile ? name : path.relative(ROOT, definedIn),
      durationMs: details.duration_ms,
    })
  }
  // Starts and ends are reported in the order of the source, so the titles above a test are those that started last.
  stream.on('test:start', ({ name, nesting, file }) => {
    titles.splice(nesting, titles.length, name)
    if (nesting === 0) isInShared = file === SHARED_PROCESS
  })
  stream.on('test:pass', note('passed'))
  stream.on('test:fail', note('failed'))
  stream.on('test:summary', ({ file, duration_ms }) => {
    if (file !== undefined && file !== SHARED_PROCESS) onDuration?.(file, duration_ms)
  })
  // The report goes by the order of files; whoever waits is told at once what has failed.
  stream.on('test:complete', (event) => {
    if (quiet || event.details.passed !== false || !failedItself(event)) return
    process.stderr.write(`✖ ${path.relative(ROOT, event.file ?? '')}: ${event.name}\n`)
  })
  const report = quiet ? stream : stream.compose(spec)
  for await (const text of report) if (!quiet) process.stdout.write(String(text))
  return results
}

type RunOptions = Pick<Options, 'quiet' | 'onDuration'>

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

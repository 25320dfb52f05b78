import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { affectedSince, gateOf, recordNight } from '../harness/affected.ts'
import { commitHere, commitNamed, isCommitted } from '../harness/commit.ts'
import { cpuSeconds } from '../harness/cpu-seconds.ts'
import { mergeDurations } from '../harness/durations.ts'
import { ROOT } from '../harness/root.ts'
import { findTests, isGreen, runTests, tally } from '../harness/run-tests.ts'
import { scriptArguments } from '../harness/script-arguments.ts'

/**
 * `npm test [-- <path>…]`: the tests of the gate, or those of some files and folders. With `--affected`, those that the changes reach
 * that are not on the main branch yet. `npm run night` runs all of them, and with `--isolated` each file in a process of its own.
 * What came of each test is kept for `npm run conformance`. How long each file took is kept for the order of later runs, and
 * that all were green for the choice of later gates: both are committed.
 */
const { values, positionals: paths } = scriptArguments(
  'Usage: npm test [-- <path>…] [--affected | --night [--isolated]]: the tests of the gate, those of some files and folders, those that your changes reach, or all.',
  {
    affected: { type: 'boolean', default: false },
    night: { type: 'boolean', default: false },
    isolated: { type: 'boolean', default: false },
  },
  { allowPositionals: true },
)
const all = findTests()
const files = chosen()
const { isolated } = values
// Of what is checked out when the run begins.
const commit = isCommitted() ? commitHere() : undefined
const startedMs = performance.now()
const durationsMs = new Map<string, number>()
const results = await runTests({ files, isolated, onDuration: (file, ms) => durationsMs.set(file, ms) })
const seconds = Math.round((performance.now() - startedMs) / 1_000)
const isWhole = files.length === all.length && !isolated
const ok = isGreen(results)

if (ok && !isolated) mergeDurations(durationsMs)
if (ok && isWhole && commit !== undefined) {
  const passed = results.filter(({ outcome }) => outcome === 'passed').length
  const recorded_at = new Date().toISOString()
  recordNight({ commit, recorded_at, passed, files: files.length, seconds, cpu_seconds: cpuSeconds() })
  console.log(`\ntest/night.json says that ${commit.slice(0, 8)} is green: commit it`)
}
mkdirSync(path.join(ROOT, '.farebox'), { recursive: true })
writeFileSync(path.join(ROOT, '.farebox/test-results.json'), JSON.stringify(results))
console.log(`\n${files.length} files, ${seconds} s, ${cpuSeconds()} CPU seconds\n${tally(results)}`)
process.exitCode = ok ? 0 : 1

function chosen(): readonly string[] {
  if (values.night) return all
  if (values.affected) {
    const base = commitNamed('origin/main') ?? 'HEAD'
    const reached = affectedSince(base, all, all)
    console.log(`${reached.length} of ${all.length} test files are reached by what changed since ${base}`)
    return reached
  }
  if (paths.length > 0) return findTests(paths)
  const gate = gateOf(all)
  console.log(gate.why)
  return gate.files
}

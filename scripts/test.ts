import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { affectedSince, gateOf } from '../harness/affected.ts'
import { commitNamed } from '../harness/commit.ts'
import { cpuSeconds } from '../harness/cpu-seconds.ts'
import { mergeDurations } from '../harness/durations.ts'
import { ROOT } from '../harness/root.ts'
import { findTests, isGreen, runTests, tally } from '../harness/run-tests.ts'
import { scriptArguments } from '../harness/script-arguments.ts'

/**
 * `npm test [-- <path>…]`: the tests of the gate, or those of some files and folders. With `--affected`, those that the changes reach
 * that are not on the main branch yet. What came of each is kept for `npm run conformance`; how long each file took is kept for the
 * order of later runs, and committed.
 */
const { values, positionals: paths } = scriptArguments(
  'Usage: npm test [-- <path>…] [--affected]: the tests of the gate, those of some files and folders, or those that your changes reach.',
  { affected: { type: 'boolean', default: false } },
  { allowPositionals: true },
)
const durationsMs = new Map<string, number>()
const results = await runTests({ files: chosen(), onDuration: (file, ms) => durationsMs.set(file, ms) })
const ok = isGreen(results)
if (ok) mergeDurations(durationsMs)

mkdirSync(path.join(ROOT, '.farebox'), { recursive: true })
writeFileSync(path.join(ROOT, '.farebox/test-results.json'), JSON.stringify(results))
console.log(`\n${cpuSeconds()} CPU seconds\n${tally(results)}`)
process.exitCode = ok ? 0 : 1

function chosen(): readonly string[] {
  const all = findTests()
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

import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { recordDurations } from '../harness/durations.ts'
import { ROOT } from '../harness/root.ts'
import { findTests, isGreen, runTests, tally } from '../harness/run-tests.ts'
import { scriptArguments } from '../harness/script-arguments.ts'

/**
 * `npm test [-- <path>…]`: all tests or some. What came of each is kept for `npm run conformance`. With
 * `--record-durations` how long each file took is kept too, for the order of later runs; it is committed.
 */
const { values, positionals: paths } = scriptArguments(
  'Usage: npm test [-- <path>…] [--record-durations]: all tests, or those of some files and folders.',
  { 'record-durations': { type: 'boolean', default: false } },
  { allowPositionals: true },
)
const durationsMs = new Map<string, number>()
const results = await runTests({
  files: findTests(paths.length > 0 ? paths : undefined),
  onDuration: (file, durationMs) => durationsMs.set(file, durationMs),
})
if (values['record-durations']) recordDurations(durationsMs)

mkdirSync(path.join(ROOT, '.farebox'), { recursive: true })
writeFileSync(path.join(ROOT, '.farebox/test-results.json'), JSON.stringify(results))
console.log(`\n${tally(results)}`)
process.exitCode = isGreen(results) ? 0 : 1

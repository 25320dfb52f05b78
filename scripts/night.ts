import { recordNight } from '../harness/affected.ts'
import { commitHere, isCommitted } from '../harness/commit.ts'
import { cpuSeconds } from '../harness/cpu-seconds.ts'
import { mergeDurations } from '../harness/durations.ts'
import { findTests, isGreen, runTests, tally } from '../harness/run-tests.ts'
import { scriptArguments } from '../harness/script-arguments.ts'

/**
 * `npm run night [-- --isolated]`: every test there is. A green one of a commit is recorded in test/night.json: the gate leaves out
 * tests of the night that nothing has reached since. With `--isolated`, once a week, each file has a process of its own: what passes
 * alone and fails in company, or the other way round, is a bug.
 */
const { values } = scriptArguments(
  'Usage: npm run night [-- --isolated]: every test there is, and a record of it where all pass; or each file in a process of its own.',
  { isolated: { type: 'boolean', default: false } },
)
const commit = isCommitted() ? commitHere() : undefined
const files = findTests()
const startedMs = performance.now()
const durationsMs = new Map<string, number>()
const { isolated } = values
const results = await runTests({ files, isolated, onDuration: (file, ms) => durationsMs.set(file, ms) })
const seconds = Math.round((performance.now() - startedMs) / 1_000)
const ok = isGreen(results)
if (ok && !isolated) mergeDurations(durationsMs)

console.log(`\n${seconds} s, ${cpuSeconds()} CPU seconds`)
if (!ok || isolated || commit === undefined) console.log('not recorded: it has to be green, in lanes, and of a commit')
else {
  const passed = results.filter(({ outcome }) => outcome === 'passed').length
  const recorded_at = new Date().toISOString()
  recordNight({ commit, recorded_at, passed, files: files.length, seconds, cpu_seconds: cpuSeconds() })
  console.log(`recorded in test/night.json for ${commit}: commit it`)
}
console.log(tally(results))
process.exitCode = ok ? 0 : 1

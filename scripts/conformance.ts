import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { judge, parseIds } from '../harness/conformance.ts'
import { ROOT } from '../harness/root.ts'
import { findTests, type Result, runTests } from '../harness/run-tests.ts'
import { scriptArguments } from '../harness/script-arguments.ts'

/**
 * `npm run conformance [-- --json] [--results <file>]`: which statements of conformance.md a passing test proves. Fails
 * on a failing id, on an id that no statement has, and on one that passed before and is proven no longer.
 */
const { values: flags } = scriptArguments(
  'Usage: npm run conformance [-- --json] [--results <file>]: which statements of conformance.md a passing test proves.',
  { json: { type: 'boolean' }, results: { type: 'string' } },
)
const LIST = path.join(ROOT, 'test/conformance/conformance.md')
const RECORD = path.join(ROOT, 'test/conformance/passing.json')
const SHARED = path.join(ROOT, '../shared/conformance.md')

const list = readFileSync(LIST, 'utf8')
const ids = parseIds(list)
const passedBefore = existsSync(RECORD) ? (JSON.parse(readFileSync(RECORD, 'utf8')) as string[]) : []
const verdict = judge({ ids, passedBefore, results: await resultsOfTests() })

// Whoever proves an id commits the record with the test; a clean clone that would have to write it is not up to date.
const unrecorded = verdict.passing.filter((id) => !passedBefore.includes(id))
const ok = verdict.ok && (unrecorded.length === 0 || process.env.CI === undefined)
if (unrecorded.length > 0 && process.env.CI === undefined) {
  const known = ids.filter((id) => verdict.passing.includes(id) || passedBefore.includes(id))
  writeFileSync(RECORD, `${JSON.stringify(known, undefined, 2)}\n`)
}

report()
if (flags.json) console.log(JSON.stringify({ ok, ids: verdict.ids, lost: verdict.lost, unknown: verdict.unknown }))
process.exitCode = ok ? 0 : 1

async function resultsOfTests(): Promise<Result[]> {
  if (flags.results !== undefined)
    return JSON.parse(readFileSync(path.resolve(ROOT, flags.results), 'utf8')) as Result[]
  const group = new RegExp(`\\b(${[...new Set(ids.map((id) => id.replace(/-\d+$/, '')))].join('|')})-\\d`)
  const files = findTests().filter((file) => group.test(readFileSync(file, 'utf8')))
  return files.length === 0 ? [] : runTests({ files, quiet: true })
}

function report(): void {
  const line = (title: string, which: readonly string[]) =>
    console.log(`${title.padEnd(16)} ${String(which.length).padStart(3)}  ${which.join(' ')}`)
  if (existsSync(SHARED) && readFileSync(SHARED, 'utf8') !== list) {
    console.log('test/conformance/conformance.md differs from ../shared/conformance.md: copy it, and see what changed.')
  }
  line('passing', verdict.passing)
  line('failing', verdict.failing)
  line('lost', verdict.lost)
  line('unknown', verdict.unknown)
  line('without a test', verdict.without)
  line('of them in part', verdict.inPart)
  if (unrecorded.length > 0) {
    const what =
      process.env.CI === undefined ? 'recorded now; commit it' : 'not recorded: run npm run conformance and commit'
    console.log(`passing for the first time, ${what}: ${unrecorded.join(' ')} (test/conformance/passing.json)`)
  }
}

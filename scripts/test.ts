import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from '../harness/root.ts'
import { findTests, isGreen, runTests, tally } from '../harness/run-tests.ts'

/** `npm test [-- <path>…]`: all tests or some. What came of each is kept for `npm run conformance`. */
const paths = process.argv.slice(2)
const results = await runTests({ files: findTests(paths.length > 0 ? paths : undefined) })

mkdirSync(path.join(ROOT, '.farebox'), { recursive: true })
writeFileSync(path.join(ROOT, '.farebox/test-results.json'), JSON.stringify(results))
console.log(`\n${tally(results)}`)
process.exitCode = isGreen(results) ? 0 : 1

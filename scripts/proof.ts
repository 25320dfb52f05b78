import { readFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from '../harness/root.ts'
import { findTests, isGreen, runTests, tally } from '../harness/run-tests.ts'

/** `npm run proof [-- <path>…]`: every test that records a proof, at full counts, one file at a time. */
process.env.HARNESS_PROOF = 'full'
const paths = process.argv.slice(2)
const files = findTests(paths.length > 0 ? paths : undefined).filter((file) =>
  /harness\/(proof|figures)\.ts'/.test(readFileSync(file, 'utf8')),
)
console.log(`Proving, at full counts:\n${files.map((file) => `  ${path.relative(ROOT, file)}`).join('\n')}\n`)
const results = await runTests({ files, oneByOne: true })

console.log(`\n${tally(results)}; figures are in docs/proof/`)
process.exitCode = isGreen(results) ? 0 : 1

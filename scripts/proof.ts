import { readFileSync } from 'node:fs'
import path from 'node:path'
import { statusOfProofs, tellStatus } from '../harness/proof-status.ts'
import { ROOT } from '../harness/root.ts'
import { findTests, isGreen, runTests, tally } from '../harness/run-tests.ts'
import { scriptArguments } from '../harness/script-arguments.ts'

/**
 * `npm run proof [-- <path>…]`: every test that records a proof, at full counts, one file at a time. With `--status` nothing is
 * run: it lists which of the recorded proofs are stale, since the sources that they exercised have changed.
 */
const { values, positionals: paths } = scriptArguments(
  'Usage: npm run proof [-- <path>…] [--status]: tests that record a proof, at full counts; or which recorded proofs are stale.',
  { status: { type: 'boolean', default: false } },
  { allowPositionals: true },
)
if (values.status) for (const line of tellStatus(statusOfProofs())) console.log(line)
else await prove()

async function prove(): Promise<void> {
  process.env.HARNESS_PROOF = 'full'
  const files = findTests(paths.length > 0 ? paths : undefined).filter((file) =>
    /(harness|\.)\/(proof|figures)\.ts'/.test(readFileSync(file, 'utf8')),
  )
  console.log(`Proving, at full counts:\n${files.map((file) => `  ${path.relative(ROOT, file)}`).join('\n')}\n`)
  const results = await runTests({ files })
  console.log(`\n${tally(results)}; figures are in docs/proof/`)
  process.exitCode = isGreen(results) ? 0 : 1
}

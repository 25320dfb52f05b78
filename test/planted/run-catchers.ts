import { appendFileSync } from 'node:fs'
import path from 'node:path'
import { run } from 'node:test'
import { ROOT } from '../../harness/root.ts'
import { joinTestPostgres } from '../../harness/test-postgres.ts'
import type { Catcher } from './planted-bug.ts'
import report from './report.ts'

/**
 * A program that a copy of the project runs: its own tests, on databases whose tables and functions come from its own
 * migrations. `node run-catchers.ts <report> <catcher as JSON>…`
 */
const [destination = '', ...catchers] = process.argv.slice(2)
/** Longer than any wait for a condition, so that a test can say what it misses. */
const TEST_TIMEOUT_MS = 120_000

function literally(title: string): string {
  return title.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')
}

const postgres = await joinTestPostgres()
try {
  for (const [place, text] of catchers.entries()) {
    const { file, title }: Catcher = JSON.parse(text)
    const events = run({
      files: [path.join(ROOT, file)],
      concurrency: 1,
      timeout: TEST_TIMEOUT_MS,
      forceExit: true,
      ...(title === undefined ? {} : { testNamePatterns: [literally(title)] }),
    })
    for await (const reported of report(events))
      appendFileSync(destination, `${JSON.stringify({ place, ...reported })}\n`)
  }
} finally {
  await postgres.remove()
}

import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from '../harness/root.ts'
import { scriptArguments } from '../harness/script-arguments.ts'
import { errorGuide } from '../server/src/http/error-guide.ts'

/** `node scripts/errors.ts [--check]`: writes docs/errors.md from the table of faults, or says whether it is what it would write. */
const { values } = scriptArguments(
  'Usage: node scripts/errors.ts [--check]: writes docs/errors.md from the table of faults, or says whether it is what it would write.',
  { check: { type: 'boolean', default: false } },
)
const file = path.join(ROOT, 'docs/errors.md')
const text = errorGuide()
if (!values.check) writeFileSync(file, text)
else if (readFileSync(file, 'utf8') !== text) {
  console.error('docs/errors.md is not what the table of faults says: run node scripts/errors.ts')
  process.exitCode = 1
}

import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from '../harness/root.ts'
import { scriptArguments } from '../harness/script-arguments.ts'
import { catalogue } from '../server/src/catalogue/catalogue.ts'
import { catalogueDocument } from '../server/src/catalogue/document.ts'

/** `node scripts/catalogue.ts [--check]`: writes docs/catalogue.md from the catalogue, or says whether it is what it would write. */
const { values } = scriptArguments(
  'Usage: node scripts/catalogue.ts [--check]: writes docs/catalogue.md from the catalogue, or says whether it is what it would write.',
  { check: { type: 'boolean', default: false } },
)
const file = path.join(ROOT, 'docs/catalogue.md')
const text = catalogueDocument(catalogue.operations)
if (!values.check) writeFileSync(file, text)
else if (readFileSync(file, 'utf8') !== text) {
  console.error('docs/catalogue.md is not what the catalogue says: run node scripts/catalogue.ts')
  process.exitCode = 1
}

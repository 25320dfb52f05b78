import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from '../harness/root.ts'
import { scriptArguments } from '../harness/script-arguments.ts'
import { membersDocument } from '../server/src/protocols/members-document.ts'

/** `node scripts/members.ts [--check]`: writes docs/members.md from the tables of members, or says whether it is what it would write. */
const { values } = scriptArguments(
  'Usage: node scripts/members.ts [--check]: writes docs/members.md from the tables of members, or says whether it is what it would write.',
  { check: { type: 'boolean', default: false } },
)
const file = path.join(ROOT, 'docs/members.md')
const text = membersDocument()
if (!values.check) writeFileSync(file, text)
else if (readFileSync(file, 'utf8') !== text) {
  console.error('docs/members.md is not what the tables say: run node scripts/members.ts')
  process.exitCode = 1
}

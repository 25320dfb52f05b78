import { areClientTypesCurrent, writeClientTypes } from '../harness/client-types.ts'
import { scriptArguments } from '../harness/script-arguments.ts'

/** `node scripts/client-types.ts [--check]`: writes the client's types from the recorded contracts, or says whether they are what it would write. */
const { values } = scriptArguments(
  'Usage: node scripts/client-types.ts [--check]: writes the types of the client from the recorded contracts, or says whether they are current.',
  { check: { type: 'boolean', default: false } },
)
if (!values.check) writeClientTypes()
else if (!areClientTypesCurrent()) {
  console.error('The types of the client are not what the recorded contracts say: run node scripts/client-types.ts')
  process.exitCode = 1
}

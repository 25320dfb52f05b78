import { contractHere, readRecordedContract, writeRecordedContract } from '../harness/recorded-contract.ts'
import { scriptArguments } from '../harness/script-arguments.ts'
import { refusalToFollow } from '../server/src/contracts/diff.ts'

/**
 * `node scripts/contract.ts [--check]`: writes docs/releases/contracts/gateway.json, the contract as it was released last, or says whether
 * what the sources serve may follow it. A release writes it by itself.
 */
const { values } = scriptArguments(
  'Usage: node scripts/contract.ts [--check]: records the contract that the sources serve, or says whether it may follow the recorded one.',
  { check: { type: 'boolean', default: false } },
)
if (!values.check) writeRecordedContract()
else {
  const refusal = refusalToFollow(readRecordedContract(), JSON.parse(contractHere().bytes.toString('utf8')))
  if (refusal !== undefined) {
    console.error(
      `${refusal}\nDecide: keep what callers have, or raise INTERFACE_VERSION in server/src/contracts/version.ts.`,
    )
    process.exitCode = 1
  }
}

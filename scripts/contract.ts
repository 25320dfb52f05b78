import {
  CONTRACTS,
  currentContract,
  readRecordedContract,
  writeRecordedContract,
} from '../harness/recorded-contract.ts'
import { scriptArguments } from '../harness/script-arguments.ts'
import { refusalToFollow } from '../server/src/contracts/diff.ts'

/**
 * `node scripts/contract.ts [--check]`: writes docs/releases/contracts/, the contracts of callers and of members as they were released last, or
 * says whether what the sources serve may follow them. A release writes them by itself.
 */
const { values } = scriptArguments(
  'Usage: node scripts/contract.ts [--check]: records the contract that the sources serve, or says whether it may follow the recorded one.',
  { check: { type: 'boolean', default: false } },
)
if (!values.check) writeRecordedContract()
else
  for (const name of CONTRACTS) {
    const refusal = refusalToFollow(
      readRecordedContract(name),
      JSON.parse(currentContract(name).bytes.toString('utf8')),
    )
    if (refusal === undefined) continue
    const version =
      name === 'gateway'
        ? 'INTERFACE_VERSION in server/src/contracts/version.ts'
        : 'ACCOUNT_VERSION in server/src/account/document.ts'
    console.error(`${name}: ${refusal}\nDecide: keep what callers have, or raise ${version}.`)
    process.exitCode = 1
  }

import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { accountContractInput } from '../server/src/account/document.ts'
import { catalogue } from '../server/src/catalogue/catalogue.ts'
import type { Operation } from '../server/src/catalogue/operation.ts'
import { loadConfig } from '../server/src/config.ts'
import { type Contract, createContract } from '../server/src/contracts/contract.ts'
import type { ContractInput } from '../server/src/contracts/document.ts'
import { draftOf } from '../server/src/contracts/make-draft.ts'
import { contractInputOf } from '../server/src/http/routes/contract-input.ts'
import { ROOT } from './root.ts'

/** The contracts that callers and members were given with the last release, by which the next ones are judged. */
const FOLDER = path.join(ROOT, 'docs/releases/contracts')
export const CONTRACTS = ['gateway', 'account'] as const
export type ContractName = (typeof CONTRACTS)[number]

const fileOf = (name: ContractName) => path.join(FOLDER, `${name}.json`)

/** How a gateway with the default configuration spells the {names} in paths. */
export function defaultNames() {
  return loadConfig({ FAREBOX_DATABASE_URL: 'postgres://nobody@127.0.0.1/nothing' }).names
}

/** The contract that a gateway with the default configuration serves, and what else it sells where somebody says so. */
export function contractHere(more: readonly Operation[] = []): Contract {
  return ofDefaults(contractInputOf({ operations: [...catalogue.operations, ...more] }))
}

/** The document of the account API, as a site with the default configuration serves it. */
export function accountContractHere(): Contract {
  return ofDefaults(accountContractInput())
}

function ofDefaults(input: ContractInput): Contract {
  return createContract(draftOf(input), { names: defaultNames(), serverUrl: undefined })
}

export function currentContract(name: ContractName): Contract {
  return name === 'gateway' ? contractHere() : accountContractHere()
}

export function readRecordedContract(name: ContractName = 'gateway'): unknown {
  return JSON.parse(readFileSync(fileOf(name), 'utf8'))
}

/** On many lines, so that a review shows what changed. */
export function writeRecordedContract(): void {
  for (const name of CONTRACTS)
    writeFileSync(
      fileOf(name),
      `${JSON.stringify(JSON.parse(currentContract(name).bytes.toString('utf8')), null, 1)}\n`,
    )
}

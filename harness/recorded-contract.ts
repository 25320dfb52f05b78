import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { catalogue } from '../server/src/catalogue/catalogue.ts'
import type { Operation } from '../server/src/catalogue/operation.ts'
import { loadConfig } from '../server/src/config.ts'
import { type Contract, createContract } from '../server/src/contracts/contract.ts'
import { contractInputOf } from '../server/src/http/routes/contract-input.ts'
import { ROOT } from './root.ts'

/** The contract that callers were given with the last release, by which the next one is judged. */
const FILE = path.join(ROOT, 'docs/releases/contracts/gateway.json')

/** How a gateway with the default configuration spells the {names} in paths. */
export function defaultNames() {
  return loadConfig({ FAREBOX_DATABASE_URL: 'postgres://nobody@127.0.0.1/nothing' }).names
}

/** The contract that a gateway with the default configuration serves, and what else it sells where somebody says so. */
export function contractHere(more: readonly Operation[] = []): Contract {
  const names = defaultNames()
  const operations = [...catalogue.operations, ...more]
  return createContract(contractInputOf({ catalogue: { operations }, names, publicUrl: undefined }))
}

export function readRecordedContract(): unknown {
  return JSON.parse(readFileSync(FILE, 'utf8'))
}

/** On many lines, so that a review shows what changed. */
export function writeRecordedContract(): void {
  writeFileSync(FILE, `${JSON.stringify(JSON.parse(contractHere().bytes.toString('utf8')), null, 1)}\n`)
}

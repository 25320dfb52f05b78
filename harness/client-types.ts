import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { typesOfContract } from './contract-types.ts'
import { readRecordedContract } from './recorded-contract.ts'
import { ROOT } from './root.ts'

/** What the client knows of the gateway: written from the recorded contract, and formatted as everything else. */
const FILE = path.join(ROOT, 'client/src/contract.ts')

function clientTypes(): string {
  return execFileSync(path.join(ROOT, 'node_modules/.bin/biome'), ['format', `--stdin-file-path=${FILE}`], {
    cwd: ROOT,
    input: typesOfContract(readRecordedContract()),
    encoding: 'utf8',
  })
}

export function writeClientTypes(): void {
  writeFileSync(FILE, clientTypes())
}

export function areClientTypesCurrent(): boolean {
  return existsSync(FILE) && readFileSync(FILE, 'utf8') === clientTypes()
}

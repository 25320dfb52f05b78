import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { typesOfAccount, typesOfContract } from './contract-types.ts'
import { readRecordedContract } from './recorded-contract.ts'
import { ROOT } from './root.ts'

/** What the client knows of the gateway and of the account API: written from the recorded contracts, and formatted as everything else. */
const FILES = [
  { file: path.join(ROOT, 'client/src/contract.ts'), text: () => typesOfContract(readRecordedContract()) },
  {
    file: path.join(ROOT, 'client/src/account-contract.ts'),
    text: () => typesOfAccount(readRecordedContract('account')),
  },
] as const

function formatted({ file, text }: (typeof FILES)[number]): string {
  return execFileSync(path.join(ROOT, 'node_modules/.bin/biome'), ['format', `--stdin-file-path=${file}`], {
    cwd: ROOT,
    input: text(),
    encoding: 'utf8',
  })
}

export function writeClientTypes(): void {
  for (const one of FILES) writeFileSync(one.file, formatted(one))
}

export function areClientTypesCurrent(): boolean {
  return FILES.every((one) => existsSync(one.file) && readFileSync(one.file, 'utf8') === formatted(one))
}

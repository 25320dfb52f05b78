import { hash } from 'node:crypto'
import { canonicalBytes } from './canonical.ts'
import { type ContractInput, openapiOf } from './document.ts'
import { problemsIn } from './problems.ts'

/** A contract as it is served: bytes that never change, and what they are known by. */
export type Contract = {
  /** SHA-256 of the bytes, in hexadecimal. */
  readonly contentHash: string
  /** SHA-256 of what the bytes were made from: routes, schemas and words. Another program may make other bytes of the same. */
  readonly docsRevision: string
  readonly bytes: Buffer
}

/** Makes the bytes, and throws where they are no contract that anybody could rely on. */
export function createContract(input: ContractInput): Contract {
  const bytes = canonicalBytes(openapiOf(input))
  const [problem] = problemsIn(JSON.parse(bytes.toString('utf8')))
  if (problem !== undefined) throw new Error(`the contract is not sound: ${problem}`)
  return { contentHash: sha256(bytes), docsRevision: sha256(canonicalBytes(input)), bytes }
}

export function sha256(bytes: Buffer): string {
  return hash('sha256', bytes, 'hex')
}

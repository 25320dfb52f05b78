import { canonicalBytes, sha256 } from './canonical.ts'
import { type ContractInput, openapiOf } from './document.ts'
import type { ContractDraft } from './draft.ts'
import { problemsIn } from './problems.ts'

/** Makes the document, and throws where it is none that anybody could rely on. */
export function draftOf(input: ContractInput): ContractDraft {
  const text = canonicalBytes(openapiOf(input)).toString('utf8')
  const [problem] = problemsIn(JSON.parse(text))
  if (problem !== undefined) throw new Error(`the contract is not sound: ${problem}`)
  return { revision: sha256(canonicalBytes(input)), text }
}

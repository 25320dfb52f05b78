import { catalogue as ours } from '../../catalogue/catalogue.ts'
import type { Catalogue } from '../../catalogue/operation.ts'
import { builtDraft, type ContractDraft } from '../../contracts/draft.ts'
import { once } from '../../kernel/once.ts'

/** The contract of base_url before an installation spells it: as the build has left it, or made of the sources. */
export function gatewayDraft(catalogue: Pick<Catalogue, 'operations'>): Promise<ContractDraft> {
  return catalogue === ours ? draftOfOurs() : madeOf(catalogue)
}

async function draftOfOurs(): Promise<ContractDraft> {
  return builtDraft('gateway') ?? madeOfOurs()
}

const madeOfOurs = once(() => madeOf(ours))

/** What describes routes is loaded here alone: a built server need not have it. */
async function madeOf(catalogue: Pick<Catalogue, 'operations'>): Promise<ContractDraft> {
  const { contractInputOf } = await import('./contract-input.ts')
  const { draftOf } = await import('../../contracts/make-draft.ts')
  return draftOf(contractInputOf(catalogue))
}

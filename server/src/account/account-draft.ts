import { builtDraft, type ContractDraft } from '../contracts/draft.ts'
import { once } from '../kernel/once.ts'

/** The document of the account API before an installation spells it: as the build has left it, or made of the sources. */
export async function accountDraft(): Promise<ContractDraft> {
  return builtDraft('account') ?? made()
}

const made = once(async () => {
  const { accountContractInput } = await import('./document.ts')
  const { draftOf } = await import('../contracts/make-draft.ts')
  return draftOf(accountContractInput())
})

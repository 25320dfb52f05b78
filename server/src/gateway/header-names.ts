/** Headers of ours that carry the provider's word, as the operator spells it. */
export type HeaderNames = {
  /** What the call was charged, in exact decimal USD. */
  readonly cost: string
  /** What is held for a call that goes on when it has been answered: the most that it can cost. */
  readonly held: string
  /** What a task was charged, where its end is told: the answer itself is free. */
  readonly taskCost: string
  /** What the account has left to spend after it. */
  readonly balance: string
  readonly priceVersion: string
  /** The output limit that a call got because it named none. */
  readonly outputCap: string
  /** The most that the caller wants to pay; in lower case, as it is read. */
  readonly maxCost: string
  readonly costMode: string
  readonly quoteId: string
  /** Says that a caller knows that it creates a task. */
  readonly async: string
}

export function createHeaderNames(provider: string): HeaderNames {
  return {
    cost: `X-${provider}-Cost-Usd`,
    held: `X-${provider}-Held-Usd`,
    taskCost: `X-${provider}-Task-Cost-Usd`,
    balance: `X-${provider}-Balance-Usd`,
    priceVersion: `X-${provider}-Price-Version`,
    outputCap: `X-${provider}-Output-Cap`,
    maxCost: `x-${provider.toLowerCase()}-max-cost-usd`,
    costMode: `x-${provider.toLowerCase()}-cost-mode`,
    quoteId: `x-${provider.toLowerCase()}-quote-id`,
    async: `x-${provider.toLowerCase()}-async`,
  }
}

/** Headers of the website that say which contract, and which input of it, an answer is about. */
export type ContractHeaderNames = { readonly contractHash: string; readonly docsRevision: string }

export function createContractHeaderNames(provider: string): ContractHeaderNames {
  return { contractHash: `X-${provider}-Contract-Hash`, docsRevision: `X-${provider}-Docs-Revision` }
}

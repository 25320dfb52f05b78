import { Fault, invalidRequest } from '../kernel/fault.ts'

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
  /** What is left of the key's budget, for who has asked for it. */
  readonly budget: string
  readonly priceVersion: string
  /** The output limit that a call got because it named none. */
  readonly outputCap: string
  /** The output limit that a call got because the one that it would have had did not fit. */
  readonly fittedLimit: string
  /** The model by the name that it has upstream. */
  readonly upstreamModel: string
  /** The most that the caller wants to pay; in lower case, as it is read. */
  readonly maxCost: string
  readonly costMode: string
  readonly quoteId: string
  /** What becomes of a stream whose caller has left. */
  readonly onDisconnect: string
  /** What becomes of a call whose output limit does not fit into what there is. */
  readonly fit: string
  /** What is held for a stream: the most that it can cost, or what it needs as it goes on; also told of one that grows. */
  readonly hold: string
  /** Behind the body of a stream that was cut: which limit there was no more of. */
  readonly endedBy: string
  /** What the caller wants to be told beside: `budget`. */
  readonly tell: string
  /** Says that a caller knows that it creates a task. */
  readonly async: string
  /** For whom a call is made; beats what its body says. */
  readonly endUser: string
  /** What a call is for, such as `team=search,run=42`. */
  readonly tags: string
}

export function createHeaderNames(provider: string): HeaderNames {
  return {
    cost: `X-${provider}-Cost-Usd`,
    held: `X-${provider}-Held-Usd`,
    taskCost: `X-${provider}-Task-Cost-Usd`,
    balance: `X-${provider}-Balance-Usd`,
    budget: `X-${provider}-Budget-Usd`,
    priceVersion: `X-${provider}-Price-Version`,
    outputCap: `X-${provider}-Output-Cap`,
    fittedLimit: `X-${provider}-Fitted-Limit`,
    upstreamModel: `X-${provider}-Upstream-Model`,
    maxCost: `x-${provider.toLowerCase()}-max-cost-usd`,
    costMode: `x-${provider.toLowerCase()}-cost-mode`,
    onDisconnect: `x-${provider.toLowerCase()}-on-disconnect`,
    fit: `x-${provider.toLowerCase()}-fit`,
    hold: `x-${provider.toLowerCase()}-hold`,
    endedBy: `X-${provider}-Ended-By`,
    quoteId: `x-${provider.toLowerCase()}-quote-id`,
    tell: `x-${provider.toLowerCase()}-tell`,
    async: `x-${provider.toLowerCase()}-async`,
    endUser: `x-${provider.toLowerCase()}-end-user`,
    tags: `x-${provider.toLowerCase()}-tags`,
  }
}

const OF_MONEY = ['-max-cost-usd', '-cost-mode', '-quote-id']
const NAME_TOLD = 80

/** The name of a cap, a quote or the wish for one that carries another word than this installation's. */
export function strangeOfMoney(headers: Readonly<Record<string, unknown>>, names: HeaderNames): string | undefined {
  const own = [names.maxCost, names.costMode, names.quoteId]
  const isOfMoney = (name: string) => name.startsWith('x-') && OF_MONEY.some((end) => name.endsWith(end))
  return Object.keys(headers).find((name) => isOfMoney(name) && !own.includes(name))
}

/** To ignore a cap would be to spend what somebody meant not to spend, and a quote that is not understood would be a call. */
export function requireOwnWord(strange: string | undefined, { maxCost, costMode, quoteId }: HeaderNames): void {
  if (strange === undefined) return
  const own = `${maxCost}, ${costMode} and ${quoteId}`
  throw invalidRequest(
    `Unknown header "${strange.slice(0, NAME_TOLD)}". This gateway uses ${own}. Nothing was executed or charged.`,
  )
}

/** For who asks for a quote where none is given. */
export function noQuotes({ costMode }: Pick<HeaderNames, 'costMode'>): Fault {
  const detail = `This endpoint gives no quotes. Send the request without the header ${costMode}.`
  return new Fault('quote_not_supported', { detail })
}

/** Headers of the website that say which contract, and which input of it, an answer is about. */
export type ContractHeaderNames = { readonly contractHash: string; readonly docsRevision: string }

export function createContractHeaderNames(provider: string): ContractHeaderNames {
  return { contractHash: `X-${provider}-Contract-Hash`, docsRevision: `X-${provider}-Docs-Revision` }
}

import { z } from 'zod'
import { Fault } from '../kernel/fault.ts'
import { type By, type Facts, isOperator } from '../storage/audit.ts'
import type { TermsChange } from './key-terms.ts'

/** Which terms of a key an operator has set: members can change the others. */

const NAMES = {
  requestsPerMinute: 'requests_per_minute',
  tokensPerMinute: 'tokens_per_minute',
  concurrency: 'concurrency',
  scopes: 'scopes',
  networks: 'allowed_addresses',
  tags: 'tags',
  budget: 'budget',
  expiresAt: 'expires_at',
} as const

/** By the names that callers know. */
export const OPERATOR_TERMS = Object.values(NAMES)
export type OperatorTerm = (typeof OPERATOR_TERMS)[number]

export const OPERATOR_TERMS_ROW = { operator_terms: z.array(z.enum(OPERATOR_TERMS)) } as const

/** What a change names, out of all that the key has after it. */
export function namedFacts({ rates, ...others }: TermsChange, after: Facts): Facts {
  const names = [...Object.keys(rates ?? {}), ...Object.keys(others)]
  return Object.fromEntries(names.map((name) => [name, after[name] ?? null]))
}

/**
 * Those that are an operator's after a change of what `after` names, by the names of the audit log. What an operator sets becomes theirs, and is nobody's
 * when they take it away. Throws where a member would change one.
 */
export function operatorTermsAfter(
  by: By,
  owned: readonly OperatorTerm[],
  { before, after }: { readonly before: Facts; readonly after: Facts },
): readonly OperatorTerm[] {
  const given = Object.entries(NAMES).filter(([fact]) => Object.hasOwn(after, fact))
  if (isOperator(by)) {
    const isGiven = (name: OperatorTerm) => given.some(([, one]) => one === name)
    const set = given.flatMap(([fact, name]) => ((after[fact] ?? null) === null ? [] : [name]))
    return [...owned.filter((name) => !isGiven(name)), ...set]
  }
  const refused = given.find(
    ([fact, name]) =>
      owned.includes(name) && JSON.stringify(before[fact] ?? null) !== JSON.stringify(after[fact] ?? null),
  )
  if (refused !== undefined)
    throw new Fault('forbidden', {
      detail: `The operator has set ${refused[1]} of this key: only they can change it.`,
      members: { param: refused[1] },
    })
  return owned
}

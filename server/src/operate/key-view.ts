import type pg from 'pg'
import { tagText } from '../budgets/tags.ts'
import { DEFAULT_HOLDING } from '../catalogue/holding.ts'
import { type KeyRates, limitsWithin, tierLimitAbove } from '../catalogue/key-rates.ts'
import { DEFAULT_ON_DISCONNECT } from '../catalogue/on-disconnect.ts'
import type { Tier, TierLimits } from '../catalogue/tiers.ts'
import type { ListedKey } from '../identity/listed-keys.ts'
import { systemClock } from '../kernel/clock.ts'
import { formatUsd, ZERO } from '../kernel/money.ts'
import { leftOf, readBudgets } from '../ledger/balance.ts'
import { type KeySpend, spendOfKeys } from '../ledger/key-spend.ts'
import { budgetLine } from './fields.ts'
import { KINDS, ownTerms, stateOf } from './key-terms.ts'

const NOTHING: KeySpend = { week: ZERO, month: ZERO, total: ZERO }

/** Keys as they are, with what they have spent, and what is left of their budgets: null where there is none. */
export async function readKeys<Key extends ListedKey>(pool: pg.Pool, keys: readonly Key[]) {
  const spent = await spendOfKeys(
    pool,
    keys.map(({ id }) => id),
  )
  const budgets = await readBudgets(
    pool,
    keys.flatMap(({ allowanceId }) => (allowanceId === null ? [] : [allowanceId])),
  )
  return keys.map((key) => {
    const state = key.allowanceId === null ? undefined : budgets.get(key.allowanceId)
    const left = key.allowanceId === null ? null : state === undefined ? ZERO : leftOf(state)
    return { ...key, spent: spent.get(key.id) ?? NOTHING, left }
  })
}

export type KeyView = Awaited<ReturnType<typeof readKeys>>[number]

/** What a key is, what it has spent, what is left of its budget, and what it has of its own. */
export function keyLine(key: KeyView): string {
  const { id, mode, name, budget, left, spent, terms } = key
  const spend = `${formatUsd(spent.month)} USD this month`
  const rest = budget === null || left === null ? [] : [`budget ${budgetLine(budget)}, ${formatUsd(left)} left`]
  return [id, mode, name, stateOf(key), spend, ...rest, ...ownTerms(terms)].join('  ')
}

/** All of a key, a line for each thing. */
export function keyLines(key: KeyView & { readonly tier: Tier; readonly limits: TierLimits }): readonly string[] {
  const { scopes, networks, onDisconnect, holding, tags } = key.terms
  const left = key.left === null ? '' : `; ${formatUsd(key.left)} USD of the budget left`
  return [
    `Key ${key.id}, ${key.mode}, ${key.name}`,
    `Account ${key.workspaceId}, tier ${key.tier}`,
    `State: ${stateOf(key)}${key.isTicket ? ' (ticket)' : ''}`,
    ...oldSecretLines(key),
    `Budget: ${key.budget === null ? 'none' : budgetLine(key.budget)}`,
    `Spent: ${formatUsd(key.spent.month)} USD this month, ${formatUsd(key.spent.total)} in total${left}`,
    ...limitLines(key.limits, key.terms.rates),
    `Scopes: ${scopes?.join(', ') ?? 'all'}`,
    `Addresses: ${networks?.texts.join(', ') ?? 'any'}`,
    `On disconnect: ${onDisconnect ?? `${DEFAULT_ON_DISCONNECT} (default)`}`,
    `Holding: ${holding ?? `${DEFAULT_HOLDING} (default)`}`,
    `Tags: ${tags?.map(tagText).join(', ') ?? 'none'}`,
    `Member: ${key.memberId ?? 'nobody'}`,
    ...(key.operatorTerms.length === 0
      ? []
      : [`Set by the operator, so that members can't change it: ${key.operatorTerms.join(', ')}`]),
  ]
}

/** What holds, and whose it is. */
function limitLines(tier: TierLimits, rates: KeyRates): readonly string[] {
  const limits = limitsWithin(tier, rates)
  return KINDS.map(([kind, words]) => {
    const above = tierLimitAbove(limits, kind)
    const own = rates[kind] === null ? '' : `; the key's own limit is ${rates[kind]}`
    return `${words[0]?.toUpperCase()}${words.slice(1)}: ${limits[kind]} ${above === undefined ? `(limit of the tier${own})` : `(limit of the key; the tier allows ${above})`}`
  })
}

/** A secret that was rotated away is worth a line while it works. */
function oldSecretLines({
  revokedAt,
  previousUntil,
}: Pick<ListedKey, 'revokedAt' | 'previousUntil'>): readonly string[] {
  if (revokedAt !== null || previousUntil === null || previousUntil.getTime() <= systemClock.nowMs()) return []
  return [`Old secret: works until ${previousUntil.toISOString()}`]
}

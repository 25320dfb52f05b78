import type { BudgetsOfCalls, Ceiling } from '../budgets/account-budgets.ts'
import type { Budget } from '../budgets/budgets.ts'
import type { Tag } from '../budgets/tags.ts'
import type { Holding } from '../catalogue/holding.ts'
import type { CallerLimits } from '../catalogue/key-rates.ts'
import type { OnDisconnect } from '../catalogue/on-disconnect.ts'
import type { Tier } from '../catalogue/tiers.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import type { Networks } from '../kernel/networks.ts'
import type { Rational } from '../kernel/rational.ts'
import type { TokenAccess } from './credential.ts'
import type { Scopes } from './scopes.ts'

/** Who is calling: an API key or an access token of a workspace, in one of its two modes. */
export type Caller = {
  readonly workspaceId: Id
  /** The account whose money is spent. */
  readonly accountId: Id
  /** The key's id or the grant's id: limits, links and idempotency hang on it alike. */
  readonly credentialId: Id
  readonly mode: Mode
  readonly tier: Tier
  readonly limits: CallerLimits
  /** What it may use; null for everything. */
  readonly scopes: Scopes | null
  /** From where it may be used; null for anywhere. */
  readonly networks: Networks | null
  /** What becomes of its streams when it leaves, unless a request says otherwise. */
  readonly onDisconnect: OnDisconnect
  /** What is held for its streams, where a request does not say. */
  readonly holding: Holding
  /** Tags that its calls have, whatever a request says. */
  readonly tags: readonly Tag[]
  /** The ceilings beside the balance that all its calls have: its own budget or mandate first, then of its member and its workspace. */
  readonly ceilings: readonly Ceiling[]
  /** The allowances of those, in their order. */
  readonly allowances: readonly Id[]
  /** Those that hang on tags and end users of a call; null where there are none. */
  readonly budgetsOfCalls: BudgetsOfCalls | null
  /** What its own budget or mandate allows, as it was when the caller was found; null where it has none. */
  readonly budget: Budget | null
  /** When the key or the grant ends, by PostgreSQL's time; null for never. */
  readonly expiresAtMs: number | null
  /** Whether it is a ticket: whoever holds it is told of nothing but its own amount. */
  readonly isTicket: boolean
  /** What the access token may do; null for a key, which is asked neither for an audience nor for scopes of OAuth. */
  readonly token: TokenAccess | null
  /** What its customer plan pays for operations that are scaled by it, as a multiple of the published price. */
  readonly priceMultiplier: Rational
}

/** The allowance of its own budget or mandate, which stands before the others. */
export function ownAllowanceOf({ budget, allowances: [first] }: Pick<Caller, 'budget' | 'allowances'>): Id | undefined {
  return budget === null ? undefined : first
}

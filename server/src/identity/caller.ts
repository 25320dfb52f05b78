import type { CallerLimits } from '../catalogue/key-rates.ts'
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
  /** The ceilings beside the balance: a key's budget, a grant's mandate. */
  readonly allowances: readonly Id[]
  /** What the access token may do; null for a key, which is asked neither for an audience nor for scopes of OAuth. */
  readonly token: TokenAccess | null
  /** What its customer plan pays for operations that are scaled by it, as a multiple of the published price. */
  readonly priceMultiplier: Rational
}

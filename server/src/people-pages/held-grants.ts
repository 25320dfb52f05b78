import type pg from 'pg'
import { type ListedGrant, listGrantsOfClient } from '../grants/grants.ts'
import { audienceOf } from '../identity/resources.ts'
import type { Id } from '../kernel/ids.ts'
import type { Nanos } from '../kernel/money.ts'
import { readBudget } from '../ledger/balance.ts'
import type { Membership } from '../people/members.ts'
import { budgetOf } from './budget-of.ts'
import { canMakeKeys } from './consent.ts'

/** What a client may do for a person already, as the person is told of it before they allow it more. */
export type HeldGrant = {
  readonly workspace: string
  readonly mode: 'live' | 'test'
  /** Null for one that has no amount of its own; of one that is paused, what it has when it goes on. */
  readonly left: Nanos | null
  readonly isPaused: boolean
  readonly canMakeKeys: boolean
  readonly createdAt: Date
  /** Where it counts. */
  readonly audiences: readonly string[]
  /** Whether it counts where the client asks to act now: only then can the new one take its place. */
  readonly isReplaceable: boolean
}

/** Null for one that is active. */
export function endOf({ isActive, revokedAt, expiresAt, createdAt }: ListedGrant): Date | null {
  return isActive ? null : (revokedAt ?? expiresAt ?? createdAt)
}

/** More are not shown, and end with the others where the person replaces them. */
export const HELD_SHOWN = 20

type Held = {
  readonly personId: Id
  readonly clientId: string
  readonly workspaces: readonly Membership[]
  readonly asked: readonly string[]
}

export async function readHeldGrants(
  pool: pg.Pool,
  { personId, clientId, workspaces, asked }: Held,
): Promise<readonly HeldGrant[]> {
  const wanted = new Set(asked.map(audienceOf))
  const grants = await listGrantsOfClient(pool, { personId, clientId, most: HELD_SHOWN })
  return Promise.all(
    grants.map(async (grant) => {
      const { workspaceId, mode, allowanceId, createdAt, isPaused, audiences, oauthScopes: scopes } = grant
      const workspace = workspaces.find(({ id }) => id === workspaceId)?.name ?? 'Another workspace'
      const state = allowanceId === null ? undefined : await readBudget(pool, allowanceId)
      const left = budgetOf(grant, state)?.left ?? null
      const isReplaceable = audiences.some((audience) => wanted.has(audience))
      return {
        workspace,
        mode,
        createdAt,
        isPaused,
        left,
        audiences,
        isReplaceable,
        canMakeKeys: canMakeKeys({ scopes }),
      }
    }),
  )
}

import type pg from 'pg'
import { listGrantsOfClient } from '../identity/grants.ts'
import type { Membership } from '../identity/people/members.ts'
import type { Id } from '../kernel/ids.ts'
import { type Nanos, nanos, ZERO } from '../kernel/money.ts'
import { readBudget } from '../ledger/balance.ts'

/** What a client may do for a person already, as the person is told of it before they allow it more. */
export type HeldGrant = {
  readonly workspace: string
  readonly mode: 'live' | 'test'
  /** Null for one that can't pay. */
  readonly left: Nanos | null
  readonly createdAt: Date
}

/** More are not shown, and end with the others where the person replaces them. */
export const HELD_SHOWN = 20

type Held = { readonly personId: Id; readonly clientId: string; readonly workspaces: readonly Membership[] }

export async function readHeldGrants(
  pool: pg.Pool,
  { personId, clientId, workspaces }: Held,
): Promise<readonly HeldGrant[]> {
  const grants = await listGrantsOfClient(pool, { personId, clientId, most: HELD_SHOWN })
  return Promise.all(
    grants.map(async ({ workspaceId, mode, allowanceId, createdAt }) => {
      const workspace = workspaces.find(({ id }) => id === workspaceId)?.name ?? 'Another workspace'
      return { workspace, mode, createdAt, left: await leftOf(pool, allowanceId) }
    }),
  )
}

async function leftOf(pool: pg.Pool, allowanceId: Id | null): Promise<Nanos | null> {
  const state = allowanceId === null ? undefined : await readBudget(pool, allowanceId)
  if (state === undefined) return null
  const left = state.amount - state.spent
  return left > 0n ? nanos(left) : ZERO
}

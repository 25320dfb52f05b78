import { z } from 'zod'
import { formatUsd, type Nanos, nanos } from '../kernel/money.ts'
import type { Facts } from '../storage/audit.ts'

/** For which calls of a grant its person is asked, one by one. */
export type Asks = {
  /** The most that a call may cost without being asked for; null where only the amount limits it. */
  readonly callLimit: Nanos | null
  /** Whether each call of a kind that is marked as costly is asked for. */
  readonly asksHighCost: boolean
}

export const ASKS_NOTHING: Asks = { callLimit: null, asksHighCost: false }

/** Of a grant that a statement calls k. */
export const ASKS_SELECT = 'k.call_limit, k.asks_high_cost, k.paused_at is not null as is_paused'

const row = z.object({ call_limit: z.bigint().nullable(), asks_high_cost: z.boolean(), is_paused: z.boolean() })

export const ASKS_ROW = row.shape

export function asksIn({ call_limit, asks_high_cost }: z.output<typeof row>): Asks {
  return { callLimit: call_limit === null ? null : nanos(call_limit), asksHighCost: asks_high_cost }
}

/** For the audit log. */
export function asksFacts({ callLimit, asksHighCost }: Asks): Facts {
  return { callLimitUsd: callLimit === null ? null : formatUsd(callLimit), asksHighCost }
}

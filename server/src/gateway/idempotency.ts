import type pg from 'pg'
import { z } from 'zod'
import type { Claim } from '../calls/call.ts'
import type { Operation } from '../catalogue/operation.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, nanos, ZERO } from '../kernel/money.ts'
import { findEnded, findOpen } from '../ledger/requests.ts'

export const IDEMPOTENCY = 'idempotency'
const KEPT_SECONDS = 24 * 3_600
const KEY = /^[!-~]{1,255}$/
const RUNNING_SECONDS = 1

/** The claim by which a key of the caller's own makes a call happen once. It belongs to the credential and the operation. */
export function idempotencyClaim(key: string | undefined, operation: Operation, digest: string): readonly Claim[] {
  if (key === undefined) return []
  if (!KEY.test(key))
    throw new Fault('invalid_request', { detail: 'An Idempotency-Key has 1 to 255 visible characters of ASCII.' })
  return [
    {
      scope: IDEMPOTENCY,
      key: `${operation.id} ${key}`,
      limit: 1,
      fingerprint: digest,
      keepSeconds: KEPT_SECONDS,
      endsWithOwner: false,
    },
  ]
}

const kept = z.object({ status: z.int() })

/** What became of the call that has the key already, for whoever sent it again. */
export async function firstCall(pool: pg.Pool, credentialId: Id, id: Id): Promise<Fault> {
  const [open, ended] = await Promise.all([findOpen(pool, credentialId, id), findEnded(pool, credentialId, id)]).catch(
    (cause: unknown) => {
      throw new Fault('billing_dependency_timeout', { cause, retryAfterSeconds: RUNNING_SECONDS })
    },
  )
  const members = { first_request_id: id }
  if (open !== undefined && open.unsettled_at !== null) return new Fault('outcome_unknown', { members })
  const cost = nanos((ended?.amount ?? ZERO) - (ended?.given_back ?? ZERO))
  // One that has just ended uncharged frees its key: the next try begins a call.
  if (ended === undefined || cost === ZERO)
    return new Fault('idempotency_running', { members, retryAfterSeconds: RUNNING_SECONDS })
  const status = kept.safeParse(ended.detail).data?.status ?? null
  return new Fault('idempotency_completed', { members: { ...members, status, cost_usd: formatUsd(cost) } })
}

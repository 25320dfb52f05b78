import { z } from 'zod'
import type { Claim } from '../calls/call.ts'
import type { Operation } from '../catalogue/operation.ts'
import type { Clock } from '../kernel/clock.ts'
import { Fault, invalidRequest, unavailable } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, nanos, ZERO } from '../kernel/money.ts'
import type { OpenRequest } from '../ledger/open-requests.ts'
import type { EndedRequest } from '../ledger/requests.ts'

export const IDEMPOTENCY = 'idempotency'
const KEPT_SECONDS = 24 * 3_600
const KEY = /^[!-~]{1,255}$/
/** After which a call may have ended; a task takes a while, and is polled as often. */
const RUNNING_SECONDS = 1
const TASK_SECONDS = 5

/** What the claim of a key is known by: keys belong to the operation. */
export function claimKeyOf(operationId: string, key: string): string {
  return `${operationId} ${key}`
}

export function isKey(text: string | undefined): text is string {
  return text !== undefined && KEY.test(text)
}

/** The claim by which a key of the caller's own makes a call happen once. It belongs to the credential and the operation. */
export function idempotencyClaim(key: string | undefined, operation: Operation, digest: string): readonly Claim[] {
  if (key === undefined) return []
  if (!isKey(key)) throw invalidRequest('The Idempotency-Key must have 1 to 255 visible ASCII characters.')
  return [
    {
      scope: IDEMPOTENCY,
      key: claimKeyOf(operation.id, key),
      limit: 1,
      fingerprint: digest,
      keepSeconds: KEPT_SECONDS,
      endsWithOwner: false,
    },
  ]
}

const kept = z.object({ status: z.int() })

/** By the credential that asks, and the id of the call. */
type Find<Found> = (credentialId: Id, id: Id) => Promise<Found | undefined>

type Parts = {
  readonly findOpen: Find<Pick<OpenRequest, 'unsettled_at'>>
  readonly findEnded: Find<Ended>
  readonly clock: Pick<Clock, 'sleep'>
}

type Ended = Pick<EndedRequest, 'amount' | 'given_back' | 'detail'>

type First = { readonly id: Id; readonly isTask: boolean }

/** What became of the call that has the key already, for whoever sent it again. */
export type FirstCall = (credentialId: Id, first: First) => Promise<Fault>

export function createFirstCall(parts: Parts): FirstCall {
  return async (credentialId, { id, isTask }) => {
    const [open, ended] = await Promise.all([
      parts.findOpen(credentialId, id),
      findWithDetail(parts, credentialId, id),
    ]).catch((cause: unknown) => {
      throw unavailable(cause)
    })
    // A task has the id of the call that created it, by which it is polled, whatever became of the creation.
    const members = { first_request_id: id, ...(isTask && { task_id: id }) }
    const poll = isTask && { detail: `Poll the task ${id}.` }
    if (open !== undefined && open.unsettled_at !== null) return new Fault('outcome_unknown', { members, ...poll })
    // One that has just ended uncharged frees its key: the next try begins a call.
    if (ended === undefined || ended.amount === ZERO)
      return new Fault('idempotency_running', {
        members,
        ...poll,
        retryAfterSeconds: isTask ? TASK_SECONDS : RUNNING_SECONDS,
      })
    // What was given back since then does not undo that it completed.
    const cost = nanos(ended.amount - ended.given_back)
    const status = kept.safeParse(ended.detail).data?.status ?? null
    return new Fault('idempotency_completed', {
      members: { ...members, status, cost_usd: formatUsd(cost) },
      ...poll,
    })
  }
}

/** How a call went is written a moment after its charge, by whichever process ran it; lost where that died in between. */
const DETAIL_WAITS_MS = [150, 350]

async function findWithDetail({ findEnded, clock }: Parts, credentialId: Id, id: Id): Promise<Ended | undefined> {
  let ended = await findEnded(credentialId, id)
  for (const waitMs of DETAIL_WAITS_MS) {
    if (ended === undefined || ended.amount === ZERO || ended.detail !== null) return ended
    await clock.sleep(waitMs)
    ended = await findEnded(credentialId, id)
  }
  return ended
}

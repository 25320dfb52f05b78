import { isTask } from '../catalogue/operation.ts'
import { Fault } from '../kernel/fault.ts'
import { type Nanos, ZERO } from '../kernel/money.ts'
import { ClaimTaken } from './begin.ts'
import type { CallRequest } from './call-request.ts'
import { type FirstCall, IDEMPOTENCY } from './idempotency.ts'
import { APPROVAL, type Mandates } from './mandates.ts'

type Parts = {
  /** What became of the first call with an idempotency key, as the caller of the second is told. */
  readonly firstCall: FirstCall
  readonly mandates: Pick<Mandates, 'spent'>
}

/** Throws a refusal as its caller is told it. */
export type Explain = (request: CallRequest, refusal: unknown, most?: Nanos) => Promise<never>

/** A key, a quote or an approval that another call has is told by what became of that one. */
export function createExplain({ firstCall, mandates }: Parts): Explain {
  return async (request, refusal, most = ZERO) => {
    if (!(refusal instanceof ClaimTaken)) throw refusal
    const { claim, holder, differs, headers } = refusal
    const { credentialId } = request.caller
    if (isOfApproval(refusal)) throw (await mandates.spent(request, most)).withHeaders(headers)
    if (claim.scope !== IDEMPOTENCY) throw new Fault('quote_used', { headers })
    if (differs) throw new Fault('idempotency_mismatch', { headers, members: { first_request_id: holder } })
    const fault =
      holder === null
        ? new Fault('idempotency_running')
        : await firstCall(credentialId, { id: holder, isTask: isTask(request.operation) })
    throw fault.withHeaders(headers)
  }
}

/** Whether another call has the approval that this one wanted to begin with. */
export function isOfApproval(refusal: unknown): boolean {
  return refusal instanceof ClaimTaken && refusal.claim.scope === APPROVAL
}

import type { Caller } from '../identity/caller.ts'
import type { Fault } from '../kernel/fault.ts'
import type { Log } from '../telemetry/log.ts'
import { withFix } from '../wording/fix-page.ts'
import { isRefusal, type Refusals } from './refusals.ts'
import type { RefusedCalls, RefusedRequest } from './refused-calls.ts'

/** A request that a known caller is refused, as far as it was read. */
export type RefusedOf = Omit<RefusedRequest, 'caller' | 'operation'> & {
  readonly caller: Caller
  /** Undefined where it is of nothing that is sold, or asks for a price alone. */
  readonly operation: string | undefined
  /** Whether it was a call already: what became of that is in its record. */
  readonly isBegun: boolean
}

/** Counts a refusal, keeps it where it is of a call, and gives it as its caller is told. */
export type Refuse = (request: RefusedOf, fault: Fault) => Fault

type Parts = {
  readonly refusals: Pick<Refusals, 'count'>
  readonly refusedCalls: Pick<RefusedCalls, 'add'>
  readonly log: Pick<Log, 'calls'>
  /** Undefined where there is no website. */
  readonly siteUrl: string | undefined
}

export function createRefuse({ refusals, refusedCalls, log, siteUrl }: Parts): Refuse {
  return ({ operation, isBegun, ...request }, fault) => {
    const { caller } = request
    const told = withFix(siteUrl, caller, fault)
    refusals.count(caller.credentialId, told)
    if (operation === undefined || isBegun || !isRefusal(told)) return told
    refusedCalls.add({ ...request, operation }, told)
    if (log.calls.tellsAll)
      log.calls.refused({
        request_id: request.id,
        account_id: caller.accountId,
        key_id: caller.credentialId,
        operation,
        status: told.status,
        code: told.code,
      })
    return told
  }
}

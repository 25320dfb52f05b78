import type { AgentRequest } from '../http/agent-routes.ts'
import type { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { withoutCredential } from '../wire/without-credential.ts'

type Parts = {
  readonly count: (credentialId: Id, fault: Fault) => void
  readonly metrics: Pick<Metrics, 'faults'>
  readonly log: Pick<Log, 'error' | 'warn'>
}

/** A refusal that a tool's answer carries is an answer like any other to HTTP: it is counted and logged here, as the edge does. */
export function createToolRefusals({ count, metrics, log }: Parts) {
  return ({ id, caller, headers }: Pick<AgentRequest, 'id' | 'caller' | 'headers'>, fault: Fault): void => {
    const { code, status, cause } = fault
    metrics.faults.inc({ code })
    count(caller.credentialId, fault)
    if (status < 500) return
    log[code === 'internal_error' ? 'error' : 'warn']('request failed', {
      code,
      status,
      request_id: id,
      ...(cause !== undefined && { error: withoutCredential(cause, headers) }),
    })
  }
}

import type { Refuse, RefusedOf } from '../gateway/refuse.ts'
import type { AgentRequest } from '../http/agent-routes.ts'
import type { Fault } from '../kernel/fault.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { UpstreamFailure } from '../upstreams/failure.ts'
import { withoutCredential } from '../wire/without-credential.ts'

type Parts = {
  readonly refuse: Refuse
  readonly metrics: Pick<Metrics, 'faults'>
  readonly log: Pick<Log, 'error' | 'warn' | 'calls'>
}

/** Of a tool that makes a call, which one and how far it has come. */
type ToolCall = Pick<RefusedOf, 'operation' | 'model' | 'idempotencyKey' | 'isBegun'>

export type ToolRefused = (
  request: Pick<AgentRequest, 'id' | 'caller' | 'headers'>,
  fault: Fault,
  call?: ToolCall,
) => Fault

const NO_CALL: ToolCall = { operation: undefined, model: undefined, idempotencyKey: undefined, isBegun: false }

/** A refusal that a tool's answer carries is an answer like any other to HTTP: it is counted and logged here, as the edge does. */
export function createToolRefusals({ refuse, metrics, log }: Parts): ToolRefused {
  return ({ id, caller, headers }, fault, call = NO_CALL) => {
    const { code, status, cause } = fault
    metrics.faults.inc({ code })
    const told = refuse({ ...call, id, caller }, fault)
    // Of a call that had begun, its own line says how its upstream has failed.
    const isTold = call.isBegun && log.calls.tellsFailures && cause instanceof UpstreamFailure
    if (status < 500 || isTold) return told
    log[code === 'internal_error' ? 'error' : 'warn']('request failed', {
      code,
      status,
      request_id: id,
      ...(cause !== undefined && { error: withoutCredential(cause, headers) }),
    })
    return told
  }
}

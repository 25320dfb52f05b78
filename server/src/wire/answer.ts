import type { Dialect } from '../catalogue/operation.ts'
import type { Fault } from '../kernel/fault.ts'

/** How a refusal is told: in JSON of some shape, or as a page. `http/answer.ts` renders them. */
export type FaultDialect = Dialect | 'plain' | 'problem' | 'oauth' | 'html'

/** A fault as it goes over the wire. */
export type Answer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export type RenderFault = (dialect: FaultDialect, fault: Fault, requestId: string) => Answer

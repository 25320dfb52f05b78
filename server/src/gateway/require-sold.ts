import type { Operation } from '../catalogue/operation.ts'
import { Fault } from '../kernel/fault.ts'
import type { Model } from '../pricing/models.ts'
import type { Switches } from '../pricing/switches.ts'
import type { CallRequest } from './call-request.ts'

/** A quote is a promise: what it was given for can be called until it expires, whatever was switched off since. */
type Asking = Pick<CallRequest, 'quoteId'>

type Sought = Asking & { readonly operation: Pick<Operation, 'id' | 'category'> }

/** The refusal where an operator has switched the operation, or its category, off. */
export function refusalOfUnsold(switches: Switches, { operation, quoteId }: Sought): Fault | undefined {
  return quoteId === undefined && switches.isOff(operation) ? notSold(operation.id) : undefined
}

/** Throws where an operator has switched the model off. */
export function requireSoldModel({ id, isOff }: Pick<Model, 'id' | 'isOff'>, { quoteId }: Asking): void {
  if (quoteId === undefined && isOff === true) throw modelNotSold(id)
}

export function notSold(operationId: string): Fault {
  return new Fault('not_sold', {
    detail: `The operation ${operationId} is not sold here, and nothing was charged. Use one that the website's catalogue lists, or ask the operator for it.`,
  })
}

export function modelNotSold(id: string): Fault {
  return new Fault('not_sold', {
    detail: `The model ${JSON.stringify(id)} is not sold here, and nothing was charged. Use one that GET /v1/models lists, or ask the operator for it.`,
    members: { param: 'model' },
  })
}

import type { DataOperation } from '../../catalogue/operation.ts'
import { memberOf } from '../../catalogue/price.ts'
import { Fault } from '../../kernel/fault.ts'

/** The models that callers of an operation may name, by its id. Others have no price: an operation has one for all. */
export type DeclaredModels = Readonly<Record<string, readonly string[]>>

export function requireDeclaredModel({ id }: DataOperation, input: unknown, declared: DeclaredModels): void {
  const models = Object.hasOwn(declared, id) ? declared[id] : undefined
  const model = memberOf(input, 'model')
  if (models === undefined || model === undefined || models.some((one) => one === model)) return
  const detail = `There is no such model here in "model". Leave it out, or name one of these: ${models.join(', ')}.`
  throw new Fault('invalid_request', { detail })
}

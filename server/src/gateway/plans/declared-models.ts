import type { DataOperation } from '../../catalogue/operation.ts'
import { memberOf } from '../../catalogue/price.ts'
import { invalidRequest } from '../../kernel/fault.ts'

/** The models that callers of an operation may name, by its id. Others have no price: an operation has one for all. */
export type DeclaredModels = Readonly<Record<string, readonly string[]>>

/** The one that the caller names, if any, of an operation that has them. */
export function declaredModel({ id }: DataOperation, input: unknown, declared: DeclaredModels): string | undefined {
  const models = Object.hasOwn(declared, id) ? declared[id] : undefined
  const model = memberOf(input, 'model')
  if (models === undefined || model === undefined) return undefined
  const named = models.find((one) => one === model)
  if (named !== undefined) return named
  const detail = `"model" must be one of these, or left out: ${models.join(', ')}.`
  throw invalidRequest(detail, 'model')
}

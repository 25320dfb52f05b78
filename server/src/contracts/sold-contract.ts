import type { Catalogue } from '../catalogue/operation.ts'
import { onSale, type Sold } from '../pricing/sold.ts'
import { canonicalBytes, sha256 } from './canonical.ts'
import type { Contract } from './contract.ts'
import { reachable } from './one-operation.ts'
import { asObject, operationsIn } from './problems.ts'

/** The contract of what is sold now. */
export function soldContract(whole: Contract, { operations }: Pick<Catalogue, 'operations'>, sold: Sold): Contract {
  const ids = new Set(onSale(sold).map(({ id }) => id))
  return contractWithout(
    whole,
    operations.flatMap(({ id }) => (ids.has(id) ? [] : [id])),
  )
}

/** The contract without these operations: the same bytes that would have been made without them, and the same contract where there are none. */
export function contractWithout(whole: Contract, operationIds: readonly string[]): Contract {
  if (operationIds.length === 0) return whole
  const gone = new Set(operationIds)
  const document = asObject(JSON.parse(whole.bytes.toString('utf8')))
  const kept = operationsIn(document).filter(({ operation }) => !gone.has(String(operation.operationId)))
  const paths: Record<string, Record<string, unknown>> = {}
  for (const { path, method, operation } of kept) paths[path] = { ...paths[path], [method]: operation }
  const used = new Set(kept.flatMap(({ operation }) => (Array.isArray(operation.tags) ? operation.tags : [])))
  const bytes = canonicalBytes({
    ...document,
    paths,
    tags: Array.isArray(document.tags) ? document.tags.filter((tag) => used.has(asObject(tag).name)) : [],
    components: {
      ...reachable(document, paths),
      securitySchemes: asObject(document.components).securitySchemes,
    },
  })
  const docsRevision = sha256(canonicalBytes({ revision: whole.docsRevision, without: [...gone].sort() }))
  return { contentHash: sha256(bytes), docsRevision, bytes }
}

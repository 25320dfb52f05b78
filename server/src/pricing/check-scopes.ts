import type pg from 'pg'
import type { Operation } from '../catalogue/operation.ts'
import { checkScopes } from '../identity/scopes.ts'
import { invalidRequest } from '../kernel/fault.ts'
import { DEFAULT_RERANK_MODEL } from '../upstreams/adapters/rerank.ts'
import { namesOfModels } from './configure-models.ts'

type Parts = {
  readonly pool: pg.Pool
  readonly operations: readonly Operation[]
  /** Those that the operator declares beside the one that there always is. */
  readonly rerankModels: readonly string[]
}

/** Throws where scopes name what is not there. */
export async function requireKnownScopes(
  { pool, operations, rerankModels }: Parts,
  scopes: readonly string[],
  modelsAt?: string,
): Promise<void> {
  const models = [...(await namesOfModels({ pool })), DEFAULT_RERANK_MODEL, ...rerankModels]
  checkScopes(scopes, { operations, models, ...(modelsAt !== undefined && { modelsAt }) })
}

/** The same for an API. */
export function createCheckScopes(parts: Parts): (scopes: readonly string[]) => Promise<void> {
  return (scopes) =>
    requireKnownScopes(parts, scopes, 'GET /v1/models').catch((error: unknown) => {
      if (!(error instanceof RangeError)) throw error
      throw invalidRequest(`"scopes": ${error.message}.`, 'scopes')
    })
}

import type pg from 'pg'
import type { Catalogue, Names } from '../catalogue/operation.ts'
import type { Begin } from '../gateway/begin.ts'
import type { HeaderNames } from '../gateway/header-names.ts'
import type { Mandates } from '../gateway/mandates.ts'
import type { Pipeline } from '../gateway/pipeline.ts'
import type { AgentRequest } from '../http/agent-routes.ts'
import type { JsonLimits } from '../http/json.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Fault } from '../kernel/fault.ts'
import type { Ids } from '../kernel/ids.ts'
import type { Links } from '../links/links.ts'
import type { Models } from '../pricing/models.ts'
import type { Prices } from '../pricing/prices.ts'
import type { Tasks } from '../tasks/tasks.ts'

/** What the tools are made of. All of it serves the callers of base_url as well. */
export type AgentParts = {
  readonly catalogue: Catalogue
  readonly run: Pipeline
  readonly begin: Begin
  readonly mandates: Pick<Mandates, 'linked'>
  readonly clock: Pick<Clock, 'sleep' | 'monotonicMs'>
  readonly models: Pick<Models, 'list'>
  readonly prices: Pick<Prices, 'termsFor'>
  readonly tasks: Tasks
  readonly links: Pick<Links, 'list' | 'start'>
  readonly pool: pg.Pool
  /** PostgreSQL's time, by which periods begin. */
  readonly time: Pick<Clock, 'nowMs'>
  readonly ids: Ids
  readonly names: Names
  readonly headerNames: HeaderNames
  readonly jsonLimits: JsonLimits
  /** Under which users of a platform come back to us; undefined where nobody said. */
  readonly publicUrl: string | undefined
  /** Told of every refusal that a tool's answer carries, to be counted as any other. */
  readonly refused: (request: Pick<AgentRequest, 'id' | 'caller' | 'headers'>, fault: Fault) => void
}

/** The words by which our members of `_meta` are known: the operator's own, in front of a slash. */
export type MetaNames = Readonly<Record<'call' | 'idempotencyKey', string>>

export function createMetaNames(provider: string): MetaNames {
  const prefix = `${provider.toLowerCase()}/`
  return { call: `${prefix}call`, idempotencyKey: `${prefix}idempotency-key` }
}

/** What counts as a request of an agent's key without being one of an operation: every key may make it. */
export const COUNTED = { id: 'agent', limits: [], isForAll: true } as const

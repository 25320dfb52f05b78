import type { CallerParts } from '../callers/parts.ts'
import type { Pipeline } from '../gateway/pipeline.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Ids } from '../kernel/ids.ts'
import type { Prices } from '../pricing/prices.ts'
import type { JsonLimits } from '../wire/json.ts'
import type { ToolRefused } from './refusals.ts'

/** What the tools are made of. All of it serves the callers of base_url as well. */
export type AgentParts = CallerParts & {
  readonly run: Pipeline
  readonly clock: Pick<Clock, 'sleep' | 'monotonicMs'>
  readonly prices: Pick<Prices, 'termsFor'>
  readonly ids: Ids
  readonly jsonLimits: JsonLimits
  /** Told of every refusal that a tool's answer carries, to be counted as any other. It gives it as the agent is told. */
  readonly refused: ToolRefused
}

/** The words by which our members of `_meta` are known: the operator's own, in front of a slash. */
export type MetaNames = Readonly<Record<'call' | 'idempotencyKey', string>>

export function createMetaNames(provider: string): MetaNames {
  const prefix = `${provider.toLowerCase()}/`
  return { call: `${prefix}call`, idempotencyKey: `${prefix}idempotency-key` }
}

/** What counts as a request of an agent's key without being one of an operation: every key may make it. */
export const COUNTED = { id: 'agent', limits: [], isForAll: true } as const

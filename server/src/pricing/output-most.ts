import type { ModelAsk, ModelLimits } from '../protocols/protocol.ts'
import type { Route } from './models.ts'

/**
 * The most output that a call can have, of all choices together. Where an upstream counts reasoning apart, the limit that is
 * sent does not bound it: it may reason for as long as the longest answer, within the context window.
 */
export function outputMostOf(
  { outputLimit, choices, imageKind }: Pick<ModelAsk, 'outputLimit' | 'choices' | 'imageKind'>,
  routes: readonly Route[],
  { outputMost, contextWindow }: ModelLimits,
): number {
  const isApart = routes.some(({ profile }) => profile.reasoning === 'apart')
  if (!isApart || outputLimit === 0 || imageKind !== undefined) return outputLimit * choices
  return Math.max(outputLimit, Math.min(outputLimit + outputMost, contextWindow)) * choices
}

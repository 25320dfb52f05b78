import type { TierLimits } from '../catalogue/tiers.ts'

export function limitsLine({ requestsPerMinute, tokensPerMinute, concurrency }: TierLimits): string {
  return `${requestsPerMinute} requests per minute, ${tokensPerMinute} tokens per minute, ${concurrency} concurrent calls`
}

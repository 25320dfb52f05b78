import type { TierLimits } from '../catalogue/tiers.ts'
import { field } from './action.ts'
import { TOKENS_LIMIT, wholeNumber } from './fields.ts'

/** How operators write the limits of a tier, and are shown them. */

export type Limits = { readonly [Name in 'rpm' | 'tpm' | 'concurrency']?: number | undefined }

/** With what holds where one is left out. */
export function limitFields(absent: Readonly<Record<keyof Limits, string>>) {
  const number = (shown: string, what: string, most?: number) =>
    field(shown, what, (text) => wholeNumber(text, most)).optional()
  return {
    rpm: number('requests', `requests per minute${absent.rpm}`),
    tpm: number('tokens', `tokens per minute${absent.tpm}`, TOKENS_LIMIT),
    concurrency: number('calls', `concurrent calls${absent.concurrency}`),
  }
}

export function limitsLine({ requestsPerMinute, tokensPerMinute, concurrency }: TierLimits): string {
  return `${requestsPerMinute} requests per minute, ${tokensPerMinute} tokens per minute, ${concurrency} concurrent calls`
}

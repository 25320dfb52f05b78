import { countIn, memberOf } from '../../catalogue/price.ts'
import { modelOf } from './members.ts'
import { ask } from './openai-images-request.ts'
import type { Protocol, Reported } from './protocol.ts'
import { reportedOf } from './usage.ts'

export const openaiImages: Protocol = {
  modelOf,
  ask,
  path: '/v1/images/generations',
  target: () => '/v1/images/generations',
  credentialHeader: 'authorization',
  passesOn: ['openai-beta'],
  usageOf,
  // What a picture has in tokens can't be counted by looking at it.
  textOf: () => '',
}

/** What was read from a cache is part of the input. */
function usageOf(json: unknown): Reported {
  const usage = memberOf(json, 'usage')
  const input = countIn(memberOf(usage, 'input_tokens'))
  const output = countIn(memberOf(usage, 'output_tokens'))
  const cached = countIn(memberOf(usage, 'input_tokens_details', 'cached_tokens'))
  const cacheRead = input === undefined || cached === undefined ? undefined : Math.min(cached, input)
  return reportedOf({
    input: input === undefined ? undefined : input - (cacheRead ?? 0),
    output,
    cacheRead,
    cacheWrite: undefined,
  })
}

import { createReader, formOf, textOf, usageOf } from './anthropic-reply.ts'
import { ask, askToCount, modelOf } from './anthropic-request.ts'
import type { Protocol } from './protocol.ts'

export const anthropic: Protocol = {
  modelOf,
  ask,
  path: '/v1/messages',
  target: () => '/v1/messages',
  credentialHeader: 'x-api-key',
  passesOn: ['anthropic-version', 'anthropic-beta'],
  defaultHeaders: { 'anthropic-version': '2023-06-01' },
  usageOf,
  formOf,
  textOf,
  stream: { createReader, errorFrame: (body) => `event: error\ndata: ${body}\n\n` },
}

/** Counts the tokens of a message without answering it. It costs nothing. */
export const anthropicCount: Protocol = {
  ...anthropic,
  ask: askToCount,
  path: '/v1/messages/count_tokens',
  target: () => '/v1/messages/count_tokens',
  usageOf: () => ({ input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }),
  textOf: () => '',
}

import { createReader, formOf, hasMedia, textOf, usageOf } from './openai-reply.ts'
import { ask, modelOf } from './openai-request.ts'
import type { Protocol } from './protocol.ts'

export const openai: Protocol = {
  modelOf,
  ask,
  path: '/v1/chat/completions',
  target: () => '/v1/chat/completions',
  credentialHeader: 'authorization',
  // Organisation and project are about an account that the caller has elsewhere.
  passesOn: ['openai-beta'],
  usageOf,
  formOf,
  textOf,
  hasMedia,
  stream: { createReader, errorFrame: (body) => `data: ${body}\n\n` },
}

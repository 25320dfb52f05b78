import { createReader, formOf, restOf, textOf, usageOf } from './openai-responses-reply.ts'
import { ask, modelOf } from './openai-responses-request.ts'
import type { Protocol } from './protocol.ts'

export const openaiResponses: Protocol = {
  modelOf,
  ask,
  path: '/v1/responses',
  target: () => '/v1/responses',
  credentialHeader: 'authorization',
  passesOn: ['openai-beta'],
  usageOf,
  formOf,
  textOf,
  restOf,
  stream: { createReader, errorFrame },
}

/** An event of the protocol's own, which has a number; nobody counts on that of an error. */
function errorFrame(body: string): string {
  return `event: error\ndata: {"type":"error","sequence_number":0,${body.slice(1)}\n\n`
}

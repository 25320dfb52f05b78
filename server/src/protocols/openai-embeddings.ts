import { memberOf } from '../catalogue/price.ts'
import { modelOf } from './members.ts'
import { ask } from './openai-embeddings-request.ts'
import { usageOf } from './openai-reply.ts'
import type { Protocol } from './protocol.ts'
import { itemsOf } from './usage.ts'

export const openaiEmbeddings: Protocol = {
  modelOf,
  ask,
  path: '/v1/embeddings',
  target: () => '/v1/embeddings',
  credentialHeader: 'authorization',
  passesOn: ['openai-beta'],
  usageOf(json) {
    const reported = usageOf(json)
    // Vectors are no tokens. Without any, nothing was given that could be charged for.
    return itemsOf(memberOf(json, 'data')).length === 0 ? {} : { ...reported, output: 0 }
  },
  formOf(json) {
    const data = memberOf(json, 'data')
    if (memberOf(json, 'error') || (Array.isArray(data) && data.length === 0)) return 'nothing'
    return Array.isArray(data) ? 'answer' : 'unreadable'
  },
  textOf: () => '',
}

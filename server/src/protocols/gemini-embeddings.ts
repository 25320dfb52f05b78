import { memberOf } from '../catalogue/price.ts'
import { gemini, placeOf } from './gemini.ts'
import { ask, askForMany } from './gemini-embeddings-request.ts'
import { usageOf } from './gemini-reply.ts'
import type { Protocol } from './protocol.ts'
import { itemsOf } from './usage.ts'

/** Vectors of texts: https://ai.google.dev/api/embeddings. Newer models report usage, older ones nothing. */
export const geminiEmbeddings: Protocol = {
  ...gemini,
  ask,
  path: '/v1beta/models/{model}:embedContent',
  target: (upstreamModel) => `${placeOf(upstreamModel)}:embedContent`,
  usageOf(json) {
    const reported = usageOf(json)
    // Vectors are no tokens. Without any, nothing was given that could be charged for.
    return vectorsIn(json).length === 0 ? {} : { ...reported, output: 0 }
  },
  formOf(json) {
    if (vectorsIn(json).length > 0) return 'answer'
    return memberOf(json, 'error') || hasPlaceForVectors(json) ? 'nothing' : 'unreadable'
  },
  textOf: () => '',
}

export const geminiBatchEmbeddings: Protocol = {
  ...geminiEmbeddings,
  ask: askForMany,
  path: '/v1beta/models/{model}:batchEmbedContents',
  target: (upstreamModel) => `${placeOf(upstreamModel)}:batchEmbedContents`,
}

/** Those that have a number at least. */
function vectorsIn(json: unknown): readonly unknown[] {
  const given = [memberOf(json, 'embedding'), ...itemsOf(memberOf(json, 'embeddings'))]
  return given.filter((one) => itemsOf(memberOf(one, 'values')).length > 0)
}

function hasPlaceForVectors(json: unknown): boolean {
  return memberOf(json, 'embedding') !== undefined || Array.isArray(memberOf(json, 'embeddings'))
}

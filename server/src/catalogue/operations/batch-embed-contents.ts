import type { ModelOperation } from '../operation.ts'

export const batchEmbedContents: ModelOperation = {
  id: 'batch_embed_contents',
  summary: 'Turn several texts into vectors, in the Gemini protocol',
  category: 'models',
  method: 'POST',
  path: '/v1beta/models/{model}:batchEmbedContents',
  dialect: 'gemini',
  limits: ['tokens'],
  quotable: true,
  definition: 'complete',
  attempts: { requests: 3, refreshes: 0 },
  protocol: 'gemini_batch_embeddings',
}

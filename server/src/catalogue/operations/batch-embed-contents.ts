import type { ModelOperation } from '../operation.ts'

export const batchEmbedContents: ModelOperation = {
  id: 'batch_embed_contents',
  summary: 'Turn several texts into vectors, in the Gemini protocol',
  asks: 'batch embed embeddings vectors google gemini many texts at once bulk several',
  example: { model: '<model>', requests: [{ model: 'models/<model>', content: { parts: [{ text: 'A text.' }] } }] },
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

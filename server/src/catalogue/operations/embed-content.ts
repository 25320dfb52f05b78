import type { ModelOperation } from '../operation.ts'

export const embedContent: ModelOperation = {
  id: 'embed_content',
  summary: 'Turn a text into a vector, in the Gemini protocol',
  asks: 'embed embedding vector google gemini single one text',
  example: { model: '<model>', content: { parts: [{ text: 'A text.' }] } },
  category: 'models',
  method: 'POST',
  path: '/v1beta/models/{model}:embedContent',
  dialect: 'gemini',
  limits: ['tokens'],
  quotable: true,
  definition: 'complete',
  attempts: { requests: 3, refreshes: 0 },
  protocol: 'gemini_embeddings',
}

import type { ModelOperation } from '../operation.ts'

export const embeddings: ModelOperation = {
  id: 'embeddings',
  summary: 'Turn texts into vectors, in the OpenAI protocol',
  category: 'models',
  method: 'POST',
  path: '/v1/embeddings',
  dialect: 'openai',
  limits: ['tokens'],
  quotable: true,
  definition: 'complete',
  attempts: { requests: 3, refreshes: 0 },
  protocol: 'openai_embeddings',
}

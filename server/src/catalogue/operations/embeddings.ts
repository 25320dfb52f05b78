import type { ModelOperation } from '../operation.ts'

export const embeddings: ModelOperation = {
  id: 'embeddings',
  summary: 'Turn texts into vectors, in the OpenAI protocol',
  asks: `embed embedding embeddings vector vectors vectorize vectorise semantic similarity similar nearest neighbour
    neighbor search index rag retrieval cluster represent numbers numeric openai sentences paragraphs`,
  example: { model: '<model>', input: 'A text.' },
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

import type { ModelOperation } from '../operation.ts'

export const imageGenerations: ModelOperation = {
  id: 'image_generations',
  summary: 'Make pictures from a description, in the OpenAI protocol',
  category: 'models',
  method: 'POST',
  path: '/v1/images/generations',
  dialect: 'openai',
  limits: ['tokens', 'concurrency', 'images'],
  quotable: true,
  definition: 'complete',
  attempts: { requests: 3, refreshes: 0 },
  protocol: 'openai_images',
}

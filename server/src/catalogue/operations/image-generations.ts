import type { ModelOperation } from '../operation.ts'

export const imageGenerations: ModelOperation = {
  id: 'image_generations',
  summary: 'Make pictures from a description, in the OpenAI protocol',
  asks: `image images picture pictures photo draw drawing paint painting illustration illustrate logo icon art
    artwork render poster wallpaper thumbnail banner avatar graphic sketch create generate make design dall-e text to
    image`,
  example: { model: '<model>', prompt: 'A fox in the snow', size: '1024x1024' },
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

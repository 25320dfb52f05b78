import type { ModelOperation } from '../operation.ts'

export const generateContent: ModelOperation = {
  id: 'generate_content',
  summary: 'Let a model continue a conversation, in the Gemini protocol',
  asks: 'google gemini flash pro generate content api conversation chat ask model',
  example: { model: '<model>', contents: [{ role: 'user', parts: [{ text: 'Say hello.' }] }] },
  category: 'models',
  method: 'POST',
  path: '/v1beta/models/{model}:generateContent',
  dialect: 'gemini',
  limits: ['tokens', 'concurrency', 'generate_content'],
  quotable: true,
  definition: 'complete',
  attempts: { requests: 3, refreshes: 0 },
  protocol: 'gemini',
}

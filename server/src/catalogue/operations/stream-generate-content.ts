import type { ModelOperation } from '../operation.ts'
import { generateContent } from './generate-content.ts'

export const streamGenerateContent: ModelOperation = {
  id: 'stream_generate_content',
  summary: 'Let a model continue a conversation as a stream, in the Gemini protocol',
  asks: generateContent.asks,
  example: generateContent.example,
  category: 'models',
  method: 'POST',
  path: '/v1beta/models/{model}:streamGenerateContent',
  dialect: 'gemini',
  limits: ['tokens', 'concurrency', 'generate_content'],
  quotable: true,
  definition: 'complete',
  attempts: { requests: 3, refreshes: 0 },
  protocol: 'gemini_stream',
}

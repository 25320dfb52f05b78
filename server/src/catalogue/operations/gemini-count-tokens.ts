import type { ModelOperation } from '../operation.ts'

export const geminiCountTokens: ModelOperation = {
  id: 'generate_content_count_tokens',
  summary: 'Count the tokens that a conversation has for a model, in the Gemini protocol',
  category: 'models',
  method: 'POST',
  path: '/v1beta/models/{model}:countTokens',
  dialect: 'gemini',
  limits: [],
  quotable: false,
  definition: 'complete',
  protocol: 'gemini_count_tokens',
}

import type { ModelOperation } from '../operation.ts'

export const geminiCountTokens: ModelOperation = {
  id: 'generate_content_count_tokens',
  summary: 'Count the tokens that a conversation has for a model, in the Gemini protocol',
  asks: `count how many tokens token length long size prompt fit context window estimate before sending tokenizer
    tokenize google gemini`,
  example: { model: '<model>', contents: [{ role: 'user', parts: [{ text: 'Say hello.' }] }] },
  category: 'models',
  method: 'POST',
  path: '/v1beta/models/{model}:countTokens',
  dialect: 'gemini',
  limits: [],
  quotable: false,
  definition: 'complete',
  attempts: { requests: 3, refreshes: 0 },
  protocol: 'gemini_count_tokens',
}

import type { ModelOperation } from '../operation.ts'

export const countTokens: ModelOperation = {
  id: 'messages_count_tokens',
  summary: 'Count the tokens that a conversation has for a model, in the Anthropic protocol',
  asks: `count how many tokens token length long size prompt fit context window estimate before sending tokenizer
    tokenize anthropic claude`,
  example: { model: '<model>', messages: [{ role: 'user', content: 'Say hello.' }] },
  category: 'models',
  method: 'POST',
  path: '/v1/messages/count_tokens',
  dialect: 'anthropic',
  limits: [],
  quotable: false,
  definition: 'complete',
  attempts: { requests: 3, refreshes: 0 },
  protocol: 'anthropic_count_tokens',
}

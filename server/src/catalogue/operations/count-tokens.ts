import type { ModelOperation } from '../operation.ts'

export const countTokens: ModelOperation = {
  id: 'messages_count_tokens',
  summary: 'Count the tokens that a conversation has for a model, in the Anthropic protocol',
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

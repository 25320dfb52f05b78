import type { ModelOperation } from '../operation.ts'

export const messages: ModelOperation = {
  id: 'messages',
  summary: 'Let a model continue a conversation, in the Anthropic protocol',
  category: 'models',
  method: 'POST',
  path: '/v1/messages',
  dialect: 'anthropic',
  limits: ['tokens', 'concurrency'],
  quotable: true,
  definition: 'complete',
  attempts: { requests: 3, refreshes: 0 },
  protocol: 'anthropic',
}

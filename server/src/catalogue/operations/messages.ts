import type { ModelOperation } from '../operation.ts'

export const messages: ModelOperation = {
  id: 'messages',
  summary: 'Let a model continue a conversation, in the Anthropic protocol',
  asks: 'anthropic claude sonnet opus haiku messages api conversation chat ask model',
  example: { model: '<model>', max_tokens: 200, messages: [{ role: 'user', content: 'Say hello.' }] },
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

import type { ModelOperation } from '../operation.ts'

export const chatCompletions: ModelOperation = {
  id: 'chat_completions',
  summary: 'Let a model continue a conversation, in the OpenAI protocol',
  category: 'models',
  method: 'POST',
  path: '/v1/chat/completions',
  dialect: 'openai',
  limits: ['tokens', 'concurrency'],
  quotable: true,
  definition: 'complete',
  attempts: { requests: 3, refreshes: 0 },
  protocol: 'openai',
}

import type { ModelOperation } from '../operation.ts'

export const responses: ModelOperation = {
  id: 'responses',
  summary: "Let a model continue a conversation, in the protocol of OpenAI's Responses",
  category: 'models',
  method: 'POST',
  path: '/v1/responses',
  dialect: 'openai',
  limits: ['tokens', 'concurrency'],
  quotable: true,
  definition: 'complete',
  attempts: { requests: 3, refreshes: 0 },
  protocol: 'openai_responses',
}

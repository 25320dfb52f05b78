import type { ModelOperation } from '../operation.ts'

export const responses: ModelOperation = {
  id: 'responses',
  summary: "Let a model continue a conversation, in the protocol of OpenAI's Responses",
  asks: 'openai responses api gpt reasoning answer prompt input instructions model text',
  example: { model: '<model>', input: 'Say hello.', max_output_tokens: 200 },
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

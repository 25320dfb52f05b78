import type { ModelOperation } from '../operation.ts'

export const chatCompletions: ModelOperation = {
  id: 'chat_completions',
  summary: 'Let a model continue a conversation, in the OpenAI protocol',
  asks: `chat ask talk question answer reply respond write draft rewrite email essay summarise summary summarize
    translate translation explain explanation code programming generate text completion complete prompt language llm
    ai model gpt assistant classify extract reason think story poem proofread brainstorm describe image vision
    function tool calling json structured openai chatgpt gpt-4 gpt-5 compatible`,
  example: { model: '<model>', messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 200 },
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

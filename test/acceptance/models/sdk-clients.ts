import { aiOverAnthropic, aiOverGemini, aiOverOpenai, aiOverResponses } from './sdk-ai.ts'
import { anthropicClient, anthropicClientBefore1 } from './sdk-anthropic.ts'
import type { Client } from './sdk-client.ts'
import { geminiClient } from './sdk-gemini.ts'
import { openaiClient } from './sdk-openai.ts'
import { responsesClient } from './sdk-responses.ts'

/** The libraries that callers have, each as its users install it. */
export const CLIENTS: readonly Client[] = [
  openaiClient,
  responsesClient,
  anthropicClient,
  anthropicClientBefore1,
  geminiClient,
  aiOverOpenai,
  aiOverResponses,
  aiOverAnthropic,
  aiOverGemini,
]

/** Each way of asking, with words for a title. */
export type Way = { readonly client: Client; readonly streamed: boolean; readonly title: string }
export const WAYS: readonly Way[] = CLIENTS.flatMap((client) =>
  [false, true].map((streamed) => ({ client, streamed, title: `${client.name}${streamed ? ', streamed' : ''}` })),
)

import { z } from 'zod'
import type { ModelProtocol } from '../catalogue/operation.ts'

/** The members of vendors' answers that are read here, or written, by their public schemas. All others are the provider's, and are passed on as they came. */

const text = z.string().nullable().optional()
const count = z.int().nullable().optional()
const number = z.number().nullable().optional()
const costUsd = z
  .string()
  .optional()
  .meta({ description: 'What the call was charged, in decimal USD. Written by the gateway.' })
const model = z.string().optional().meta({ description: 'As it was asked for.' })
const maybe = <Shape extends z.ZodRawShape>(shape: Shape) => z.looseObject(shape).nullable().optional()
const listOf = (item: z.ZodType) => z.array(item).nullable().optional()

const chatUsage = maybe({
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: maybe({ cached_tokens: count, cache_write_tokens: count, audio_tokens: count }),
  completion_tokens_details: maybe({ reasoning_tokens: count, audio_tokens: count }),
  cost_usd: costUsd,
})
const toolCalls = listOf(z.looseObject({ id: text, type: text, function: maybe({ name: text, arguments: text }) }))
/** Some providers write content in parts. */
const message = maybe({
  role: text,
  content: z
    .union([z.string(), z.array(z.unknown())])
    .nullable()
    .optional(),
  refusal: text,
  reasoning_content: text,
  tool_calls: toolCalls,
})
const chatAnswer = z.looseObject({
  id: text,
  object: text,
  created: number,
  model,
  choices: listOf(z.looseObject({ index: count, message, finish_reason: text })),
  service_tier: text,
  usage: chatUsage,
})
const chatFrame = z.looseObject({
  id: text,
  object: text,
  created: number,
  model: text,
  choices: listOf(z.looseObject({ index: count, delta: message, finish_reason: text })),
  usage: chatUsage,
})

const response = z.looseObject({
  id: text,
  object: text,
  created_at: number,
  status: text,
  model,
  output: listOf(
    z.looseObject({
      type: text,
      id: text,
      role: text,
      content: listOf(z.looseObject({ type: text, text })),
      summary: listOf(z.looseObject({ type: text, text })),
      name: text,
      arguments: text,
    }),
  ),
  service_tier: text,
  usage: maybe({
    input_tokens: count,
    output_tokens: count,
    total_tokens: count,
    input_tokens_details: maybe({ cached_tokens: count }),
    output_tokens_details: maybe({ reasoning_tokens: count }),
    cost_usd: costUsd,
  }),
})
const responseFrame = z.looseObject({
  type: text,
  sequence_number: count,
  delta: text,
  item: maybe({ type: text, id: text }),
  part: maybe({ type: text, text }),
  response: response.optional(),
})

const block = { type: text, text, thinking: text, id: text, name: text, input: z.unknown().optional() }
const messageUsage = maybe({
  input_tokens: count,
  output_tokens: count,
  cache_read_input_tokens: count,
  cache_creation_input_tokens: count,
  cache_creation: maybe({ ephemeral_5m_input_tokens: count, ephemeral_1h_input_tokens: count }),
  server_tool_use: maybe({ web_search_requests: count, web_fetch_requests: count }),
  service_tier: text,
  cost_usd: costUsd,
})
const anthropicMessage = {
  id: text,
  type: text,
  role: text,
  model,
  content: listOf(z.looseObject(block)),
  stop_reason: text,
  stop_sequence: text,
  usage: messageUsage,
}
const anthropicFrame = z.looseObject({
  type: text,
  index: count,
  message: maybe(anthropicMessage),
  content_block: maybe(block),
  delta: maybe({ type: text, text, thinking: text, partial_json: text, stop_reason: text }),
  usage: messageUsage,
})

const details = listOf(z.looseObject({ modality: text, tokenCount: count }))
const gemini = z.looseObject({
  candidates: listOf(
    z.looseObject({
      index: count,
      content: maybe({
        role: text,
        parts: listOf(
          z.looseObject({
            text,
            thought: z.boolean().nullable().optional(),
            functionCall: maybe({ name: text, args: z.unknown().optional() }),
            inlineData: maybe({ mimeType: text, data: text }),
          }),
        ),
      }),
      finishReason: text,
    }),
  ),
  promptFeedback: maybe({ blockReason: text }),
  modelVersion: text,
  usageMetadata: maybe({
    promptTokenCount: count,
    candidatesTokenCount: count,
    thoughtsTokenCount: count,
    toolUsePromptTokenCount: count,
    cachedContentTokenCount: count,
    totalTokenCount: count,
    promptTokensDetails: details,
    candidatesTokensDetails: details,
    cacheTokensDetails: details,
    cost_usd: costUsd,
  }),
})

const vector = z.looseObject({ values: z.array(z.number()).optional() })
const embeddingUsage = maybe({ promptTokenCount: count, totalTokenCount: count, cost_usd: costUsd })

type Replies = {
  readonly whole: z.ZodType
  /** The `data` of one frame of a stream. */
  readonly frame?: z.ZodType
}

export const REPLIES: Readonly<Record<ModelProtocol, Replies>> = {
  openai: { whole: chatAnswer, frame: chatFrame },
  openai_responses: { whole: response, frame: responseFrame },
  openai_embeddings: {
    whole: z.looseObject({
      object: text,
      model,
      data: listOf(z.looseObject({ index: count, embedding: z.union([z.array(z.number()), z.string()]).optional() })),
      usage: maybe({ prompt_tokens: count, total_tokens: count, cost_usd: costUsd }),
    }),
  },
  openai_images: {
    whole: z.looseObject({
      created: number,
      data: listOf(z.looseObject({ url: text, b64_json: text, revised_prompt: text })),
      usage: maybe({ input_tokens: count, output_tokens: count, total_tokens: count, cost_usd: costUsd }),
    }),
  },
  anthropic: { whole: z.looseObject(anthropicMessage), frame: anthropicFrame },
  anthropic_count_tokens: { whole: z.looseObject({ input_tokens: count }) },
  gemini: { whole: gemini },
  gemini_stream: { whole: gemini, frame: gemini },
  gemini_count_tokens: { whole: z.looseObject({ totalTokens: count, cachedContentTokenCount: count }) },
  gemini_embeddings: { whole: z.looseObject({ embedding: vector.optional(), usageMetadata: embeddingUsage }) },
  gemini_batch_embeddings: {
    whole: z.looseObject({ embeddings: z.array(vector).optional(), usageMetadata: embeddingUsage }),
  },
}

import type { ProtocolName } from './protocol.ts'

/** The members by which the upstreams of a protocol may limit output; none where a protocol has no limit to send. */
export const OUTPUT_LIMITS: Readonly<Record<ProtocolName, readonly string[]>> = {
  openai: ['max_completion_tokens', 'max_tokens'],
  anthropic: ['max_tokens'],
  gemini: ['maxOutputTokens', 'max_output_tokens'],
  openai_responses: ['max_output_tokens'],
  openai_embeddings: [],
  gemini_embeddings: [],
  openai_images: [],
  video: [],
}

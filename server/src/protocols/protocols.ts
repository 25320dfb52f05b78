import type { ModelOperation, ModelProtocol, TaskOperation } from '../catalogue/operation.ts'
import { anthropic, anthropicCount } from './anthropic.ts'
import { gemini, geminiCount, geminiStream } from './gemini.ts'
import { geminiBatchEmbeddings, geminiEmbeddings } from './gemini-embeddings.ts'
import { openai } from './openai.ts'
import { openaiEmbeddings } from './openai-embeddings.ts'
import { openaiImages } from './openai-images.ts'
import { openaiResponses } from './openai-responses.ts'
import type { Protocol, ProtocolName } from './protocol.ts'
import { VIDEO } from './video.ts'

/** What callers of each operation speak, and what the upstreams of their model have to. */
export const SPOKEN: Readonly<Record<ModelProtocol, Spoken>> = {
  openai: { by: 'openai', protocol: openai },
  openai_responses: { by: 'openai_responses', protocol: openaiResponses },
  openai_embeddings: { by: 'openai_embeddings', protocol: openaiEmbeddings },
  openai_images: { by: 'openai_images', protocol: openaiImages },
  anthropic: { by: 'anthropic', protocol: anthropic },
  anthropic_count_tokens: { by: 'anthropic', protocol: anthropicCount },
  gemini: { by: 'gemini', protocol: gemini },
  gemini_stream: { by: 'gemini', protocol: geminiStream },
  gemini_count_tokens: { by: 'gemini', protocol: geminiCount },
  gemini_embeddings: { by: 'gemini_embeddings', protocol: geminiEmbeddings },
  gemini_batch_embeddings: { by: 'gemini_embeddings', protocol: geminiBatchEmbeddings },
}

/** What upstreams of an operation's models have to speak. */
export function spokenBy({ protocol }: Pick<ModelOperation | TaskOperation, 'protocol'>): ProtocolName {
  return protocol === 'video' ? 'video' : SPOKEN[protocol].by
}

/** Where models of a protocol are served, as callers are told. */
export function pathOf(protocol: ProtocolName): string {
  return protocol === 'video' ? VIDEO.path : SPOKEN[protocol].protocol.path
}

/** What is asked below the base URL of an upstream that speaks it, for a model of some name. */
export function targetOf(protocol: ProtocolName): string {
  return protocol === 'video' ? VIDEO.createTarget : SPOKEN[protocol].protocol.target('model')
}

type Spoken = { readonly by: ProtocolName; readonly protocol: Protocol }

/** Those that cost nothing. */
export const FREE: ReadonlySet<ModelProtocol> = new Set(['anthropic_count_tokens', 'gemini_count_tokens'])

/** The headers that an upstream gets beside our credential: those of the caller that it has to see, and the defaults. */
export function headersFor(
  { passesOn, defaultHeaders }: Protocol,
  sent: Readonly<Record<string, string>>,
): Record<string, string> {
  const headers = { ...defaultHeaders }
  for (const header of passesOn) {
    const value = sent[header]
    if (value !== undefined) headers[header] = value
  }
  return headers
}

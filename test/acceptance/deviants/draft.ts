export const CHAT = [
  ...(['openai', 'openai stream', 'responses', 'responses stream'] as const),
  ...(['anthropic', 'anthropic stream', 'gemini', 'gemini stream'] as const),
] as const
export const OTHERS = [
  ...(['embeddings', 'vectors', 'pictures', 'rerank', 'traffic', 'comments', 'reseller', 'video'] as const),
] as const
/** What may be asked for. */
export type Kind = (typeof CHAT)[number] | (typeof OTHERS)[number]

export type Json = Readonly<Record<string, unknown>>

/** A request before it is written down. */
export type Draft = {
  readonly path: string
  readonly query: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Json | undefined
}

import { createReader, formOf, hasMedia, textOf, usageOf } from './gemini-reply.ts'
import { ask, askToCount, modelOf } from './gemini-request.ts'
import type { Protocol } from './protocol.ts'

export const gemini: Protocol = {
  modelOf,
  ask: (request, limits) => ask(request, limits, false),
  path: '/v1beta/models/{model}:generateContent',
  target: (upstreamModel) => `${placeOf(upstreamModel)}:generateContent`,
  credentialHeader: 'x-goog-api-key',
  passesOn: [],
  usageOf,
  formOf,
  textOf,
  hasMedia,
}

/** The same as a stream of events. */
export const geminiStream: Protocol = {
  ...gemini,
  ask: (request, limits) => ask(request, limits, true),
  path: '/v1beta/models/{model}:streamGenerateContent',
  target: (upstreamModel) => `${placeOf(upstreamModel)}:streamGenerateContent?alt=sse`,
  stream: { createReader, errorFrame: (body) => `data: ${body}\n\n` },
}

/** Counts the tokens of a conversation without continuing it. It costs nothing. */
export const geminiCount: Protocol = {
  ...gemini,
  ask: askToCount,
  path: '/v1beta/models/{model}:countTokens',
  target: (upstreamModel) => `${placeOf(upstreamModel)}:countTokens`,
  usageOf: () => ({ input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }),
  textOf: () => '',
}

/** Names have slashes, which stay; a question mark or a number sign would end the path. */
export function placeOf(upstreamModel: string): string {
  return `/v1beta/models/${encodeURI(upstreamModel).replace(/[?#]/g, encodeURIComponent)}`
}

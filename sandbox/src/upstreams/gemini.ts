import type { JsonObject } from '../json.ts'
import { isObject } from '../json.ts'
import type { Knobs, Reply, Upstream } from '../upstream.ts'
import type { Counted, Dialect } from './models/dialect.ts'
import { bodyWithExtras } from './models/extras.ts'
import { geminiBody, geminiFrames, geminiUsage } from './models/gemini-answer.ts'
import { geminiEmbeddingsFor } from './models/gemini-embeddings.ts'
import { type GeminiQuestion, geminiQuestion } from './models/gemini-question.ts'
import { MODEL_NAMES } from './models/magic-models.ts'
import { replyTo, useCache } from './models/reply.ts'
import { segmentTokens } from './models/tokens.ts'
import { wholeReply } from './models/whole-reply.ts'

const MODELS = '/v1beta/models'
const GENERATES = ['generateContent', 'streamGenerateContent', 'countTokens', 'embedContent', 'batchEmbedContents']
const ACTION = new RegExp(`^/v1beta/models/(.+):(${GENERATES.join('|')})$`)

export const gemini: Upstream = {
  name: 'gemini',
  methodOf: (path) => (path === MODELS ? 'GET' : 'POST'),
  credentials: [
    { header: 'x-goog-api-key', scheme: 'plain' },
    { header: 'authorization', scheme: 'bearer' },
  ],
  has: (path) => path === MODELS || ACTION.test(path),
  answer(asked) {
    const { path, parameters, deviance } = asked
    const body = bodyWithExtras(asked.body, deviance)
    if (path === MODELS) return { status: 200, body: MODEL_LIST, tokens: null, isBilled: false }
    const [, name = '', action] = ACTION.exec(path) ?? []
    if (action === 'embedContent' || action === 'batchEmbedContents') {
      const made = geminiEmbeddingsFor(asked, decoded(name), action === 'batchEmbedContents')
      return 'wrong' in made ? refused(made.wrong) : wholeReply(made, WHOLE, asked)
    }
    const isStreamed = action === 'streamGenerateContent'
    const counted = action === 'countTokens' && isObject(body) ? requestIn(body) : body
    const question = geminiQuestion(counted, decoded(name), isStreamed, deviance)
    if ('wrong' in question) return refused(question.wrong)
    if (action === 'countTokens') return count(segmentTokens(question.segments))
    if (isStreamed && parameters.get('alt') !== 'sse') return refused('The sandbox streams with alt=sse only.')
    // What goes into the cache costs nothing, and is not told.
    const cacheOf = () => ({
      ...useCache(asked, `gemini ${question.model}`, question.segments, true),
      write5mTokens: 0,
    })
    return replyTo(question, cacheOf, dialectFor(question), asked)
  },
  errorBody,
}

function dialectFor({ showsThoughts }: GeminiQuestion): Dialect {
  return {
    overloadedStatus: 503,
    showsReasoning: showsThoughts,
    errorBody,
    report,
    body: (answer) => geminiBody(answer, showsThoughts),
    frames: (answer) => geminiFrames(answer, showsThoughts),
    errorFrame: () => `data: ${JSON.stringify(errorBody(503, 'The model is overloaded.'))}\r\n\r\n`,
    garbageFrame: 'data: {"candidates": oops\r\n\r\n',
  }
}

/** What an answer without a conversation has of it. */
const WHOLE = { overloadedStatus: 503, errorBody, usageName: 'usageMetadata' } as const

const MODEL_LIST: JsonObject = {
  models: MODEL_NAMES.map((name) => ({
    name: `models/${name}`,
    version: '1',
    displayName: name,
    inputTokenLimit: 1_000_000,
    outputTokenLimit: 1_000_000,
    supportedGenerationMethods: GENERATES,
  })),
}

/** What is counted may be a request for content as it would be sent. */
function requestIn(body: JsonObject): unknown {
  return body.generateContentRequest ?? body.generate_content_request ?? body
}

/** Some clients encode slashes, and some do not. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

function count(tokens: number): Reply {
  const remade = ({ inputTokens = tokens }: Knobs): Reply => ({
    status: 200,
    body: { totalTokens: inputTokens, promptTokensDetails: [{ modality: 'TEXT', tokenCount: inputTokens }] },
    tokens: null,
    isBilled: false,
  })
  return { ...remade({}), remade }
}

function refused(message: string): Reply {
  return { status: 400, body: errorBody(400, message), tokens: 0, isBilled: false }
}

const STATUSES: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  402: 'RESOURCE_EXHAUSTED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

function errorBody(status: number, message: string): JsonObject {
  const name = STATUSES[status] ?? (status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT')
  return { error: { code: status, message, status: name } }
}

/** What came out of the cache is part of the prompt's tokens; of what went into it the vendor says nothing. */
function report({ inputTokens: tokens, outputTokens, reasoningTokens, ...counted }: Counted, knobs: Knobs) {
  const { audioIn = counted.audioTokens, imageIn, audioOut, imageOut } = knobs
  const { tier } = counted
  const details = {
    promptTokensDetails: detailsOf(audioIn, imageIn),
    candidatesTokensDetails: detailsOf(audioOut, imageOut),
  }
  const inputTokens = knobs.inputTokens ?? tokens
  const cached = knobs.cacheRead ?? counted.cache.readTokens
  const input = {
    promptTokenCount: inputTokens,
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    ...Object.fromEntries(Object.entries(details).filter(([, list]) => list.length > 0)),
    ...(tier !== undefined && { serviceTier: tier }),
  }
  return { usage: geminiUsage(input, outputTokens - reasoningTokens, reasoningTokens), inputTokens }
}

/** Of what is no text; zeros are left out. */
function detailsOf(audio = 0, image = 0): readonly JsonObject[] {
  const counts = [
    ['AUDIO', audio],
    ['IMAGE', image],
  ] as const
  return counts.filter(([, tokenCount]) => tokenCount > 0).map(([modality, tokenCount]) => ({ modality, tokenCount }))
}

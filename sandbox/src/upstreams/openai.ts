import type { Deviance } from '../deviants.ts'
import type { JsonObject } from '../json.ts'
import { hashOf, Random } from '../random.ts'
import type { Asked, Knobs, Reply, Upstream } from '../upstream.ts'
import type { Counted, Dialect } from './models/dialect.ts'
import { bodyWithExtras } from './models/extras.ts'
import { MODEL_NAMES } from './models/magic-models.ts'
import { openaiBody, openaiFrames } from './models/openai-answer.ts'
import { embeddingsFor } from './models/openai-embeddings.ts'
import { imagesFor } from './models/openai-images.ts'
import { openaiQuestion } from './models/openai-question.ts'
import type { Wrong } from './models/question.ts'
import { replyTo, useCache } from './models/reply.ts'
import { eventText, responsesBody, responsesFrames } from './models/responses-answer.ts'
import { responsesQuestion } from './models/responses-question.ts'
import { type Made, wholeReply } from './models/whole-reply.ts'

const CREATED = Date.UTC(2026, 0, 1) / 1000
const COMPLETIONS = '/v1/chat/completions'
const RESPONSES = '/v1/responses'
const EMBEDDINGS = '/v1/embeddings'
const IMAGES = '/v1/images/generations'
const MODELS = '/v1/models'
const PATHS = [COMPLETIONS, RESPONSES, EMBEDDINGS, IMAGES, MODELS]

const dialect: Dialect = {
  overloadedStatus: 503,
  showsReasoning: false,
  errorBody,
  report,
  body: openaiBody,
  frames: openaiFrames,
  errorFrame: () =>
    `data: ${JSON.stringify(errorBody(500, 'The server had an error in the middle of its answer.'))}\n\n`,
  garbageFrame: 'data: {"id": oops\n\n',
}

/** The same vendor's other protocol for conversations. */
const responsesDialect: Dialect = {
  ...dialect,
  report: reportResponse,
  body: responsesBody,
  frames: responsesFrames,
  errorFrame: () =>
    eventText('error', {
      ...errorBody(500, 'The server had an error in the middle of its answer.'),
      sequence_number: 0,
    }),
  garbageFrame: 'event: response.output_text.delta\ndata: {"type": oops\n\n',
}

export const openai: Upstream = {
  name: 'openai',
  methodOf: (path) => (path === MODELS ? 'GET' : 'POST'),
  credentials: [{ header: 'authorization', scheme: 'bearer' }],
  has: (path) => PATHS.includes(path),
  answer(asked) {
    if (asked.path === MODELS) return { status: 200, body: MODEL_LIST, tokens: null, isBilled: false }
    if (asked.path === EMBEDDINGS) return answerWhole(embeddingsFor(asked), asked)
    if (asked.path === IMAGES) return answerWhole(imagesFor(asked), asked)
    const isResponse = asked.path === RESPONSES
    const questionOf = isResponse ? responsesQuestion : openaiQuestion
    const question = questionOf(bodyWithExtras(asked.body, asked.deviance), asked.deviance)
    if ('wrong' in question) return refused(question)
    const { cacheKey: key = '' } = question
    const cacheOf = () => {
      const use = useCache(asked, `openai ${question.model} ${key}`, question.segments, true)
      return key === '' ? { ...use, write5mTokens: 0 } : use
    }
    return replyTo(question, cacheOf, isResponse ? responsesDialect : dialect, asked)
  },
  errorBody,
  headersOf: (asked) => [['x-request-id', `req_${requestRandom(asked).hex(32)}`]],
}

const MODEL_LIST: JsonObject = {
  object: 'list',
  data: MODEL_NAMES.map((id) => ({ id, object: 'model', created: CREATED, owned_by: 'sandbox' })),
}

function answerWhole(made: Made | Wrong, asked: Asked): Reply {
  return 'wrong' in made ? refused(made) : wholeReply(made, dialect, asked)
}

function requestRandom({ seed, path, bodySha256 }: Asked): Random {
  return new Random(hashOf(seed, 'openai', path, bodySha256))
}

function refused({ wrong, field }: Wrong): Reply {
  const error = { message: wrong, type: 'invalid_request_error', param: field, code: null }
  return { status: 400, body: { error }, tokens: 0, isBilled: false }
}

function errorBody(status: number, message: string): JsonObject {
  const [type, code] = KINDS[status] ?? (status >= 500 ? ['server_error', null] : ['invalid_request_error', null])
  return { error: { message, type, param: null, code } }
}

const KINDS: Readonly<Record<number, readonly [type: string, code: string | null]>> = {
  401: ['invalid_request_error', 'invalid_api_key'],
  404: ['invalid_request_error', 'model_not_found'],
  429: ['rate_limit_error', 'rate_limit_exceeded'],
  503: ['service_unavailable_error', 'server_is_overloaded'],
}

/** What came out of the cache and what went into it are part of the prompt's tokens. */
function report(counted: Counted, knobs: Knobs, { countsReasoningApart }: Deviance) {
  const inputTokens = knobs.inputTokens ?? counted.inputTokens
  const apart = countsReasoningApart ? counted.reasoningTokens : 0
  const usage = {
    prompt_tokens: inputTokens,
    completion_tokens: counted.outputTokens - apart,
    total_tokens: inputTokens + counted.outputTokens,
    prompt_tokens_details: {
      cached_tokens: knobs.cacheRead ?? counted.cache.readTokens,
      cache_write_tokens: knobs.cacheWrite ?? counted.cache.write5mTokens,
      audio_tokens: knobs.audioIn ?? counted.audioTokens,
      ...(knobs.imageIn !== undefined && { image_tokens: knobs.imageIn }),
    },
    completion_tokens_details: {
      reasoning_tokens: counted.reasoningTokens,
      audio_tokens: knobs.audioOut ?? 0,
      ...(knobs.imageOut !== undefined && { image_tokens: knobs.imageOut }),
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
  return { usage, inputTokens }
}

/** The same figures under other names. */
function reportResponse(counted: Counted, knobs: Knobs, deviance: Deviance) {
  const { usage, inputTokens } = report(counted, knobs, deviance)
  const { cached_tokens, cache_write_tokens } = usage.prompt_tokens_details
  const { audioIn, imageIn, audioOut, imageOut } = knobs
  return {
    usage: {
      input_tokens: usage.prompt_tokens,
      input_tokens_details: { cached_tokens, cache_write_tokens, ...mediaTokens(audioIn, imageIn) },
      output_tokens: usage.completion_tokens,
      output_tokens_details: {
        reasoning_tokens: usage.completion_tokens_details.reasoning_tokens,
        ...mediaTokens(audioOut, imageOut),
      },
      total_tokens: usage.total_tokens,
    },
    inputTokens,
  }
}

function mediaTokens(audio: number | undefined, image: number | undefined): JsonObject {
  return { ...(audio !== undefined && { audio_tokens: audio }), ...(image !== undefined && { image_tokens: image }) }
}

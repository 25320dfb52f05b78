import { isObject, type JsonObject } from '../json.ts'
import { hashOf, Random } from '../random.ts'
import type { Asked, Knobs, Reply, Upstream } from '../upstream.ts'
import { anthropicBody, anthropicFrames } from './models/anthropic-answer.ts'
import { anthropicQuestion } from './models/anthropic-question.ts'
import type { Counted, Dialect } from './models/dialect.ts'
import { bodyWithExtras } from './models/extras.ts'
import { MODEL_NAMES } from './models/magic-models.ts'
import { callsOf, replyTo, useCache, writesOf } from './models/reply.ts'
import { segmentTokens } from './models/tokens.ts'

const MESSAGES = '/v1/messages'
const COUNT = '/v1/messages/count_tokens'
const MODELS = '/v1/models'
const VERSION = 'anthropic-version'
/** From this version on the vendor refuses these, even at their defaults. */
const NEW_VERSION = '2026-10-21'
const GONE = ['temperature', 'top_p', 'top_k']

const dialect: Dialect = {
  overloadedStatus: 529,
  showsReasoning: true,
  errorBody,
  report,
  body: anthropicBody,
  frames: anthropicFrames,
  errorFrame: (asked) => `event: error\ndata: ${JSON.stringify(errorBody(529, 'Overloaded', asked))}\n\n`,
  garbageFrame: 'event: content_block_delta\ndata: {"type": oops\n\n',
}

export const anthropic: Upstream = {
  name: 'anthropic',
  methodOf: (path) => (path === MODELS ? 'GET' : 'POST'),
  credentials: [
    { header: 'x-api-key', scheme: 'plain' },
    { header: 'authorization', scheme: 'bearer' },
  ],
  has: (path) => path === MESSAGES || path === COUNT || path === MODELS,
  answer(asked) {
    const { path, headers, deviance } = asked
    const body = bodyWithExtras(asked.body, deviance)
    if (!headers[VERSION]) return refused(`${VERSION}: header is required`, asked)
    if (path === MODELS) return { status: 200, body: MODEL_LIST, tokens: null, isBilled: false }
    const gone = headers[VERSION] === NEW_VERSION && isObject(body) ? GONE.find((field) => field in body) : undefined
    if (gone !== undefined) return refused(`${gone}: Extra inputs are not permitted`, asked)
    const question = anthropicQuestion(body, path === COUNT, deviance)
    if ('wrong' in question) return refused(question.wrong, asked)
    if (path === COUNT) return count(segmentTokens(question.segments))
    const cacheOf = () => useCache(asked, `anthropic ${question.model}`, question.segments, false)
    return replyTo(question, cacheOf, dialect, asked)
  },
  errorBody,
  headersOf: (asked) => [['request-id', requestId(asked)]],
}

const MODEL_LIST: JsonObject = {
  data: MODEL_NAMES.map((id) => ({ type: 'model', id, display_name: id, created_at: '2026-01-01T00:00:00Z' })),
  has_more: false,
  first_id: MODEL_NAMES[0],
  last_id: MODEL_NAMES.at(-1),
}

function count(tokens: number): Reply {
  const remade = ({ inputTokens = tokens }: Knobs): Reply => ({
    status: 200,
    body: { input_tokens: inputTokens },
    tokens: null,
    isBilled: false,
  })
  return { ...remade({}), remade }
}

function refused(message: string, asked: Asked): Reply {
  return { status: 400, body: errorBody(400, message, asked), tokens: 0, isBilled: false }
}

const KINDS: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

function errorBody(status: number, message: string, asked: Asked): JsonObject {
  const type = KINDS[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
  return { type: 'error', error: { type, message }, request_id: requestId(asked) }
}

function requestId({ seed, path, bodySha256 }: Asked): string {
  return `req_${new Random(hashOf(seed, 'anthropic', path, bodySha256)).hex(24)}`
}

/** What came out of the cache and what went into it stand beside the input tokens, not in them. */
function report({ inputTokens, outputTokens, reasoningTokens, cache, webSearches, tier }: Counted, knobs: Knobs) {
  const read = knobs.cacheRead ?? cache.readTokens
  const { write5m, write1h } = writesOf(cache, knobs)
  const { web_search: searches = 0, web_fetch: fetches = 0 } = callsOf(webSearches, knobs)
  const rest = inputTokens - cache.readTokens - cache.write5mTokens - cache.write1hTokens
  const usage = {
    input_tokens: knobs.inputTokens ?? rest,
    cache_creation_input_tokens: write5m + write1h,
    cache_read_input_tokens: read,
    cache_creation: { ephemeral_5m_input_tokens: write5m, ephemeral_1h_input_tokens: write1h },
    output_tokens: outputTokens,
    output_tokens_details: { thinking_tokens: reasoningTokens },
    ...(searches + fetches > 0 && {
      server_tool_use: { web_search_requests: searches, ...(fetches > 0 && { web_fetch_requests: fetches }) },
    }),
    service_tier: tier ?? 'standard',
  }
  return { usage, inputTokens: usage.input_tokens + write5m + write1h + read }
}

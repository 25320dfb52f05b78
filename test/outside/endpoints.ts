import type { Dialect } from './probe.ts'
import type { Request } from './stack.ts'

/** A paid endpoint of the specification, with a call of it that works. */
export type Endpoint = Request & {
  readonly name: string
  /** Its id as an operation. */
  readonly operation: string
  readonly dialect: Dialect
  /** Whom it asks, in the sandbox. */
  readonly upstream: string
  /** A scope that allows nothing of it. */
  readonly otherScope: string
  /** What one successful call costs, where the specification says so. */
  readonly costUsd?: string
}

const said = [{ role: 'user', content: 'Hello' }]
const model = 'sandbox/echo'
const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }]

export const MODELS: readonly Endpoint[] = [
  {
    name: 'POST /v1/chat/completions',
    ...of('chat_completions', 'openai', 'openai'),
    path: '/v1/chat/completions',
    body: { model, max_tokens: 16, messages: said },
  },
  {
    name: 'POST /v1/responses',
    ...of('responses', 'openai', 'openai'),
    path: '/v1/responses',
    body: { model, max_output_tokens: 16, input: 'Hello' },
  },
  {
    name: 'POST /v1/messages',
    ...of('messages', 'anthropic', 'anthropic'),
    path: '/v1/messages',
    body: { model, max_tokens: 16, messages: said },
  },
  {
    name: 'POST /v1beta/models/*:generateContent',
    ...of('generate_content', 'gemini', 'gemini'),
    path: `/v1beta/models/${model}:generateContent`,
    body: { contents, generationConfig: { maxOutputTokens: 16 } },
  },
]

export const OTHER_MODELS: readonly Endpoint[] = [
  {
    name: 'POST /v1/embeddings',
    ...of('embeddings', 'openai', 'openai'),
    path: '/v1/embeddings',
    body: { model: 'sandbox/embedding', input: 'Hello' },
  },
  {
    name: 'POST /v1/images/generations',
    ...of('image_generations', 'openai', 'openai'),
    path: '/v1/images/generations',
    body: { model: 'sandbox/image', prompt: 'a fox', n: 1, size: '1024x1024', quality: 'low' },
  },
  {
    name: 'POST /v1/deep-research/search',
    ...of('deep_research', 'openai', 'deep_research'),
    path: '/v1/deep-research/search',
    body: { query: 'why is the sea salty' },
  },
  {
    name: 'POST /v1/rerank',
    ...of('rerank', 'openai', 'rerank'),
    path: '/v1/rerank',
    body: { query: 'a quick animal', documents: ['a snail', 'a fox'] },
  },
]

export const DATA: readonly Endpoint[] = [
  data('post_comments', 'comments', '/social_b/post/comments?url=https%3A%2F%2Fexample.com%2Fp%2F1', '0.001880000'),
  data(
    'creator_search_insights_videos',
    'reseller',
    '/reseller/social_c/app/v3/fetch_creator_search_insights_videos?keyword=cats',
    '0.001450000',
  ),
  data(
    'search_word_suggestion',
    'reseller',
    '/reseller/social_c/shop/web/fetch_search_word_suggestion_v2?search_word=cats',
    '0.001450000',
  ),
  data('tag_detail', 'reseller', '/reseller/social_c/web/fetch_tag_detail?tag_name=cats', '0.001450000'),
  data('user_stories', 'reseller', '/reseller/social_b/v2/fetch_user_stories?username=cats', '0.002900000'),
  data('financial_metrics_snapshot', 'financial', '/financial/financial-metrics/snapshot?ticker=ABC'),
  data('tweet_quotes', 'quotes', '/social_a/tweet/quotes?tweetId=123'),
  data('website_traffic_engagement', 'traffic', '/traffic_analytics/website/traffic-engagement?domain=example.com'),
]

export const VIDEO: Endpoint = {
  name: 'POST /apis/v1/services/aigc/video-generation/video-synthesis',
  ...of('video_synthesis', 'data', 'video'),
  path: '/apis/v1/services/aigc/video-generation/video-synthesis',
  headers: { 'x-farebox-async': 'enable' },
  body: { model: 'sandbox/video', input: { prompt: 'a fox in the snow' } },
}

/** Those that answer in one response. */
export const SYNCHRONOUS = [...MODELS, ...OTHER_MODELS, ...DATA]
export const ENDPOINTS = [...SYNCHRONOUS, VIDEO]
export const TRAFFIC = 'website_traffic_engagement'

function of(operation: string, dialect: Dialect, upstream: string) {
  return { operation, dialect, upstream, otherScope: operation === 'tag_detail' ? 'rerank' : 'tag_detail' }
}

function data(operation: string, upstream: string, path: string, costUsd?: string): Endpoint {
  const name = `GET /apis/v1${path.split('?')[0]}`
  return {
    name,
    ...of(operation, 'data', upstream),
    path: `/apis/v1${path}`,
    ...(costUsd !== undefined && { costUsd }),
  }
}

import type { Random } from '../../../sandbox/src/random.ts'
import { attacked } from './attacks.ts'
import { CHAT, type Draft, type Json, type Kind, OTHERS } from './draft.ts'
import { OUTPUT_MOST, VENDORS } from './vendors.ts'

/** A request as it goes over the wire, by somebody who may want more than is paid for. */
export type Request = {
  readonly kind: Kind
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  /** Whether it was changed to get more than it pays for. */
  readonly attack: string | undefined
  readonly leaving: Leaving
}

/** When its caller leaves, if at all: after so many bytes of the answer, or so long after asking. */
export type Leaving = { readonly atByte?: number; readonly afterMs?: number }

const LIKELIHOOD = { chat: 0.7, attack: 0.45, leaving: 0.12, endless: 0.01 }
/** In tokens, what a vendor generates that nobody stops, so slowly that what is under way is little. */
const ENDLESS_TOKENS = 1_000_000
const ENDLESS = `sandbox:output-tokens=${ENDLESS_TOKENS} sandbox:delta-bytes=100 sandbox:delta-ms=1`

export function makeRequest(random: Random): Request {
  const kind = random.chance(LIKELIHOOD.chat) ? random.pick(CHAT) : random.pick(OTHERS)
  const draft = DRAFTS[kind](random, modelsOf(random.pick(VENDORS).name))
  const attack = random.chance(LIKELIHOOD.attack) ? attacked(kind, draft, random) : undefined
  const { path, query, headers, body } = attack?.draft ?? draft
  return {
    kind,
    method: body === undefined ? 'GET' : 'POST',
    path: query === '' ? path : `${path}?${query}`,
    headers,
    body: body && endingOf(kind, attack?.text ?? JSON.stringify(body)),
    attack: attack?.name,
    leaving: leavingOf(kind, random),
  }
}

/** An attack may make a whole answer of a stream, and no model's whole answer is longer than its longest. */
function endingOf(kind: Kind, body: string): string {
  const isStream = kind === 'gemini stream' || body.includes('"stream":true')
  return isStream ? body : body.replace(ENDLESS, `sandbox:output-tokens=${OUTPUT_MOST}`)
}

/** A task has begun when it is answered, so that there is nothing to leave. */
function leavingOf(kind: Kind, random: Random): Leaving {
  if (kind === 'video' || !random.chance(LIKELIHOOD.leaving)) return {}
  return random.chance(0.5) ? { atByte: random.between(0, 4_000) } : { afterMs: random.between(0, 60) }
}

type Models = { readonly of: (kind: string) => string; readonly name: string }
const modelsOf = (name: string): Models => ({ name, of: (kind) => `${name}/${kind}` })

const DRAFTS: Readonly<Record<Kind, (random: Random, models: Models) => Draft>> = {
  openai: (random, models) => chat(random, models, false),
  'openai stream': (random, models) => chat(random, models, true),
  responses: (random, models) => responses(random, models, false),
  'responses stream': (random, models) => responses(random, models, true),
  anthropic: (random, models) => messages(random, models, false),
  'anthropic stream': (random, models) => messages(random, models, true),
  gemini: (random, models) => contents(random, models, false),
  'gemini stream': (random, models) => contents(random, models, true),
  embeddings: (random, { of }) =>
    post('/v1/embeddings', {
      model: of('embedding'),
      input: random.chance(0.5) ? prose(random) : Array.from({ length: random.between(1, 20) }, () => prose(random)),
    }),
  vectors: (random, { of }) => {
    const one = () => ({
      content: { parts: Array.from({ length: random.between(1, 3) }, () => ({ text: prose(random) })) },
      ...some(random, 0.3, { taskType: 'RETRIEVAL_DOCUMENT', title: prose(random) }),
      ...some(random, 0.3, { outputDimensionality: random.between(1, 64) }),
    })
    const many = () => ({ requests: Array.from({ length: random.between(1, 20) }, one) })
    const path = `/v1beta/models/${of('vector')}`
    return random.chance(0.5) ? post(`${path}:embedContent`, one()) : post(`${path}:batchEmbedContents`, many())
  },
  pictures: (random, { of }) =>
    post('/v1/images/generations', {
      model: of(random.pick(['picture', 'picture-by-token'])),
      prompt: prose(random),
      ...some(random, 0.5, { n: random.between(1, 10) }),
      ...some(random, 0.6, random.pick(PICTURES)),
    }),
  rerank: (random) =>
    post('/v1/rerank', {
      query: prose(random) + silence(random),
      documents: Array.from({ length: random.between(1, 30) }, () => prose(random)),
      ...some(random, 0.3, { model: 'rerank' }),
      ...some(random, 0.4, { instruction: prose(random) }),
      ...some(random, 0.3, { top_n: random.between(1, 5) }),
    }),
  traffic: (random) => get('/apis/v1/traffic_analytics/website/traffic-engagement', trafficQuery(random)),
  comments: () => get('/apis/v1/social_b/post/comments', { url: 'https://social-b.invalid/p/1' }),
  reseller: (random) =>
    random.chance(0.5)
      ? get('/apis/v1/reseller/social_c/web/fetch_tag_detail', { tag_name: 'cats' })
      : get('/apis/v1/reseller/social_b/v2/fetch_user_stories', { username: 'cats' }),
  video: (random, { of }) => ({
    ...post('/apis/v1/services/aigc/video-generation/video-synthesis', {
      model: of('video'),
      input: { prompt: 'a fox sandbox:pending-ms=0 sandbox:running-ms=0' },
      parameters: {
        ...some(random, 0.7, { duration: random.between(1, 15) }),
        ...some(random, 0.6, random.pick(SIZES)),
        ...some(random, 0.3, { n: random.between(1, 4) }),
      },
    }),
    headers: { 'x-farebox-async': 'enable' },
  }),
}

const PICTURES: readonly [Json, ...Json[]] = [
  { size: '1024x1024', quality: 'low' },
  { size: '1024x1024', quality: 'high' },
  { size: '1536x1024', quality: 'low' },
  { size: '1536x1024', quality: 'high' },
  { size: 'auto', quality: 'auto' },
  { size: '1024x1024' },
]
const SIZES: readonly [Json, ...Json[]] = [
  { resolution: '480P' },
  { resolution: '720P' },
  { resolution: '1080P' },
  { size: '1280*720' },
  { size: '832*480' },
  { size: '1920*1080' },
]
const METRICS = ['visits', 'unique_visitors', 'page_views', 'bounce_rate', 'pages_per_visit'] as const

function trafficQuery(random: Random): Readonly<Record<string, string>> {
  const metrics = METRICS.filter(() => random.chance(0.4)).join(',')
  const [start, end] = [random.between(1, 6), random.between(6, 12)].map((month) => String(month).padStart(2, '0'))
  return {
    domain: 'example.com',
    ...(metrics !== '' && { metrics }),
    ...(random.chance(0.6) && { start_date: `2026-${start}`, end_date: `2026-${end}` }),
  }
}

function chat(random: Random, { of }: Models, stream: boolean): Draft {
  const system = { role: 'system', content: prose(random) }
  return post('/v1/chat/completions', {
    model: of('chat'),
    messages: [...(random.chance(0.3) ? [system] : []), { role: 'user', content: told(random, stream) }],
    ...(stream && { stream: true }),
    ...(stream && random.chance(0.3) && { stream_options: { include_usage: true } }),
    ...limitsOf(random, ['max_tokens', 'max_completion_tokens']),
    ...some(random, 0.15, { n: random.between(2, 5) }),
    ...some(random, 0.15, { tools: [FUNCTION] }),
    ...some(random, 0.15, { reasoning_effort: random.pick(['minimal', 'low', 'medium', 'high']) }),
    ...some(random, 0.15, { prompt_cache_key: `key ${random.between(1, 5)}` }),
    ...some(random, 0.1, { metadata: { Model: 'a', model: 'b', max_tokens: '9' } }),
  })
}

const PARAMETERS = { type: 'object', properties: { city: { type: 'string' }, City: { type: 'string' } } }
const FUNCTION = { type: 'function', function: { name: 'lookup', description: 'Looks it up.', parameters: PARAMETERS } }

function responses(random: Random, { of }: Models, stream: boolean): Draft {
  const said = told(random, stream)
  const { name, ...declared } = FUNCTION.function
  return post('/v1/responses', {
    model: of('chat'),
    input: random.chance(0.5) ? said : [{ role: 'user', content: [{ type: 'input_text', text: said }] }],
    ...(stream && { stream: true }),
    ...limitsOf(random, ['max_output_tokens']),
    ...some(random, 0.3, { instructions: prose(random) }),
    ...some(random, 0.3, { store: false }),
    ...some(random, 0.15, { tools: [{ type: 'function', name, ...declared }] }),
    ...some(random, 0.15, { tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'custom', name }] }] }),
    ...some(random, 0.2, { reasoning: { effort: random.pick(['minimal', 'low', 'medium', 'high']), summary: 'auto' } }),
    ...some(random, 0.2, { include: ['reasoning.encrypted_content'] }),
    ...some(random, 0.15, { prompt_cache_key: `key ${random.between(1, 5)}` }),
    ...some(random, 0.1, { metadata: { Model: 'a', model: 'b', max_output_tokens: '9' } }),
  })
}

function messages(random: Random, { of }: Models, stream: boolean): Draft {
  const cached = { type: 'text', text: prose(random), cache_control: { type: 'ephemeral' } }
  const limit = limitsOf(random, ['max_tokens'])
  const room = Number(limit.max_tokens ?? 0)
  return post('/v1/messages', {
    model: of('chat'),
    messages: [{ role: 'user', content: told(random, stream) }],
    ...(stream && { stream: true }),
    ...limit,
    ...some(random, 0.25, { system: [cached] }),
    ...some(random, 0.15, { tools: [{ name: 'lookup', input_schema: PARAMETERS }] }),
    ...(room > 1_100 && random.chance(0.5) && { thinking: { type: 'enabled', budget_tokens: 1_024 } }),
  })
}

function contents(random: Random, { of }: Models, stream: boolean): Draft {
  const method = stream ? 'streamGenerateContent' : 'generateContent'
  const draft = post(`/v1beta/models/${of('chat')}:${method}`, {
    contents: [{ role: 'user', parts: [{ text: told(random, stream) }] }],
    generationConfig: {
      ...limitsOf(random, ['maxOutputTokens']),
      ...(!stream && random.chance(0.2) && { candidateCount: random.between(2, 4) }),
      ...some(random, 0.2, { thinkingConfig: { thinkingBudget: random.between(1, 100), includeThoughts: true } }),
    },
    ...some(random, 0.15, { tools: [{ functionDeclarations: [{ name: 'lookup', parameters: { type: 'OBJECT' } }] }] }),
  })
  return { ...draft, query: stream ? 'alt=sse' : '' }
}

/** None, one or all of them, mostly far below what the vendor would say. */
function limitsOf(random: Random, names: readonly [string, ...string[]]): Json {
  const dice = random.fraction()
  const limit = () => random.pick([random.between(1, 40), random.between(40, 400), random.between(400, 2_000)])
  if (dice < 0.2) return {}
  if (dice < 0.85) return { [random.pick(names)]: limit() }
  return Object.fromEntries(names.map((name) => [name, limit()]))
}

/** What is said, and how long the vendor would go on by itself. */
function told(random: Random, stream: boolean): string {
  if (stream && random.chance(LIKELIHOOD.endless)) return `${prose(random)} ${ENDLESS}`
  if (random.chance(0.2)) return prose(random) + silence(random)
  const most = random.pick([200, 1_000, OUTPUT_MOST])
  const pieces = stream ? ` sandbox:delta-bytes=${random.pick([8, 50, 400])}` : ''
  const pace = stream && random.chance(0.15) ? ' sandbox:delta-ms=1 sandbox:delta-bytes=400' : ''
  return `${prose(random)} sandbox:output-tokens=${random.between(1, most)}${pieces}${pace}`
}

const WORDS = ['fox', 'snow', 'Größe', '東京', 'why', 'a', 'the', 'sea', 'is', 'salty', '🙂'] as const
const prose = (random: Random): string =>
  Array.from({ length: random.between(1, 30) }, () => random.pick(WORDS)).join(' ')

/** Now and then the vendor does not say what was used. */
const silence = (random: Random): string => (random.chance(0.2) ? ' sandbox:no-usage' : '')

const some = (random: Random, likelihood: number, members: Json): Json => (random.chance(likelihood) ? members : {})

const post = (path: string, body: Json): Draft => ({ path, query: '', headers: {}, body })
const get = (path: string, query: Readonly<Record<string, string>>): Draft => ({
  ...{ path, query: new URLSearchParams(query).toString(), headers: {}, body: undefined },
})

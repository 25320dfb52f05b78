import { creditsBill } from '../bill.ts'
import type { JsonObject } from '../json.ts'
import { hashOf, Random } from '../random.ts'
import type { Asked, Reply, Upstream } from '../upstream.ts'

type Endpoint = {
  readonly path: RegExp
  /** One of these has to be given. */
  readonly needs: readonly [string, ...string[]]
  readonly data: (parameters: URLSearchParams, random: Random) => JsonObject
}

const TIME_ZONE = 'America/Los_Angeles'
const MOST_ITEMS = 50

/** The platform's segment is whatever word the caller sends. */
const ENDPOINTS: readonly Endpoint[] = [
  { path: /^\/api\/v1\/[^/]+\/app\/v3\/fetch_creator_search_insights_videos$/, needs: ['keyword'], data: videos },
  {
    path: /^\/api\/v1\/[^/]+\/shop\/web\/fetch_search_word_suggestion_v2$/,
    needs: ['search_word'],
    data: suggestions,
  },
  { path: /^\/api\/v1\/[^/]+\/web\/fetch_tag_detail$/, needs: ['tag_name'], data: tag },
  { path: /^\/api\/v1\/[^/]+\/v2\/fetch_user_stories$/, needs: ['username', 'user_id'], data: stories },
]

export const reseller: Upstream = {
  name: 'reseller',
  methodOf: () => 'GET',
  credentials: [{ header: 'authorization', scheme: 'bearer' }],
  has: (path) => endpointAt(path) !== undefined,
  answer(asked): Reply {
    const endpoint = endpointAt(asked.path)
    if (!endpoint?.needs.some((name) => asked.parameters.get(name)))
      return { status: 400, body: failure(400, `Missing ${endpoint?.needs.join(' or ')}.`, asked), ...UNBILLED }
    const random = randomFor(asked)
    const body = { ...success(asked, random), data: endpoint.data(asked.parameters, random) }
    return { status: 200, body, tokens: null, isBilled: true, bill: creditsBill(1) }
  },
  errorBody: failure,
}

const UNBILLED = { tokens: null, isBilled: false } as const

function endpointAt(path: string): Endpoint | undefined {
  return ENDPOINTS.find((endpoint) => endpoint.path.test(path))
}

function randomFor({ seed, path, parameters }: Asked): Random {
  return new Random(hashOf(seed, path, parameters.toString()))
}

function success(asked: Asked, random: Random): JsonObject {
  const id = random.hex(32)
  return {
    code: 200,
    request_id: `${id.slice(0, 8)}-${id.slice(8, 12)}-${id.slice(12, 16)}-${id.slice(16, 20)}-${id.slice(20)}`,
    message: 'Request successful. This request will incur a charge.',
    message_zh: '请求成功，本次请求将被计费。',
    ...surroundings(asked),
    cache_message: 'This response is cached for 24 hours and can be read at no extra cost, for request tracing only.',
    cache_message_zh: '本次响应将被缓存24小时，可免费读取，仅用于请求追踪。',
    cache_url: `https://cache.sandbox.invalid/api/v1/cache/public/${id}?sign=${random.hex(16)}`,
  }
}

function failure(code: number, message: string, asked: Asked): JsonObject {
  return {
    ...success(asked, randomFor(asked)),
    code,
    message,
    message_zh: `请求失败（${code}），本次请求不会被计费。`,
    cache_message: null,
    cache_message_zh: null,
    cache_url: '',
    data: null,
  }
}

function surroundings({ path, parameters, nowMs }: Asked): JsonObject {
  const seconds = Math.floor(nowMs / 1000)
  return {
    support: 'Ask the sandbox: docs/sandbox.md',
    time: timeAt(seconds),
    time_stamp: seconds,
    time_zone: TIME_ZONE,
    docs: `https://docs.sandbox.invalid/#${path}`,
    router: path,
    params: Object.fromEntries(parameters),
  }
}

const clockFace = new Intl.DateTimeFormat('sv-SE', { timeZone: TIME_ZONE, dateStyle: 'short', timeStyle: 'medium' })
let lastTime = { seconds: Number.NaN, text: '' }

/** `2026-11-15 04:20:00`, worked out once a second because it costs more than the rest of an answer. */
function timeAt(seconds: number): string {
  if (lastTime.seconds !== seconds) lastTime = { seconds, text: clockFace.format(seconds * 1000) }
  return lastTime.text
}

function videos(parameters: URLSearchParams, random: Random): JsonObject {
  const offset = wholeNumber(parameters.get('offset'), 0, 1_000_000)
  const count = wholeNumber(parameters.get('count'), 20, MOST_ITEMS)
  const items = Array.from({ length: count }, (_, at) => ({
    video_id: random.digits(19),
    title: `${parameters.get('keyword')} ${offset + at + 1}`,
    view_count: random.between(100, 9_000_000),
    like_count: random.between(0, 90_000),
  }))
  return { items, offset: offset + count, has_more: random.chance(0.5) }
}

function suggestions(parameters: URLSearchParams, random: Random): JsonObject {
  const word = parameters.get('search_word')
  const data = Array.from({ length: random.between(1, MOST_ITEMS) }, () => `${word} ${random.hex(6)}`)
  return { code: 0, message: 'success', data }
}

function tag(parameters: URLSearchParams, random: Random): JsonObject {
  const stats = { videoCount: random.between(1, 9_000_000), viewCount: random.between(1000, 9_000_000_000) }
  return { challengeInfo: { challenge: { id: random.digits(12), title: parameters.get('tag_name'), stats } } }
}

function stories(parameters: URLSearchParams, random: Random): JsonObject {
  const user = { username: parameters.get('username'), id: parameters.get('user_id') ?? random.digits(10) }
  const items = Array.from({ length: random.between(0, 5) }, () => ({
    id: random.digits(19),
    media_type: random.between(1, 2),
    url: `https://media.sandbox.invalid/${random.hex(16)}`,
  }))
  return { user, count: items.length, items }
}

function wholeNumber(text: string | null, otherwise: number, most: number): number {
  if (text === null || !/^\d{1,9}$/.test(text)) return otherwise
  return Math.min(Number(text), most)
}

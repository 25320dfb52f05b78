import { creditsBill } from '../bill.ts'
import { reported } from '../deviants.ts'
import type { JsonObject } from '../json.ts'
import { hashOf, Random } from '../random.ts'
import type { Asked, Reply, Upstream } from '../upstream.ts'

const PAGE_SIZE = 15
const PAGES = 3
const EPOCH_MS = Date.UTC(2026, 0, 1)
const YEAR_SECONDS = 31_536_000
const TEXTS = [
  'Wonderful!',
  'Where is this?',
  'I was there last year.',
  'So many colours',
  'Thank you for sharing',
] as const
const REPLIES_COST = 15

export const comments: Upstream = {
  name: 'comments',
  methodOf: () => 'GET',
  credentials: [{ header: 'x-api-key', scheme: 'plain' }],
  has: (path) => /^\/v2\/[^/]+\/post\/comments$/.test(path),
  answer(asked): Reply {
    const url = asked.parameters.get('url')
    const page = pageOf(asked.parameters.get('cursor'))
    if (!url) return refused('url is required', asked)
    if (page === undefined) return refused('cursor is not valid', asked)
    const hasReplies = asked.parameters.get('include_replies') === 'true'
    const credits = hasReplies ? REPLIES_COST : 1
    const body = envelope(url, page, hasReplies, reported(credits, asked.deviance.reportedTimes), asked.seed)
    return { status: 200, body, tokens: null, isBilled: true, bill: creditsBill(credits) }
  },
  errorBody: (status, message) => ({ success: false, error: message, errorStatus: status }),
}

function refused(message: string, asked: Asked): Reply {
  return { status: 400, body: comments.errorBody(400, message, asked), tokens: null, isBilled: false }
}

function envelope(url: string, page: number, hasReplies: boolean, told: number, seed: number): JsonObject {
  const random = new Random(hashOf(seed, 'comments', url, String(page)))
  const isLast = page === PAGES - 1
  const count = isLast ? random.between(1, PAGE_SIZE) : PAGE_SIZE
  return {
    success: true,
    credits_remaining: random.between(1000, 1_000_000),
    credits_charged: told,
    comments: Array.from({ length: count }, () => comment(random, hasReplies)),
    cursor: isLast ? '' : cursorOf(page + 1),
  }
}

function comment(random: Random, hasReplies: boolean): JsonObject {
  const replies = random.between(0, 3)
  return {
    ...remark(random),
    child_comment_count: replies,
    ...(hasReplies && { replies: Array.from({ length: replies }, () => remark(random)) }),
  }
}

function remark(random: Random): JsonObject {
  return {
    id: random.digits(17),
    text: random.pick(TEXTS),
    created_at: new Date(EPOCH_MS + random.between(0, YEAR_SECONDS) * 1000).toISOString(),
    comment_like_count: random.between(0, 5000),
    user: user(random),
  }
}

function user(random: Random): JsonObject {
  const id = random.digits(10)
  return {
    is_verified: random.chance(0.1),
    id,
    pk: id,
    is_unpublished: random.chance(0.5) ? null : false,
    profile_pic_url: `https://media.sandbox.invalid/${id}.jpg`,
    username: `user_${id}`,
    fbid_v2: random.digits(17),
  }
}

function cursorOf(page: number): string {
  return Buffer.from(`comments:${page}`).toString('base64url')
}

function pageOf(cursor: string | null): number | undefined {
  if (!cursor) return 0
  const page = /^comments:(\d)$/.exec(Buffer.from(cursor, 'base64url').toString())?.[1]
  return page !== undefined && Number(page) < PAGES ? Number(page) : undefined
}

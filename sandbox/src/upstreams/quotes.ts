import { creditsBill } from '../bill.ts'
import type { JsonObject } from '../json.ts'
import { hashOf, Random } from '../random.ts'
import type { Asked, Reply, Upstream } from '../upstream.ts'

const PAGE_SIZE = 20
const FEWEST = 20
const MOST = 60
const EPOCH_MS = Date.UTC(2026, 0, 1)
const YEAR_SECONDS = 31_536_000
const SITE = 'https://social-a.sandbox.invalid'
const TEXTS = ['This is worth reading', 'I disagree', 'Three things about this', 'Remember when', 'A must'] as const

export const quotes: Upstream = {
  name: 'quotes',
  methodOf: () => 'GET',
  credentials: [{ header: 'x-api-key', scheme: 'plain' }],
  has: (path) => /^\/[^/]+\/tweet\/quotes$/.test(path),
  answer(asked): Reply {
    const id = asked.parameters.get('tweetId')
    const page = pageOf(asked.parameters.get('cursor'))
    if (!id) return refused('tweetId is required', asked)
    if (page === undefined) return refused('cursor is not valid', asked)
    return { status: 200, body: pageOfQuotes(id, page, asked.seed), tokens: null, isBilled: true, bill: creditsBill(1) }
  },
  errorBody: (status, message) => ({ error: status, message, status: 'error' }),
}

function refused(message: string, asked: Asked): Reply {
  return { status: 400, body: quotes.errorBody(400, message, asked), tokens: null, isBilled: false }
}

function pageOfQuotes(tweetId: string, page: number, seed: number): JsonObject {
  const total = new Random(hashOf(seed, 'quotes', tweetId)).between(FEWEST, MOST)
  const count = Math.max(0, Math.min(PAGE_SIZE, total - page * PAGE_SIZE))
  const random = new Random(hashOf(seed, 'quotes', tweetId, String(page)))
  // As the vendor does, a full page promises another one, even where that will be empty.
  const hasNext = count === PAGE_SIZE
  return {
    tweets: Array.from({ length: count }, () => tweet(tweetId, random)),
    has_next_page: hasNext,
    next_cursor: hasNext ? cursorOf(page + 1) : '',
    status: 'success',
    message: 'success',
  }
}

function tweet(quotedId: string, random: Random): JsonObject {
  const id = random.digits(19)
  const text = random.pick(TEXTS)
  return {
    type: 'tweet',
    id,
    url: `${SITE}/status/${id}`,
    text,
    source: 'Web',
    retweetCount: random.between(0, 5000),
    replyCount: random.between(0, 500),
    likeCount: random.between(0, 50_000),
    quoteCount: random.between(0, 500),
    viewCount: random.between(0, 5_000_000),
    bookmarkCount: random.between(0, 5000),
    createdAt: timeIn(random),
    lang: 'en',
    isReply: false,
    inReplyToId: '',
    conversationId: id,
    inReplyToUserId: '',
    inReplyToUsername: '',
    displayTextRange: [0, text.length],
    author: author(random),
    entities: {
      hashtags: [{ indices: [0, 4], text: 'news' }],
      urls: [
        { display_url: 'sandbox.invalid', expanded_url: SITE, indices: [5, 20], url: `${SITE}/s/${random.hex(8)}` },
      ],
      user_mentions: [{ id_str: random.digits(10), name: 'Somebody', screen_name: 'somebody' }],
    },
    quoted_tweet: { type: 'tweet', id: quotedId, url: `${SITE}/status/${quotedId}` },
    retweeted_tweet: null,
    isLimitedReply: false,
  }
}

function author(random: Random): JsonObject {
  const id = random.digits(10)
  const userName = `user_${id}`
  return {
    type: 'user',
    userName,
    url: `${SITE}/${userName}`,
    id,
    name: `User ${id}`,
    isBlueVerified: random.chance(0.3),
    verifiedType: '',
    profilePicture: `https://media.sandbox.invalid/${id}.jpg`,
    coverPicture: `https://media.sandbox.invalid/${id}-cover.jpg`,
    description: 'Somebody in the sandbox',
    location: 'Sandbox',
    followers: random.between(0, 1_000_000),
    following: random.between(0, 5000),
    canDm: random.chance(0.5),
    createdAt: timeIn(random),
    favouritesCount: random.between(0, 100_000),
    hasCustomTimelines: random.chance(0.5),
    isTranslator: false,
    mediaCount: random.between(0, 5000),
    statusesCount: random.between(1, 100_000),
    withheldInCountries: [],
    affiliatesHighlightedLabel: {},
    possiblySensitive: random.chance(0.05),
    pinnedTweetIds: [random.digits(19)],
    isAutomated: false,
    automatedBy: '',
    unavailable: false,
    message: '',
    unavailableReason: '',
    profile_bio: { description: 'Somebody in the sandbox' },
  }
}

/** The platform's own form: `Thu Jan 01 00:00:00 +0000 2026`. */
function timeIn(random: Random): string {
  const text = new Date(EPOCH_MS + random.between(0, YEAR_SECONDS) * 1000).toUTCString()
  // From `Thu, 01 Jan 2026 00:00:00 GMT`.
  return `${text.slice(0, 3)} ${text.slice(8, 11)} ${text.slice(5, 7)} ${text.slice(17, 25)} +0000 ${text.slice(12, 16)}`
}

function cursorOf(page: number): string {
  return Buffer.from(`quotes:${page}`).toString('base64url')
}

function pageOf(cursor: string | null): number | undefined {
  if (!cursor) return 0
  const page = /^quotes:(\d)$/.exec(Buffer.from(cursor, 'base64url').toString())?.[1]
  return page === undefined ? undefined : Number(page)
}

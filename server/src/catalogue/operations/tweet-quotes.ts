import { z } from 'zod'
import { usd } from '../../kernel/money.ts'
import { rational } from '../../kernel/rational.ts'
import { defineOperation } from '../operation.ts'
import { memberOf, perCall } from '../price.ts'

const text = z.string().nullable().optional()
const count = z.int().nullable().optional()
const flag = z.boolean().nullable().optional()
const texts = z.array(z.string()).nullable().optional()
const range = z.array(z.int()).nullable().optional()
const listOf = (shape: z.ZodRawShape) => z.array(z.looseObject(shape)).nullable().optional()

const author = z.looseObject({
  type: text,
  userName: text,
  url: text,
  id: text,
  name: text,
  isBlueVerified: flag,
  verifiedType: text,
  profilePicture: text,
  coverPicture: text,
  description: text,
  location: text,
  followers: count,
  following: count,
  canDm: flag,
  createdAt: text,
  favouritesCount: count,
  hasCustomTimelines: flag,
  isTranslator: flag,
  mediaCount: count,
  statusesCount: count,
  withheldInCountries: texts,
  possiblySensitive: flag,
  pinnedTweetIds: texts,
  isAutomated: flag,
  automatedBy: text,
  unavailable: flag,
  message: text,
  unavailableReason: text,
})

const entities = z.looseObject({
  hashtags: listOf({ indices: range, text }),
  urls: listOf({ display_url: text, expanded_url: text, indices: range, url: text }),
  user_mentions: listOf({ id_str: text, name: text, screen_name: text }),
})

/** The specification says a text; the provider sends the whole record. */
const otherTweet = z
  .union([z.string(), z.looseObject({})])
  .nullable()
  .optional()
  .meta({
    description:
      'A text by the specification of this gateway. The provider sends a tweet record as an object, or null.',
  })

const tweet = z.looseObject({
  type: text,
  id: z.string(),
  url: text,
  text: z.string(),
  source: text,
  retweetCount: count,
  replyCount: count,
  likeCount: count,
  quoteCount: count,
  viewCount: count,
  bookmarkCount: count,
  createdAt: text,
  lang: text,
  isReply: flag,
  inReplyToId: text,
  conversationId: text,
  inReplyToUserId: text,
  inReplyToUsername: text,
  displayTextRange: range,
  author: author.nullable().optional(),
  entities: entities.nullable().optional(),
  quoted_tweet: otherTweet,
  retweeted_tweet: otherTweet,
  isLimitedReply: flag,
})

export const tweetQuotes = defineOperation({
  id: 'tweet_quotes',
  summary: 'Posts that quote a post, a page at a time',
  asks: `tweet tweets quote quotes quoted quoting retweet retweets twitter x post posts who shared share with comment
    reposted repost microblog status reactions`,
  example: { tweetId: '1846987139428634858' },
  category: 'social',
  method: 'GET',
  path: '/apis/v1/{social_a}/tweet/quotes',
  dialect: 'data',
  limits: [],
  quotable: true,
  definition: 'complete',
  attempts: { requests: 1, refreshes: 0 },
  input: z.looseObject({ tweetId: z.string().min(1), cursor: z.string().optional() }),
  output: z.looseObject({
    tweets: z.array(tweet),
    has_next_page: z.boolean(),
    next_cursor: z.string(),
    status: z.string(),
    message: z.string(),
  }),
  price: perCall({
    unitPrice: rational(usd('0.003')),
    isCharged: ({ status, json }) => status === 200 && memberOf(json, 'status') === 'success',
  }),
  upstream: {
    slot: 'quotes',
    path: '/{social_a}/tweet/quotes',
    adapter: 'pass_through',
    credentialHeader: 'x-api-key',
    totalMs: 45_000,
    maxBodyBytes: 16 * 1_048_576,
  },
})

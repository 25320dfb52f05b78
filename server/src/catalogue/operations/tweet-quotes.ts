import { z } from 'zod'
import { usd } from '../../kernel/money.ts'
import { rational } from '../../kernel/rational.ts'
import { defineOperation } from '../operation.ts'
import { memberOf, perCall } from '../price.ts'

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
    tweets: z.array(z.looseObject({ id: z.string(), text: z.string() })),
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

import { z } from 'zod'
import { usd } from '../../kernel/money.ts'
import { rational } from '../../kernel/rational.ts'
import { defineOperation } from '../operation.ts'
import { memberOf, responseCount } from '../price.ts'

const user = z.looseObject({
  is_verified: z.boolean(),
  id: z.string(),
  pk: z.string(),
  is_unpublished: z.unknown().nullable(),
  profile_pic_url: z.string(),
  username: z.string(),
  fbid_v2: z.string(),
})

export const postComments = defineOperation({
  id: 'post_comments',
  summary: 'Top-level comments of a post or reel',
  asks: `comment comments commenters reply replies under below post reel photo instagram ig what people say said
    saying think reaction reactions audience feedback sentiment discussion respond thread`,
  example: { url: 'https://www.example.com/p/abc/' },
  category: 'social',
  method: 'GET',
  path: '/apis/v1/{social_b}/post/comments',
  dialect: 'data',
  limits: [],
  quotable: true,
  definition: 'complete',
  attempts: { requests: 1, refreshes: 0 },
  input: z.looseObject({ url: z.string().optional() }),
  refuses: { include_replies: 'replies cost many times as much and are not priced' },
  output: z.looseObject({
    success: z.boolean(),
    credits_remaining: z.int(),
    comments: z.array(
      z.looseObject({
        id: z.string(),
        text: z.string(),
        created_at: z.string(),
        comment_like_count: z.int(),
        child_comment_count: z.int(),
        user,
      }),
    ),
    cursor: z.string(),
  }),
  price: responseCount({
    unitPrice: rational(usd('0.00188')),
    // One answer, however many comments are in it.
    count: ({ json }) => (memberOf(json, 'success') === true ? 1n : 0n),
  }),
  upstream: {
    slot: 'comments',
    path: '/v2/{social_b}/post/comments',
    adapter: 'pass_through',
    credentialHeader: 'x-api-key',
    totalMs: 60_000,
    maxBodyBytes: 16 * 1_048_576,
  },
})

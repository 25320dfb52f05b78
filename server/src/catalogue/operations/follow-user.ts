import { z } from 'zod'
import { usd } from '../../kernel/money.ts'
import { rational } from '../../kernel/rational.ts'
import { defineOperation } from '../operation.ts'
import { memberOf, perCall } from '../price.ts'

/** Its request and its answer are the platform's own, and pass through. */
export const followUser = defineOperation({
  id: 'follow_user',
  summary: 'Follow a user, for the user who linked an account to the key',
  asks: 'follow following subscribe twitter x account person someone somebody on my behalf add start add friend',
  example: { target_user_id: '2244994945' },
  category: 'social',
  method: 'POST',
  path: '/apis/v1/{social_a}/follow_{social_a}',
  dialect: 'data',
  limits: [],
  quotable: true,
  definition: 'pending',
  attempts: { requests: 2, refreshes: 1 },
  input: z.looseObject({}),
  output: z.unknown(),
  price: perCall({
    unitPrice: rational(usd('0.005')),
    // An answer may have errors in place of what was asked for.
    isCharged: ({ status, json }) => status >= 200 && status < 300 && memberOf(json, 'data') !== undefined,
  }),
  actsFor: { scopes: ['follows.write', 'tweet.read', 'users.read'] },
  upstream: {
    slot: 'social_a_account',
    path: '/users/{linked_user}/following',
    adapter: 'pass_through',
    credentialHeader: 'authorization',
    passesOnForbidden: true,
    totalMs: 30_000,
    maxBodyBytes: 1_048_576,
  },
})

import { z } from 'zod'
import { resellerEndpoint } from './reseller.ts'

export const userStories = resellerEndpoint({
  id: 'user_stories',
  summary: 'The stories that a user shows at the moment',
  asks: `stories story instagram ig profile account user posted today ephemeral disappearing 24 hours highlights
    current live active someone's`,
  example: { username: 'example' },
  suffix: '/{social_b}/v2/fetch_user_stories',
  price: '0.0029',
  // Neither its parameters nor its answer are defined: both pass through.
  definition: 'pending',
  input: z.looseObject({}),
})

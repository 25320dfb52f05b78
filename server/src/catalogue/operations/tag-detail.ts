import { z } from 'zod'
import { resellerEndpoint } from './reseller.ts'

export const tagDetail = resellerEndpoint({
  id: 'tag_detail',
  summary: 'What is known of a tag: its title and how often it is used',
  asks: `hashtag hashtags tag # views how popular many videos used usage information info stats statistics tiktok
    challenge trend description title`,
  example: { tag_name: 'cats' },
  suffix: '/{social_c}/web/fetch_tag_detail',
  input: z.looseObject({ tag_name: z.string().optional() }),
})

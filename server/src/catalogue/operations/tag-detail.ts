import { z } from 'zod'
import { resellerEndpoint } from './reseller.ts'

export const tagDetail = resellerEndpoint({
  id: 'tag_detail',
  summary: 'What is known of a tag: its title and how often it is used',
  suffix: '/{social_c}/web/fetch_tag_detail',
  input: z.looseObject({ tag_name: z.string().optional() }),
})

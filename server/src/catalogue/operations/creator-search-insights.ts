import { z } from 'zod'
import { resellerEndpoint } from './reseller.ts'

export const creatorSearchInsights = resellerEndpoint({
  id: 'creator_search_insights_videos',
  summary: 'Videos of creators that match what people search for',
  asks: `short video platform creator creators influencer trending trend trends viral popular what people search
    content ideas topic keyword insights tiktok find search clips discover inspiration opportunities gap demand`,
  example: { keyword: 'cats' },
  suffix: '/{social_c}/app/v3/fetch_creator_search_insights_videos',
  input: z.looseObject({ keyword: z.string().optional() }),
})

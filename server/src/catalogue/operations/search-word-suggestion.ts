import { z } from 'zod'
import { resellerEndpoint } from './reseller.ts'

export const searchWordSuggestion = resellerEndpoint({
  id: 'search_word_suggestion',
  summary: 'Words that shoppers are offered while they type',
  suffix: '/{social_c}/shop/web/fetch_search_word_suggestion_v2',
  input: z.looseObject({ search_word: z.string().optional() }),
})

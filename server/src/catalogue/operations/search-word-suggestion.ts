import { z } from 'zod'
import { resellerEndpoint } from './reseller.ts'

export const searchWordSuggestion = resellerEndpoint({
  id: 'search_word_suggestion',
  summary: 'Words that shoppers are offered while they type',
  asks: `autocomplete auto-complete suggest suggestion suggestions keyword keywords typeahead shop shopping store
    product products ecommerce e-commerce search box tiktok related terms shoppers buyers type seller listing query
    completion ideas`,
  example: { search_word: 'phone case' },
  suffix: '/{social_c}/shop/web/fetch_search_word_suggestion_v2',
  input: z.looseObject({ search_word: z.string().optional() }),
})

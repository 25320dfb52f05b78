import { type Catalogue, createCatalogue } from './operation.ts'
import { creatorSearchInsights } from './operations/creator-search-insights.ts'
import { rerank } from './operations/rerank.ts'
import { searchWordSuggestion } from './operations/search-word-suggestion.ts'
import { tagDetail } from './operations/tag-detail.ts'
import { userStories } from './operations/user-stories.ts'

/** Everything that is sold. */
export const catalogue: Catalogue = createCatalogue([
  rerank,
  creatorSearchInsights,
  searchWordSuggestion,
  tagDetail,
  userStories,
])

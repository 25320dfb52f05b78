import { type Catalogue, createCatalogue } from './operation.ts'
import { batchEmbedContents } from './operations/batch-embed-contents.ts'
import { chatCompletions } from './operations/chat-completions.ts'
import { countTokens } from './operations/count-tokens.ts'
import { creatorSearchInsights } from './operations/creator-search-insights.ts'
import { deepResearch } from './operations/deep-research.ts'
import { embedContent } from './operations/embed-content.ts'
import { embeddings } from './operations/embeddings.ts'
import { financialMetricsSnapshot } from './operations/financial-metrics-snapshot.ts'
import { followUser } from './operations/follow-user.ts'
import { geminiCountTokens } from './operations/gemini-count-tokens.ts'
import { generateContent } from './operations/generate-content.ts'
import { imageGenerations } from './operations/image-generations.ts'
import { messages } from './operations/messages.ts'
import { postComments } from './operations/post-comments.ts'
import { rerank } from './operations/rerank.ts'
import { responses } from './operations/responses.ts'
import { searchWordSuggestion } from './operations/search-word-suggestion.ts'
import { streamGenerateContent } from './operations/stream-generate-content.ts'
import { tagDetail } from './operations/tag-detail.ts'
import { tweetQuotes } from './operations/tweet-quotes.ts'
import { userStories } from './operations/user-stories.ts'
import { videoSynthesis } from './operations/video-synthesis.ts'
import { websiteTraffic } from './operations/website-traffic.ts'

/** Everything that is sold. */
export const catalogue: Catalogue = createCatalogue([
  chatCompletions,
  responses,
  messages,
  countTokens,
  generateContent,
  streamGenerateContent,
  geminiCountTokens,
  embeddings,
  embedContent,
  batchEmbedContents,
  imageGenerations,
  deepResearch,
  videoSynthesis,
  rerank,
  creatorSearchInsights,
  searchWordSuggestion,
  tagDetail,
  userStories,
  postComments,
  tweetQuotes,
  followUser,
  financialMetricsSnapshot,
  websiteTraffic,
])

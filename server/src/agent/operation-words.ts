import type { Arguments } from './call-arguments.ts'

/** How people ask for an operation, and a call of it to begin with. */
export type OperationWords = {
  /** Words that neither its id nor its summary has, as they stand in questions. */
  readonly asks: string
  readonly example: Arguments
}

const CONVERSATION = `chat ask talk question answer reply respond write draft rewrite email essay summarise summary summarize translate
  translation explain explanation code programming generate text completion complete prompt language llm ai model gpt assistant classify
  extract reason think story poem proofread brainstorm describe image vision function tool calling json structured`

const EMBED = `embed embedding embeddings vector vectors vectorize vectorise semantic similarity similar nearest neighbour neighbor search index
  rag retrieval cluster represent numbers numeric`

const COUNT = `count how many tokens token length long size prompt fit context window estimate before sending tokenizer tokenize`

/** Which words belong to which operation is a matter of how people speak: general ones, and none for a single question. */
export const OPERATION_WORDS: Readonly<Record<string, OperationWords>> = {
  chat_completions: {
    asks: `${CONVERSATION} openai chatgpt gpt-4 gpt-5 compatible`,
    example: { model: '<model>', messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 200 },
  },
  responses: {
    asks: 'openai responses api gpt reasoning answer prompt input instructions model text',
    example: { model: '<model>', input: 'Say hello.', max_output_tokens: 200 },
  },
  messages: {
    asks: 'anthropic claude sonnet opus haiku messages api conversation chat ask model',
    example: { model: '<model>', max_tokens: 200, messages: [{ role: 'user', content: 'Say hello.' }] },
  },
  messages_count_tokens: {
    asks: `${COUNT} anthropic claude`,
    example: { model: '<model>', messages: [{ role: 'user', content: 'Say hello.' }] },
  },
  generate_content: {
    asks: 'google gemini flash pro generate content api conversation chat ask model',
    example: { model: '<model>', contents: [{ role: 'user', parts: [{ text: 'Say hello.' }] }] },
  },
  generate_content_count_tokens: {
    asks: `${COUNT} google gemini`,
    example: { model: '<model>', contents: [{ role: 'user', parts: [{ text: 'Say hello.' }] }] },
  },
  embeddings: {
    asks: `${EMBED} openai sentences paragraphs`,
    example: { model: '<model>', input: 'A text.' },
  },
  embed_content: {
    asks: 'embed embedding vector google gemini single one text',
    example: { model: '<model>', content: { parts: [{ text: 'A text.' }] } },
  },
  batch_embed_contents: {
    asks: 'batch embed embeddings vectors google gemini many texts at once bulk several',
    example: { model: '<model>', requests: [{ model: 'models/<model>', content: { parts: [{ text: 'A text.' }] } }] },
  },
  image_generations: {
    asks: `image images picture pictures photo draw drawing paint painting illustration illustrate logo icon art artwork render poster
      wallpaper thumbnail banner avatar graphic sketch create generate make design dall-e text to image`,
    example: { model: '<model>', prompt: 'A fox in the snow', size: '1024x1024' },
  },
  deep_research: {
    asks: `research investigate web internet online report sources citations cite browse google look up find out thorough study topic
      background literature latest news current events market analysis competitors fact check in-depth comprehensive`,
    example: { query: 'Why is the sea salty?' },
  },
  video_synthesis: {
    asks: `video clip movie film animation animate animated footage short generate create make render produce text to video scene trailer
      cinematic ad commercial gif moving`,
    example: { model: '<model>', input: { prompt: 'A fox runs through the snow' } },
  },
  rerank: {
    asks: `rerank reorder re-order order sort rank ranking passages snippets documents chunks results candidates relevance relevant best match
      matches closest query rag retrieval which of these score scoring prioritise`,
    example: { query: 'a quick animal', documents: ['a snail', 'a fox'], top_n: 1 },
  },
  creator_search_insights_videos: {
    asks: `short video platform creator creators influencer trending trend trends viral popular what people search content ideas topic
      keyword insights tiktok find search clips discover inspiration opportunities gap demand`,
    example: { keyword: 'cats' },
  },
  search_word_suggestion: {
    asks: `autocomplete auto-complete suggest suggestion suggestions keyword keywords typeahead shop shopping store product products ecommerce
      e-commerce search box tiktok related terms shoppers buyers type seller listing query completion ideas`,
    example: { search_word: 'phone case' },
  },
  tag_detail: {
    asks: `hashtag hashtags tag # views how popular many videos used usage information info stats statistics tiktok challenge trend
      description title`,
    example: { tag_name: 'cats' },
  },
  user_stories: {
    asks: `stories story instagram ig profile account user posted today ephemeral disappearing 24 hours highlights current live active
      someone's`,
    example: { username: 'example' },
  },
  post_comments: {
    asks: `comment comments commenters reply replies under below post reel photo instagram ig what people say said saying think reaction
      reactions audience feedback sentiment discussion respond thread`,
    example: { url: 'https://www.example.com/p/abc/' },
  },
  tweet_quotes: {
    asks: `tweet tweets quote quotes quoted quoting retweet retweets twitter x post posts who shared share with comment reposted repost
      microblog status reactions`,
    example: { tweetId: '1846987139428634858' },
  },
  follow_user: {
    asks: `follow following subscribe twitter x account person someone somebody on my behalf add start add friend`,
    example: { target_user_id: '2244994945' },
  },
  financial_metrics_snapshot: {
    asks: `stock stocks share shares company fundamentals valuation p/e pe ratio price earnings eps market cap capitalization capitalisation
      margin margins revenue growth debt equity roe roa return profitability profitable liquidity ticker symbol cik balance sheet finance
      financials investing investment investor quote overvalued undervalued dividend payout cash flow enterprise value ebitda book`,
    example: { ticker: 'ACME' },
  },
  website_traffic_engagement: {
    asks: `website site web domain page traffic visits visitors visitor people visit views pageviews bounce rate engagement duration session
      sessions audience popularity popular how many monthly unique competitor competitors analytics online presence hits users compare time
      spent`,
    example: { domain: 'example.com', metrics: 'visits', start_date: '2026-01', end_date: '2026-01' },
  },
  get_video_task: {
    asks: `video clip status ready done finished progress poll check download result url link task state wait still rendering where is my
      generated did it fail watch`,
    example: { task_id: '<task_id>' },
  },
  list_video_tasks: {
    asks: 'videos clips all my tasks jobs history earlier previous past recent made generated which list show what pending running queue',
    example: {},
  },
  cancel_video_task: {
    asks: 'cancel stop abort kill end video clip task job rendering generation no longer want changed my mind undo',
    example: { task_id: '<task_id>' },
  },
  list_links: {
    asks: `linked connected account accounts social twitter x link status connection which is still valid working authorised authorized
      permission session expired signed in logged`,
    example: {},
  },
  auth_link: {
    asks: `link connect connecting account accounts social twitter x sign in log in login authorise authorize authorization oauth permission
      grant access my reconnect relink allow attach join`,
    example: {},
  },
  list_models: {
    asks: `models model price prices pricing cost costs how much does cheap cheapest expensive compare per million tokens token rate rates
      context window available offered which what llm list support supported catalogue catalog largest longest output limit`,
    example: { contains: '' },
  },
  get_balance: {
    asks: `balance budget money credit credits funds left remaining remain spend spent spending how much can i have wallet account afford
      allowance quota bill billing usd dollars`,
    example: {},
  },
}

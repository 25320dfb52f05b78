import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { recordProof } from '../../harness/proof.ts'
import { createDiscovery } from '../../server/src/agent/discovery.ts'
import { createFreeOperations } from '../../server/src/agent/free-operations.ts'
import { createOperations } from '../../server/src/agent/operations.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { scopesIn } from '../../server/src/identity/scopes.ts'
import { wordsOf } from '../../server/src/kernel/search-index.ts'

const names = {
  social_a: 'social_a',
  social_b: 'social_b',
  social_c: 'social_c',
  reseller: 'reseller',
  traffic_analytics: 'traffic_analytics',
  deep_research: 'deep-research/search',
}
const models = { list: async () => [], find: () => undefined }
const allSold = { in: { live: catalogue.operations, test: catalogue.operations }, soldIn: 'live' } as const
const sold = {
  now: async () => ({ ...allSold, switches: { isOff: () => false } }),
  operations: async () => catalogue.operations,
}
const parts = { names, models } as unknown as Parameters<typeof createFreeOperations>[0]
const free = createFreeOperations(parts)
const operations = createOperations(catalogue, [])
const { search } = createDiscovery({ operations, free, models, names, sold })
const request = { caller: { scopes: null, mode: 'test' } } as unknown as Parameters<typeof search>[0]

async function found(query: string, limit = 3): Promise<readonly string[]> {
  return (await search(request, { query, limit })).operations.map(({ operation_id: id }) => id)
}

/** As people ask, each with what they mean; several where either is right. */
const INTENTS: readonly (readonly [string, string])[] = [
  ['how many people visit this site', 'website_traffic_engagement'],
  ['comments under a reel', 'post_comments'],
  ['make a short clip', 'video_synthesis'],
  ['reorder these passages', 'rerank'],
  ['stock fundamentals', 'financial_metrics_snapshot'],
  ['start following this creator', 'follow_user'],
  ['what does this model cost', 'list_models'],
  ['is my video done yet', 'get_video_task'],
  ['stop rendering that clip', 'cancel_video_task'],
  ['how much money do I have left', 'get_balance'],
  ['connect my account on the social platform', 'auth_link'],
  ['is an account linked already', 'list_links'],
  ['who quoted this tweet', 'tweet_quotes'],
  ['what do people say below this photo', 'post_comments'],
  ['draw a logo', 'image_generations'],
  ['turn sentences into vectors', 'embeddings'],
  ['how many tokens does this prompt have for claude', 'messages_count_tokens'],
  ['token count for gemini', 'generate_content_count_tokens'],
  ['P/E ratio of a company', 'financial_metrics_snapshot'],
  ['is this hashtag popular', 'tag_detail'],
  ['stories that somebody posted today', 'user_stories'],
  ['autocomplete keywords for a shop', 'search_word_suggestion'],
  ['what topics are trending with video creators', 'creator_search_insights_videos'],
  ['research a topic on the web with sources', 'deep_research'],
  ['bounce rate of a competitor', 'website_traffic_engagement'],
  ['summarise this text', 'chat_completions'],
  ['ask claude a question', 'messages'],
  ['ask gemini a question', 'generate_content'],
  ['translate this to French', 'chat_completions'],
  ['list the videos I made', 'list_video_tasks'],
  ['cheapest model', 'list_models'],
  ['market cap of a ticker', 'financial_metrics_snapshot'],
  ['embed many texts at once with gemini', 'batch_embed_contents'],
  ['follow someone for me', 'follow_user'],
  ['which of these documents fits the question best', 'rerank'],
  ['generate an animation from a description', 'video_synthesis'],
  ['monthly visitors of a domain', 'website_traffic_engagement'],
  ['people who retweeted with a comment', 'tweet_quotes'],
  ['suggestions shown to buyers while they type', 'search_word_suggestion'],
  ['illustration for a blog post', 'image_generations'],
]

/** By somebody who knew the catalogue and not the index. Changing the index for them would make them worthless. */
const BLIND = z
  .array(z.strictObject({ intent: z.string(), right: z.array(z.string()).nonempty() }))
  .parse(JSON.parse(readFileSync(new URL('blind-intents.json', import.meta.url), 'utf8')))

describe('the search', () => {
  it('finds what somebody meant who has not seen the index: 32 of 40 first, 38 among the first three', async () => {
    const results = await Promise.all(BLIND.map(async ({ intent, right }) => ({ right, ids: await found(intent) })))
    const isRight = ({ right }: { right: string[] }, id: string | undefined) => id !== undefined && right.includes(id)
    const first = results.filter((result) => isRight(result, result.ids[0])).length
    const amongThree = results.filter((result) => result.ids.some((id) => isRight(result, id))).length
    assert.equal(BLIND.length, 40)
    assert.ok(first >= 32 && amongThree >= 38, `first ${first}, among the first three ${amongThree}`)
    recordProof('agent-search', 'intents of somebody who has not seen the index', {
      of: 40,
      first,
      among_three: amongThree,
    })
  })

  it('finds what people mean: first nearly always, among the first three always', async () => {
    const results = await Promise.all(INTENTS.map(async ([query, id]) => ({ query, id, ids: await found(query) })))
    const notFirst = results.filter(({ id, ids }) => ids[0] !== id)
    const notFound = results.filter(({ id, ids }) => !ids.includes(id))
    assert.ok(notFirst.length <= INTENTS.length / 10, JSON.stringify(notFirst, null, 1))
    assert.deepEqual(notFound, [])
  })

  it('knows words of every operation', () => {
    for (const { id, asks } of [...operations.all, ...free.all]) assert.ok(wordsOf(asks).length > 0, id)
  })

  it('shows a call to begin with that each takes', () => {
    for (const one of [...operations.all, ...free.all])
      if ('input' in one) assert.deepEqual(one.input.safeParse(one.example).error, undefined, one.id)
  })

  it('says of auth_link too whether this key may use it', async () => {
    const asked = { query: 'connect my account on the social platform', limit: 3 }
    for (const [scopes, allowed] of [
      [null, true],
      [scopesIn(['finance']), false],
      [scopesIn(['social']), true],
      [scopesIn(['auth_link']), true],
    ] as const) {
      const { operations: ids } = await search({ ...request, caller: { ...request.caller, scopes } }, asked)
      assert.equal(ids.find(({ operation_id: id }) => id === 'auth_link')?.allowed, allowed)
    }
  })

  it('keeps to a category, and says so where nothing matches', async () => {
    const { operations: social } = await search(request, { query: 'video', category: 'social', limit: 20 })
    assert.ok(social.length > 0 && social.every(({ category }) => category === 'social'))
    const none = await search(request, { query: 'xyzzy', limit: 5 })
    assert.deepEqual([none.operations.length, 'hint' in none], [0, true])
  })

  it('trap: a % or an endless pattern is a word that nobody knows, and costs nothing', async () => {
    for (const query of ['%', '%%%%%_', '.*', '(a+)+$', `${'%a'.repeat(250)}`, "' or 1=1 --"])
      assert.ok((await found(query)).length <= 3)
    assert.deepEqual(await found('%'), [])
  })
})

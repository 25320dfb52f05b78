import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { request } from 'undici'
import { catalogue } from '../server/src/catalogue/catalogue.ts'
import { isSoldByUnit, isTask, type Operation } from '../server/src/catalogue/operation.ts'
import { type AskedEntry, createAttemptsTally } from './attempts.ts'
import { startSandbox } from './sandbox.ts'
import { sandboxPrefixOf, upstreamOf } from './seed.ts'

/** How the sandbox writes down what operations ask. One that is sold by the unit and is not here tells it by its record. */
const ASKED: Readonly<Record<string, Omit<AskedEntry, 'request_id'>>> = {
  chat_completions: post('openai', '/openai/v1/chat/completions'),
  responses: post('openai', '/openai/v1/responses'),
  messages: post('anthropic', '/anthropic/v1/messages'),
  messages_count_tokens: post('anthropic', '/anthropic/v1/messages/count_tokens'),
  generate_content: post('gemini', '/gemini/v1beta/models/maker/a-model:generateContent'),
  stream_generate_content: post('gemini', '/gemini/v1beta/models/maker/a-model:streamGenerateContent'),
  generate_content_count_tokens: post('gemini', '/gemini/v1beta/models/maker/a-model:countTokens'),
  embeddings: post('openai', '/openai/v1/embeddings'),
  embed_content: post('gemini', '/gemini/v1beta/models/maker/a-model:embedContent'),
  batch_embed_contents: post('gemini', '/gemini/v1beta/models/maker/a-model:batchEmbedContents'),
  image_generations: post('openai', '/openai/v1/images/generations'),
  deep_research: post('deep_research', '/deep_research/search'),
  video_synthesis: post('video', '/video/services/aigc/video-generation/video-synthesis'),
  rerank: post('rerank', '/rerank/v1/rerank'),
  creator_search_insights_videos: get(
    'reseller',
    '/reseller/api/v1/social_c/app/v3/fetch_creator_search_insights_videos',
  ),
  search_word_suggestion: get('reseller', '/reseller/api/v1/social_c/shop/web/fetch_search_word_suggestion_v2'),
  tag_detail: get('reseller', '/reseller/api/v1/social_c/web/fetch_tag_detail'),
  user_stories: get('reseller', '/reseller/api/v1/social_b/v2/fetch_user_stories'),
  post_comments: get('comments', '/comments/v2/social_b/post/comments'),
  tweet_quotes: get('quotes', '/quotes/social_a/tweet/quotes'),
  follow_user: post('platform', '/platform/2/users/1234567890123456789/following'),
  website_traffic_engagement: get('traffic', '/traffic/v5/website-analysis/websites/traffic-and-engagement'),
}
const REFRESH = post('platform', '/platform/2/oauth2/token')
const REVOCATION = post('platform', '/platform/2/oauth2/revoke')
const POLL = get('video', '/video/tasks/a-task')
const CANCEL = post('video', '/video/tasks/a-task/cancel')

type Asked = Omit<AskedEntry, 'request_id'>

function post(upstream: AskedEntry['upstream'], path: string): Asked {
  return { upstream, path, method: 'POST' }
}

function get(upstream: AskedEntry['upstream'], path: string): Asked {
  return { upstream, path, method: 'GET' }
}

/** As its record has it. */
function askedBy(operation: Operation): Asked | undefined {
  if (!isSoldByUnit(operation)) return undefined
  const { slot, path } = operation.upstream
  return { upstream: upstreamOf(slot) ?? null, path: `${sandboxPrefixOf(slot)}${path}`, method: operation.method }
}

function problemsOf(...asked: readonly (Asked | undefined)[]): readonly string[] {
  const tally = createAttemptsTally()
  tally.add(asked.flatMap((one) => (one === undefined ? [] : [{ ...one, request_id: 'a-call' }])))
  return tally.problems()
}

const times = (number: number, asked: Asked | undefined) => Array.from({ length: number }, () => asked)

describe('what a call may ask of upstreams', () => {
  for (const operation of catalogue.operations) {
    const { id, attempts } = operation
    const asked = ASKED[id] ?? askedBy(operation)

    it(`${id}: ${attempts.requests} requests and ${attempts.refreshes} refreshes, and not one more`, () => {
      assert.ok(asked !== undefined, 'nobody has written down how it asks')
      const refreshes = times(attempts.refreshes, REFRESH)
      assert.deepEqual(problemsOf(...times(attempts.requests, asked), ...refreshes), [])
      const [tooMany] = problemsOf(...times(attempts.requests + 1, asked), ...refreshes)
      assert.equal(
        tooMany,
        `a-call (${id}) made ${attempts.requests + 1} requests, and ${attempts.requests} is the most`,
      )
      assert.match(problemsOf(asked, ...refreshes, REFRESH)[0] ?? '', /refreshed/)
    })
  }

  it('is stated as one request by data, two by what acts for a user, and three by what has several upstreams', () => {
    for (const operation of catalogue.operations) {
      const most = isSoldByUnit(operation) ? (operation.actsFor === undefined ? 1 : 2) : 3
      assert.equal(operation.attempts.requests, most, operation.id)
      assert.equal(operation.attempts.refreshes, most === 2 ? 1 : 0, operation.id)
    }
    assert.ok(catalogue.operations.some(isTask))
  })

  it('counts behind an address that deviates, and for each call by itself', () => {
    const deviant = post('openai', '/deviant/folds-case+slow-first-byte=5/openai/v1/chat/completions')
    assert.equal(problemsOf(...times(4, deviant)).length, 1)
    const tally = createAttemptsTally()
    tally.add(times(9, ASKED.rerank).flatMap((one, at) => (one ? [{ ...one, request_id: `call ${at}` }] : [])))
    assert.deepEqual(tally.problems(), [])
  })

  it('is one request of what no operation asks, and of one operation alone', () => {
    assert.deepEqual(problemsOf(get(null, '/nowhere')), [])
    assert.equal(problemsOf(...times(2, get(null, '/nowhere'))).length, 1)
    assert.match(problemsOf(ASKED.chat_completions, ASKED.messages)[0] ?? '', /no single operation/)
  })

  it('is one refresh where nothing else came of it, and as many tokens taken back as were got', () => {
    assert.deepEqual(problemsOf(REFRESH), [])
    assert.equal(problemsOf(REFRESH, REFRESH).length, 1)
    assert.deepEqual(problemsOf(REFRESH, REVOCATION), [])
    assert.equal(problemsOf(REVOCATION).length, 1)
  })

  it('says nothing of how often a task is asked about, nor of what came without the id of a call', () => {
    assert.deepEqual(problemsOf(ASKED.video_synthesis, ...times(50, POLL), CANCEL), [])
    const tally = createAttemptsTally()
    tally.add(times(50, ASKED.rerank).flatMap((one) => (one ? [{ ...one, request_id: null }] : [])))
    assert.deepEqual(tally.problems(), [])
  })
})

describe('a sandbox that tests start', () => {
  const ask = async (url: string) =>
    (
      await request(`${url}/financial/financial-metrics/snapshot?ticker=ABC`, {
        headers: { 'x-api-key': 'sandbox-key', 'x-request-id': 'a-call' },
      })
    ).body.dump()

  it('stops where every call has kept within its bounds', async () => {
    const sandbox = await startSandbox()
    await ask(sandbox.url)
    await sandbox.stop()
  })

  for (const end of ['stop', 'kill'] as const)
    it(`does not let a call that has asked once too often go by: ${end}`, async () => {
      const sandbox = await startSandbox()
      await ask(sandbox.url)
      // What was forgotten counts too.
      await sandbox.emptyJournal()
      await ask(sandbox.url)
      await assert.rejects(sandbox[end](), /made 2 requests, and 1 is the most/)
      assert.ok(sandbox.hasExited())
    })
})

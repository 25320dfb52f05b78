import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { contractHere } from '../../harness/recorded-contract.ts'
import { createDeclared } from './declared.ts'

type Schema = Readonly<Record<string, unknown>>

const { document, resolved } = createDeclared(contractHere().bytes)
const operations: readonly Schema[] = Object.values(document.paths ?? {}).flatMap((methods) =>
  Object.values(Object(methods)).map((one) => Object(one)),
)

/** The form of an answer that is sent in JSON; of several the first that has members, which is no quote. */
function answerOf(operationId: string): Schema {
  const found = operations.find((one) => one.operationId === operationId) ?? assert.fail(operationId)
  assert.equal(found['x-definition'], undefined, `${operationId} is pending`)
  const { content } = resolved(Object(found.responses)[200])
  return objectIn(Object(content)['application/json'].schema)
}

function objectIn(schema: unknown): Schema {
  const whole = resolved(schema)
  const { properties, items, anyOf, allOf } = whole
  if (properties !== undefined) return whole
  if (items !== undefined) return objectIn(items)
  const inner = [anyOf, allOf].flatMap((some) => (Array.isArray(some) ? some : []))
  return inner.map(objectIn).find(({ properties: members }) => members !== undefined) ?? {}
}

const membersOf = (schema: unknown, ...path: readonly string[]): Readonly<Record<string, unknown>> => {
  const members = Object(objectIn(schema).properties)
  const [first, ...rest] = path
  return first === undefined ? members : membersOf(members[first], ...rest)
}

/** What it may be, by all choices. */
function typesOf(schema: unknown): readonly string[] {
  const { type, anyOf, allOf } = resolved(schema)
  const choices = [anyOf, allOf].flatMap((some) => (Array.isArray(some) ? some : []))
  return [...(typeof type === 'string' ? [type] : []), ...choices.flatMap(typesOf)]
}

/** As spec.md lists them, by the member that has them. */
const SPECIFIED: Readonly<Record<string, readonly (readonly [path: string, type: string, names: string])[]>> = {
  financial_metrics_snapshot: [
    ['snapshot', 'string', 'ticker'],
    [
      'snapshot',
      'number',
      `market_cap enterprise_value price_to_earnings_ratio price_to_book_ratio price_to_sales_ratio
       enterprise_value_to_ebitda_ratio enterprise_value_to_revenue_ratio free_cash_flow_yield peg_ratio gross_margin
       operating_margin net_margin return_on_equity return_on_assets return_on_invested_capital asset_turnover
       inventory_turnover receivables_turnover days_sales_outstanding operating_cycle working_capital_turnover current_ratio
       quick_ratio cash_ratio operating_cash_flow_ratio debt_to_equity debt_to_assets interest_coverage revenue_growth
       earnings_growth book_value_growth earnings_per_share_growth free_cash_flow_growth operating_income_growth ebitda_growth
       payout_ratio earnings_per_share book_value_per_share free_cash_flow_per_share`,
    ],
  ],
  tweet_quotes: [
    ['', 'array', 'tweets'],
    ['', 'boolean', 'has_next_page'],
    ['', 'string', 'next_cursor status message'],
    [
      'tweets',
      'string',
      `type id url text source createdAt lang inReplyToId conversationId inReplyToUserId inReplyToUsername quoted_tweet
       retweeted_tweet`,
    ],
    ['tweets', 'integer', 'retweetCount replyCount likeCount quoteCount viewCount bookmarkCount'],
    ['tweets', 'boolean', 'isReply isLimitedReply'],
    ['tweets', 'array', 'displayTextRange'],
    ['tweets', 'object', 'author entities'],
    [
      'tweets.author',
      'string',
      `type userName url id name verifiedType profilePicture coverPicture description location createdAt automatedBy message
       unavailableReason`,
    ],
    [
      'tweets.author',
      'boolean',
      'isBlueVerified canDm hasCustomTimelines isTranslator possiblySensitive isAutomated unavailable',
    ],
    ['tweets.author', 'integer', 'followers following favouritesCount mediaCount statusesCount'],
    ['tweets.author', 'array', 'withheldInCountries pinnedTweetIds'],
    ['tweets.entities', 'array', 'hashtags urls user_mentions'],
    ['tweets.entities.hashtags', 'array', 'indices'],
    ['tweets.entities.hashtags', 'string', 'text'],
    ['tweets.entities.urls', 'string', 'display_url expanded_url url'],
    ['tweets.entities.urls', 'array', 'indices'],
    ['tweets.entities.user_mentions', 'string', 'id_str name screen_name'],
  ],
  post_comments: [
    ['', 'boolean', 'success'],
    ['', 'integer', 'credits_remaining'],
    ['', 'array', 'comments'],
    ['', 'string', 'cursor'],
    ['comments', 'string', 'id text created_at'],
    ['comments', 'integer', 'comment_like_count child_comment_count'],
    ['comments', 'object', 'user'],
    ['comments.user', 'boolean', 'is_verified'],
    ['comments.user', 'string', 'id pk profile_pic_url username fbid_v2'],
    ['comments.user', '', 'is_unpublished'],
  ],
  ...Object.fromEntries(
    ['creator_search_insights_videos', 'search_word_suggestion', 'tag_detail'].map((id) => [
      id,
      [
        ['', 'integer', 'code time_stamp'],
        [
          '',
          'string',
          `request_id message message_zh support time time_zone docs cache_message cache_message_zh cache_url router`,
        ],
        ['', 'object', 'params'],
        ['', '', 'data'],
      ] as const,
    ]),
  ),
  rerank: [
    ['', 'string', 'model'],
    ['', 'array', 'results'],
    ['results', 'integer', 'index'],
    ['results', 'number', 'relevance_score'],
    ['results.document', 'string', 'text'],
    ['usage', 'integer', 'total_tokens'],
  ],
  get_usage: [
    ['', 'string', 'scope currency bucket_width'],
    ['', 'integer', 'start_time end_time'],
    ...['totals', 'buckets'].map(
      (path) =>
        [
          path,
          'integer',
          `requests failed_requests input_tokens output_tokens cache_read_tokens cache_write_tokens usage_value_micros_usd
           charged_micros_usd`,
        ] as const,
    ),
    ['buckets', 'integer', 'start_time end_time'],
  ],
  video_synthesis: [
    ['output', 'string', 'task_id task_status'],
    ['', 'string', 'request_id'],
  ],
  get_task: [
    ['', 'string', 'request_id'],
    ['output', 'string', 'task_id task_status video_url orig_prompt submit_time scheduled_time end_time code message'],
    ['usage', 'number', 'output_video_duration'],
    ['usage', 'integer', 'video_count SR'],
  ],
}

describe('the contract has every field that the specification lists, in its type', () => {
  for (const [operationId, lists] of Object.entries(SPECIFIED))
    it(operationId, () => {
      const answer = answerOf(operationId)
      for (const [path, type, names] of lists) {
        const members = membersOf(answer, ...path.split('.').filter((name) => name !== ''))
        for (const name of names.trim().split(/\s+/)) {
          const types = typesOf(members[name] ?? assert.fail(`${operationId} has no ${path} ${name}`))
          if (type !== '') assert.ok(types.includes(type), `${operationId} ${path} ${name} is ${types.join(', ')}`)
        }
      }
    })

  it('and where the provider’s type is another, that one too, and says which is which', () => {
    const tweet = membersOf(answerOf('tweet_quotes'), 'tweets')
    for (const name of ['quoted_tweet', 'retweeted_tweet']) {
      assert.ok(typesOf(tweet[name]).includes('object'), name)
      assert.match(String(resolved(tweet[name]).description), /specification.+provider/s)
    }
  })
})

describe('the answers of model endpoints', () => {
  /** What callers read of them first, by the vendors' public schemas. */
  const READ: Readonly<Record<string, readonly string[]>> = {
    chat_completions: ['choices.message.content', 'choices.finish_reason', 'usage.prompt_tokens', 'usage.cost_usd'],
    responses: ['output.content.text', 'status', 'usage.output_tokens', 'usage.cost_usd'],
    messages: ['content.text', 'stop_reason', 'usage.input_tokens', 'usage.cost_usd'],
    generate_content: ['candidates.content.parts.text', 'usageMetadata.promptTokenCount', 'usageMetadata.cost_usd'],
    embeddings: ['data.embedding', 'usage.prompt_tokens'],
    image_generations: ['data.b64_json', 'usage.cost_usd'],
    embed_content: ['embedding.values'],
    batch_embed_contents: ['embeddings.values'],
    messages_count_tokens: ['input_tokens'],
    generate_content_count_tokens: ['totalTokens'],
  }
  /** The same of a frame of their streams. */
  const IN_FRAMES: Readonly<Record<string, readonly string[]>> = {
    chat_completions: ['choices.delta.content', 'choices.finish_reason', 'usage.cost_usd'],
    responses: ['type', 'delta', 'response.usage.cost_usd'],
    messages: ['type', 'delta.text', 'content_block.type', 'usage.cost_usd'],
    stream_generate_content: ['candidates.content.parts.text', 'usageMetadata.cost_usd'],
  }
  const has = (schema: unknown, path: string) => {
    const names = path.split('.')
    return Object.hasOwn(membersOf(schema, ...names.slice(0, -1)), names.at(-1) ?? '')
  }

  it('are documented first, by what is read of them, and the rest is said to be the provider’s', () => {
    for (const [operationId, paths] of Object.entries(READ)) {
      const answer = answerOf(operationId)
      for (const path of paths) assert.ok(has(answer, path), `${operationId} ${path}`)
      assert.match(String(answer.description), /the provider’s/)
    }
  })

  it('and so are the frames of all streams', () => {
    const streamed = operations.flatMap((one) => {
      const { content, description } = resolved(Object(one.responses)[200])
      const stream = Object(content)['text/event-stream']
      return stream === undefined ? [] : [{ id: String(one.operationId), frame: stream.schema['x-frame'], description }]
    })
    assert.deepEqual(streamed.map(({ id }) => id).sort(), Object.keys(IN_FRAMES).sort())
    for (const { id, frame, description } of streamed)
      for (const path of IN_FRAMES[id] ?? []) {
        assert.ok(has(frame, path), `${id} ${path}`)
        assert.ok(String(description).replaceAll('[]', '').includes(`\`${path}\``), `${id} does not tell ${path}`)
      }
  })
})

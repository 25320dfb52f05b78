import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { ASK, assertMembers, startTestSandbox, type TestSandbox } from '../test-sandbox.ts'

let sandbox: TestSandbox
before(async () => {
  sandbox = await startTestSandbox()
})
after(() => sandbox.stop())

const members = (kind: string, names: string) => Object.fromEntries(names.split(' ').map((name) => [name, kind]))

describe('reseller', () => {
  const envelope = {
    ...members('string', 'request_id message message_zh support time time_zone docs cache_url router'),
    ...members('integer', 'code time_stamp'),
    ...members('string|null', 'cache_message cache_message_zh'),
    params: 'object',
    data: 'any',
  }
  const { headers } = ASK.reseller
  const endpoints = {
    'app/v3/fetch_creator_search_insights_videos': { keyword: 'cats', offset: '20', count: '5' },
    'shop/web/fetch_search_word_suggestion_v2': { search_word: 'cats', lang: 'en', region: 'US' },
    'web/fetch_tag_detail': { tag_name: 'cats' },
    'v2/fetch_user_stories': { username: 'somebody' },
  }
  for (const [suffix, parameters] of Object.entries(endpoints)) {
    it(`answers ${suffix} with the whole envelope, under any platform's word, the parameters echoed`, async () => {
      for (const segment of ['social_b', 'any-word']) {
        const router = `/api/v1/${segment}/${suffix}`
        const query = new URLSearchParams({ ...parameters, unknown_one: 'as it came' })
        const answer = await sandbox.ask({ path: `/reseller${router}?${query}`, headers })
        const body = answer.json()
        assertMembers(body, envelope)
        assert.equal(body.code, 200)
        assert.equal(body.router, router)
        assert.deepEqual(body.params, { ...parameters, unknown_one: 'as it came' })
        assert.equal(typeof body.data, 'object')
        assert.match(body.time, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/)
        assert.ok(Math.abs(body.time_stamp - Date.now() / 1000) < 60)
      }
    })

    it(`refuses ${suffix} without its parameter, in the envelope with code 400`, async () => {
      const refused = await sandbox.ask({ path: `/reseller/api/v1/social_c/${suffix}?other=1`, headers })
      assert.equal(refused.status, 400)
      assertMembers(refused.json(), envelope)
      assert.equal(refused.json().code, 400)
      assert.equal(refused.json().data, null)
    })
  }

  it('gives the data that the vendor is known to give', async () => {
    const data = async (suffix: string) =>
      (await sandbox.ask({ path: `/reseller/api/v1/social_c/${suffix}`, headers })).json().data
    const suggested = await data('shop/web/fetch_search_word_suggestion_v2?search_word=cats')
    assertMembers(suggested, { code: 'integer', message: 'string', data: 'array' })
    assert.ok(suggested.data.length <= 50)
    const { challenge } = (await data('web/fetch_tag_detail?tag_name=cats')).challengeInfo
    assertMembers(challenge, { id: 'string', title: 'string', stats: 'object' })
    assertMembers(challenge.stats, { videoCount: 'integer', viewCount: 'integer' })
    const videos = await data('app/v3/fetch_creator_search_insights_videos?keyword=cats&offset=10&count=5')
    assert.equal(videos.items.length, 5)
    assert.equal((await data('v2/fetch_user_stories?user_id=12')).user.id, '12')
  })
})

describe('comments', () => {
  const user = {
    ...members('string', 'id pk profile_pic_url username fbid_v2'),
    is_verified: 'boolean',
    is_unpublished: 'null|boolean',
  }
  const comment = {
    ...members('string', 'id text created_at'),
    ...members('integer', 'comment_like_count child_comment_count'),
    user: 'object',
  }

  it('answers the envelope with comments and a cursor that leads through three pages', async () => {
    let cursor = ''
    const ids = new Set<string>()
    for (let page = 1; page <= 3; page += 1) {
      const answer = (await sandbox.ask({ ...ASK.comments, path: `${ASK.comments.path}&cursor=${cursor}` })).json()
      assertMembers(answer, {
        success: 'boolean',
        ...members('integer', 'credits_remaining credits_charged'),
        comments: 'array',
        cursor: 'string',
      })
      assert.equal(answer.success, true)
      for (const one of answer.comments) {
        assertMembers(one, comment)
        assertMembers(one.user, user)
        assert.equal(new Date(one.created_at).toISOString(), one.created_at)
        ids.add(one.id)
      }
      assert.equal(answer.cursor === '', page === 3)
      cursor = answer.cursor
    }
    assert.ok(ids.size > 30)
  })

  it('gives replies and takes 15 credits only with include_replies', async () => {
    const answer = (await sandbox.ask({ ...ASK.comments, path: `${ASK.comments.path}&include_replies=true` })).json()
    assert.equal(answer.credits_charged, 15)
    for (const one of answer.comments) assert.equal(one.replies.length, one.child_comment_count)
  })

  it('needs a url and a cursor of its own', async () => {
    const { headers } = ASK.comments
    for (const query of ['', '?url=', '?url=a&cursor=nonsense']) {
      const refused = await sandbox.ask({ path: `/comments/v2/social_b/post/comments${query}`, headers })
      assert.equal(refused.status, 400)
      assert.equal(refused.json().success, false)
    }
  })
})

describe('quotes', () => {
  const tweet = {
    ...members('string', 'type id url text source createdAt lang'),
    ...members('integer', 'retweetCount replyCount likeCount quoteCount viewCount bookmarkCount'),
    ...members('boolean', 'isReply isLimitedReply'),
    ...members('string', 'inReplyToId conversationId inReplyToUserId inReplyToUsername'),
    displayTextRange: 'array',
    ...members('object', 'author entities'),
    ...members('any', 'quoted_tweet retweeted_tweet'),
  }
  const author = {
    ...members('string', 'type userName url id name verifiedType profilePicture coverPicture description location'),
    ...members('string', 'createdAt automatedBy message unavailableReason'),
    ...members('boolean', 'isBlueVerified canDm hasCustomTimelines isTranslator possiblySensitive isAutomated'),
    unavailable: 'boolean',
    ...members('integer', 'followers following favouritesCount mediaCount statusesCount'),
    ...members('array', 'withheldInCountries pinnedTweetIds'),
    // Beyond the specification, as the vendor does.
    ...members('object', 'affiliatesHighlightedLabel profile_bio'),
  }

  it('answers tweet records, page by page, until there is no next one', async () => {
    let cursor = ''
    const ids: string[] = []
    for (let page = 0; page < 5; page += 1) {
      const answer = (await sandbox.ask({ ...ASK.quotes, path: `${ASK.quotes.path}&cursor=${cursor}` })).json()
      assertMembers(answer, {
        tweets: 'array',
        has_next_page: 'boolean',
        ...members('string', 'next_cursor status message'),
      })
      assert.ok(answer.tweets.length <= 20)
      for (const one of answer.tweets) {
        assertMembers(one, tweet)
        assertMembers(one.author, author)
        assertMembers(one.entities, members('array', 'hashtags urls user_mentions'))
        assertMembers(one.entities.hashtags[0], { indices: 'array', text: 'string' })
        assertMembers(one.entities.urls[0], { ...members('string', 'display_url expanded_url url'), indices: 'array' })
        assertMembers(one.entities.user_mentions[0], members('string', 'id_str name screen_name'))
        ids.push(one.id)
      }
      cursor = answer.next_cursor
      if (!answer.has_next_page) break
    }
    assert.equal(cursor, '')
    assert.ok(ids.length >= 20 && ids.length <= 60)
    assert.equal(new Set(ids).size, ids.length)
  })

  it('promises a next page after a full one, even an empty one', async () => {
    const { headers } = ASK.quotes
    for (let id = 0; id < 500; id += 1) {
      const page = async (cursor: string) =>
        (await sandbox.ask({ path: `/quotes/social_a/tweet/quotes?tweetId=${id}&cursor=${cursor}`, headers })).json()
      const second = await page((await page('')).next_cursor)
      if (second.tweets.length > 0) continue
      assert.equal(second.has_next_page, false)
      return
    }
    assert.fail('no tweet with just 20 quotes')
  })

  it('needs a tweetId', async () => {
    const refused = await sandbox.ask({ ...ASK.quotes, path: '/quotes/social_a/tweet/quotes' })
    assert.equal(refused.status, 400)
    assert.equal(refused.json().status, 'error')
  })
})

describe('financial', () => {
  const metrics =
    'market_cap enterprise_value price_to_earnings_ratio price_to_book_ratio price_to_sales_ratio enterprise_value_to_ebitda_ratio enterprise_value_to_revenue_ratio free_cash_flow_yield peg_ratio gross_margin operating_margin net_margin return_on_equity return_on_assets return_on_invested_capital asset_turnover inventory_turnover receivables_turnover days_sales_outstanding operating_cycle working_capital_turnover current_ratio quick_ratio cash_ratio operating_cash_flow_ratio debt_to_equity debt_to_assets interest_coverage revenue_growth earnings_growth book_value_growth earnings_per_share_growth free_cash_flow_growth operating_income_growth ebitda_growth payout_ratio earnings_per_share book_value_per_share free_cash_flow_per_share'
  const path = '/financial/financial-metrics/snapshot'

  it('answers every metric by ticker or by cik', async () => {
    for (const query of ['ticker=ABC', 'cik=0000320193']) {
      const { snapshot } = (await sandbox.ask({ ...ASK.financial, path: `${path}?${query}` })).json()
      assertMembers(snapshot, { ticker: 'string', ...members('number|integer', metrics) })
    }
    assert.equal((await sandbox.ask(ASK.financial)).json().snapshot.ticker, 'ABC')
  })

  it('refuses neither with 400', async () => {
    assert.equal((await sandbox.ask({ ...ASK.financial, path })).status, 400)
  })
})

describe('traffic', () => {
  const path = '/traffic/v5/website-analysis/websites/traffic-and-engagement'
  const { headers } = ASK.traffic

  it('answers the metrics asked for, month by month', async () => {
    const query = 'domain=example.com&metrics=visits,bounce_rate&start_date=2025-11&end_date=2026-01&country=us'
    const { meta, data } = (await sandbox.ask({ path: `${path}?${query}`, headers })).json()
    assert.equal(meta.request.domain, 'example.com')
    assert.equal(meta.request.last_updated, '2026-01')
    assert.equal(meta.request.country, 'us')
    assert.deepEqual(
      data.map(({ date }: { date: string }) => date),
      ['2025-11-01', '2025-12-01', '2026-01-01'],
    )
    for (const month of data) assertMembers(month, { date: 'string', visits: 'integer', bounce_rate: 'number|integer' })
  })

  it('gives a figure that does not depend on what else was asked for', async () => {
    const visits = async (metrics: string) =>
      (await sandbox.ask({ path: `${path}?domain=a.com&metrics=${metrics}`, headers })).json().data[0].visits
    assert.equal(await visits('visits'), await visits('bounce_rate,visits'))
  })

  for (const query of [
    '',
    '?domain=a&metrics=toString',
    '?domain=a&start_date=2026-13',
    '?domain=a&start_date=1900-01',
  ])
    it(`refuses ${query || 'no domain'} with 400`, async () => {
      const refused = await sandbox.ask({ path: path + query, headers })
      assert.equal(refused.status, 400)
      assert.equal(refused.json().meta.error_code, 400)
    })
})

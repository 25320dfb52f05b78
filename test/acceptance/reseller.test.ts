import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { catalogueDocument } from '../../server/src/catalogue/document.ts'
import { type Rational, rational } from '../../server/src/kernel/rational.ts'
import { saveCustomerPlan, setCustomerPlan } from '../../server/src/workspaces/workspaces.ts'
import {
  ACTOR,
  ask,
  type Customer,
  call,
  costOf,
  errorOf,
  ids,
  isDataFault,
  makeCustomer,
  startInstallation,
} from './installation.ts'
import { wire } from './wire.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)
const { secret } = await makeCustomer(pool)

const ENDPOINTS = {
  creator_search_insights_videos: 1_450_000n,
  search_word_suggestion: 1_450_000n,
  tag_detail: 1_450_000n,
  user_stories: 2_900_000n,
} as const
const OPERATIONS = Object.keys(ENDPOINTS) as (keyof typeof ENDPOINTS)[]
const ENVELOPE = {
  code: 'number',
  request_id: 'string',
  message: 'string',
  message_zh: 'string',
  support: 'string',
  time: 'string',
  time_stamp: 'number',
  time_zone: 'string',
  docs: 'string',
  cache_message: 'string',
  cache_message_zh: 'string',
  cache_url: 'string',
  router: 'string',
  params: 'object',
  data: 'object',
}
const TAG = '/apis/v1/reseller/social_c/web/fetch_tag_detail'
const STORIES = '/apis/v1/reseller/social_b/v2/fetch_user_stories'
const usd = (nanos: bigint) => `0.${String(nanos).padStart(9, '0')}`
const asked = async (id: string) => (await sandbox.journal()).filter(({ request_id }) => request_id === id)

describe('the reseller endpoints', () => {
  for (const operation of OPERATIONS)
    it(`DATA-2 ${operation} is 200 with the envelope, and charged its price`, async () => {
      const { status, json, costUsd, headers } = await call(url, secret, operation)
      assert.equal(status, 200)
      assert.deepEqual(Object.fromEntries(Object.entries(json).map(([name, value]) => [name, typeof value])), ENVELOPE)
      assert.equal(json.code, 200)
      assert.equal(costUsd, usd(ENDPOINTS[operation]))
      assert.equal(headers.get('x-farebox-price-version'), '0')
    })

  for (const [what, word, status, isCharged] of [
    ['another code', 'sandbox:code=400', 200, false],
    ['a code of zero', 'sandbox:code=0', 200, false],
    ['a code that begins alike', 'sandbox:code=2001', 200, false],
    ['a code near it', 'sandbox:code=201', 200, false],
    ['the code as a text', 'sandbox:code-as-string', 200, false],
    ['the code as a text, said twice', 'sandbox:code=200 sandbox:code-as-string', 200, false],
    ['an error with an error code', 'sandbox:status=500', 500, false],
    ['an error that says code 200', 'sandbox:code=200 sandbox:status=500', 500, false],
    ['an outage that says code 200', 'sandbox:code=200 sandbox:status=503', 503, false],
    ['a refusal that says code 200', 'sandbox:code=200 sandbox:status=400', 400, true],
    ['an absence that says code 200', 'sandbox:code=200 sandbox:status=404', 404, true],
    ['another success that says code 200', 'sandbox:code=200 sandbox:status=206', 206, true],
    ['another success that says another code', 'sandbox:code=500 sandbox:status=201', 201, false],
    ['no body', 'sandbox:empty', 502, false],
    ['no JSON', 'sandbox:garbage', 502, false],
    ['a page', 'sandbox:html', 502, false],
  ] as const)
    it(`DATA-2 ${isCharged ? 'charges' : 'does not charge'} for ${what}`, async () => {
      const told = await call(url, secret, 'tag_detail', word)
      assert.equal(told.status, status)
      assert.equal(told.costUsd, usd(isCharged ? 1_450_000n : 0n))
    })

  for (const [multiplier, base, stories] of [
    [rational(1n, 2n), 725_000n, 1_450_000n],
    [rational(145n, 100n), 2_102_500n, 4_205_000n],
    [rational(0n), 0n, 0n],
    [rational(1n, 3n), 483_333n, 966_667n],
    [rational(2n, 7n), 414_286n, 828_571n],
    [rational(1_234_567n, 1_000_000n), 1_790_122n, 3_580_244n],
    // Halves, which go to the even neighbour.
    [rational(1n, 2_900_000n), 0n, 1n],
    [rational(3n, 2_900_000n), 2n, 3n],
    [rational(5n, 2_900_000n), 2n, 5n],
    [rational(1n, 5_800_000n), 0n, 0n],
    [rational(3n, 5_800_000n), 1n, 2n],
    [rational(5n, 5_800_000n), 1n, 2n],
    [rational(1_450_001n, 2_900_000n), 725_000n, 1_450_001n],
    [rational(1_450_003n, 2_900_000n), 725_002n, 1_450_003n],
  ] as const)
    it(`DATA-2 times the multiplier of the plan, ${multiplier.numerator}/${multiplier.denominator}, rounded once, halves to even`, async () => {
      const customer = await onPlan(multiplier)
      const tag = await call(url, customer.secret, 'tag_detail')
      assert.deepEqual([tag.status, tag.costUsd], [200, usd(base)])
      assert.equal((await call(url, customer.secret, 'user_stories')).costUsd, usd(stories))
      const { json } = await ask(url, customer.secret, '/v1/usage?start_time=1')
      // The published price stays the estimate.
      assert.equal(Object(json.totals).usage_value_micros_usd, 4_350)
      assert.equal(BigInt(Object(json.totals).charged_micros_usd), (base + stories) / 1_000n)
    })

  it('DATA-1 DATA-2 the plan scales the prices of the reseller, and of nobody else', async () => {
    const [standard, doubled] = [await makeCustomer(pool), await onPlan(rational(2n))]
    for (const { id: operation } of catalogue.operations) {
      // A user has to have linked an account for it.
      if (operation === 'follow_user') continue
      const [base, scaled] = await Promise.all(
        [standard, doubled].map(async (one) => costOf(url, one.secret, await call(url, one.secret, operation))),
      )
      assert.equal(Number(scaled), Number(base) * (operation in ENDPOINTS ? 2 : 1), operation)
      assert.ok(Number(base) > 0 || /count_tokens$/.test(operation), operation)
    }
  })

  it('DATA-3 passes parameters on byte for byte: none is invented, renamed, dropped, ordered or spelt anew', async () => {
    for (const query of [
      'tag_name=cats',
      'tag_name=cats&offset=20&count=5&region=US&lang=en',
      'b=2&a=1&b=3&tag_name=x&a=',
      'tag_name=x&page=1&page=2&page=',
      'tag_name=x&unknown&=nameless&&&a==b=',
      'tag_name=%63%61ts&a=%2f%2F%5b%5D&plus=a+b%2Bc%20d',
      'tag_name=%E7%8C%AB&n=%C3%A9&broken=%zz%&half=%E7%8C',
      "tag_name=x'y&a=(b)*!~;,:@$/?a?b[c]{d}|^`<e>",
      'tag_name=x&a=%22quoted%22&b=back%5Cslash',
      'tag_name=x&constructor=1&__proto__=2&toString=3',
      'tag_name=x&code=200&request_id=1&X-Farebox-Cost-Mode=quote',
      `tag_name=x&long=${'0123456789'.repeat(380)}`,
    ]) {
      const { status, headers } = await wire(url, secret, `${TAG}?${query}`)
      assert.equal(status, 200, query)
      const entries = await asked(String(headers['x-request-id']))
      assert.deepEqual(
        entries.map((entry) => [entry.method, entry.path, entry.query]),
        [['GET', '/reseller/api/v1/social_c/web/fetch_tag_detail', query]],
      )
      assert.equal(entries[0]?.body_bytes, 0)
    }
  })

  it('ERR-7 what no URL may have is 400, before anything is asked: it is not spelt anew for the upstream', async () => {
    for (const query of ['tag_name="x"', 'tag_name=x&a=back\\slash']) {
      const { status, headers } = await wire(url, secret, `${TAG}?${query}`)
      assert.equal(status, 400)
      assert.deepEqual(await asked(String(headers['x-request-id'])), [])
    }
  })

  it('ERR-7 a parameter that is declared as a text and given twice is 400, since it could mean either', async () => {
    const told = await ask(url, secret, `${TAG}?tag_name=x&tag_name=y`)
    assert.equal(told.status, 400)
    isDataFault(told, 'invalid_request', 'invalid_request_error')
  })

  it('DATA-3 a parameter that is missing is for the upstream to miss; nothing is sent in its place', async () => {
    for (const target of [TAG, `${TAG}?`]) {
      const { status, headers, body } = await wire(url, secret, target)
      assert.equal(status, 400)
      assert.equal(JSON.parse(String(body)).message, 'Missing tag_name.')
      assert.equal(headers['x-farebox-cost-usd'], '0.000000000')
      assert.equal((await asked(String(headers['x-request-id'])))[0]?.query, '')
    }
  })

  it('DATA-3 ERR-7 a parameter that would change cost is refused by its name with 400, before anything is asked', async () => {
    const before = (await sandbox.journal()).length
    for (const query of [
      'url=x&include_replies=true',
      'include_replies',
      'url=x&include_replies=false&include_replies=',
    ]) {
      const told = await ask(url, secret, `/apis/v1/social_b/post/comments?${query}`)
      assert.equal(told.status, 400)
      assert.match(String(errorOf(told).message), /"include_replies" is not supported/)
    }
    assert.equal((await sandbox.journal()).length, before)
  })

  it('DATA-6 a pending definition passes its request and its answer on as they came, and the catalogue says pending', async () => {
    for (const query of ['username=cats&anything=%20&anything=2&page=', 'user_id=7&sandbox']) {
      const { status, headers, body } = await wire(url, secret, `${STORIES}?${query}`)
      assert.equal(status, 200)
      assert.equal((await asked(String(headers['x-request-id'])))[0]?.query, query)
      assert.equal(JSON.parse(String(body)).code, 200)
    }
    const pending = catalogue.operations.filter(({ definition }) => definition === 'pending').map(({ id }) => id)
    assert.deepEqual(pending, ['deep_research', 'user_stories', 'follow_user', 'website_traffic_engagement'])
    const sections = catalogueDocument(catalogue.operations).split('\n## ')
    assert.deepEqual(
      sections.filter((text) => /definition is pending/.test(text)).map((text) => text.split('\n')[0]),
      pending,
    )
  })
})

async function onPlan(multiplier: Rational): Promise<Customer> {
  const plan = `plan-${multiplier.numerator}-${multiplier.denominator}`
  await saveCustomerPlan({ pool }, plan, multiplier)
  const customer = await makeCustomer(pool)
  await setCustomerPlan({ pool, ids }, ACTOR, customer.workspaceId, plan)
  return customer
}

import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import type { NewKey } from '../../../server/src/identity/keys.ts'
import { nanos, usd } from '../../../server/src/kernel/money.ts'
import { ask, call, codeOf, errorOf, makeCustomer, startInstallation, type Told } from '../installation.ts'
import { ALL_PROTOCOLS, limited, type Protocol, question } from './streams.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)

const QUOTE = { 'x-farebox-cost-mode': 'quote' }
const ASKED = 4_000

function chat(secret: string, protocol: Protocol, limit: number | undefined, more: More = {}): Promise<Told> {
  const { members = {}, headers = {} } = more
  const given = limit === undefined ? {} : limited(protocol, limit)
  const { path, body } = question(protocol, 'sandbox/text', '', { ...given, ...members })
  return ask(url, secret, path, { body, headers })
}

type More = { readonly members?: object; readonly headers?: Readonly<Record<string, string>> }

/** What a call would hold. */
async function heldBy(secret: string, protocol: Protocol, limit: number | undefined, more: More = {}): Promise<bigint> {
  const { json } = await chat(secret, protocol, limit, { ...more, headers: QUOTE })
  return usd(Object(json.max).usd)
}

/** What our refusal has beside its code and words, wherever the protocol has a place for it. */
function membersOf(told: Told): Record<string, unknown> {
  const error = errorOf(told)
  const details = Array.isArray(error.details) ? Object(error.details[0]).metadata : error.details
  return { ...error, ...Object(details) }
}

const budgeted = (period: 'day' | 'month' | 'total', amount: bigint): Partial<NewKey> => ({
  budget: { period, amount: nanos(amount) },
})

const messageOf = (told: Told) => String(errorOf(told).message)

describe('a call whose output limit holds more than there is', () => {
  for (const protocol of ALL_PROTOCOLS)
    it(`ERR-2 is 402 with the limit that would fit, which fits: ${protocol}`, async () => {
      const rich = await makeCustomer(pool)
      const money = await heldBy(rich.secret, protocol, 777)
      const { secret } = await makeCustomer(pool, { money })
      const before = (await sandbox.journal()).length
      const told = await chat(secret, protocol, ASKED)
      assert.deepEqual([told.status, codeOf(told)], [402, 'insufficient_balance'], told.text)
      // A limit of more digits is itself in the bound of the input, by a token for each.
      const fitting = Number(membersOf(told).fitting_output_limit)
      assert.ok(fitting >= 776 && fitting <= 777, told.text)
      assert.match(
        messageOf(told),
        /output limit of 4,000 tokens\. This call fits with max\S*( or max\S*)? of 77[67] or less\.$/,
      )
      assert.equal((await sandbox.journal()).length, before)
      assert.equal((await chat(secret, protocol, 778)).status, 402)
      assert.equal((await chat(secret, protocol, fitting)).status, 200)
    })

  it('says that the limit is the default one where the caller sent none, and counts every choice', async () => {
    const rich = await makeCustomer(pool)
    const members = { n: 3 }
    const money = await heldBy(rich.secret, 'openai', 500, { members })
    const { secret } = await makeCustomer(pool, { money })
    const told = await chat(secret, 'openai', undefined, { members })
    assert.equal(told.status, 402)
    assert.match(
      messageOf(told),
      /tokens for each of 3 choices, the model's default as you sent none\. This call fits with max_/,
    )
    const fitting = Number(membersOf(told).fitting_output_limit)
    assert.ok(fitting > 480 && fitting <= 500, told.text)
    assert.equal((await chat(secret, 'openai', fitting, { members })).status, 200)
  })

  it('says that no limit fits where the input alone is too much', async () => {
    const { secret } = await makeCustomer(pool, { money: 1n })
    const told = await chat(secret, 'openai', ASKED)
    assert.equal(told.status, 402)
    assert.match(
      messageOf(told),
      /The input alone holds 0\.\d+ USD, so no max_\S+ or max_\S+ fits\. Its bound is \d{3} tokens: its bytes, and 256 and more for what the provider's template may add\. More money is needed\.$/,
    )
    assert.equal('fitting_output_limit' in membersOf(told), false)
  })

  it('is told the same of the cap that the request itself sets', async () => {
    const { secret } = await makeCustomer(pool)
    const cap = await heldBy(secret, 'anthropic', 321)
    const headers = { 'x-farebox-max-cost-usd': `0.${String(cap).padStart(9, '0')}` }
    const told = await chat(secret, 'anthropic', ASKED, { headers })
    assert.deepEqual([told.status, codeOf(told)], [402, 'cost_cap_exceeded'])
    const fitting = Number(membersOf(told).fitting_output_limit)
    assert.ok(fitting >= 320 && fitting <= 321, told.text)
    assert.equal((await chat(secret, 'anthropic', fitting, { headers })).status, 200)
  })

  it('is told nothing of an output limit where it has none, or where a quote has fixed the request', async () => {
    const poor = await makeCustomer(pool, { money: 1n })
    const told = await call(url, poor.secret, 'tag_detail')
    assert.equal(
      messageOf(told),
      'Insufficient balance: it does not cover the maximum cost of this call. Add credit, or ask for less. Hold needed: 0.00145 USD; left: 0.000000001 USD.',
    )
    const { json } = await chat(poor.secret, 'openai', ASKED, { headers: QUOTE })
    const quoted = await chat(poor.secret, 'openai', ASKED, {
      headers: { 'x-farebox-quote-id': String(json.quote_id) },
    })
    assert.equal(quoted.status, 402)
    assert.doesNotMatch(messageOf(quoted), /output limit/)
  })
})

describe('a budget that does not cover a call', () => {
  it('that is a total does not advise to wait', async () => {
    const { secret } = await makeCustomer(pool, { key: budgeted('total', 1_500_000n) })
    assert.equal((await call(url, secret, 'tag_detail')).status, 200)
    const told = await call(url, secret, 'tag_detail')
    assert.deepEqual([told.status, codeOf(told), membersOf(told).budget_period], [402, 'budget_exceeded', 'total'])
    assert.doesNotMatch(messageOf(told), /\bwait\b/i)
    assert.match(
      messageOf(told),
      /left: 0\.00005 USD of 0\.0015 USD in total\. The budget is a total: waiting does not restore it\.$/,
    )
  })

  it('of a day or a month says when the next one begins, unless the call alone exceeds it', async () => {
    for (const period of ['day', 'month'] as const) {
      const { secret } = await makeCustomer(pool, { key: budgeted(period, 1_500_000n) })
      assert.equal((await call(url, secret, 'tag_detail')).status, 200)
      const told = await call(url, secret, 'tag_detail')
      const [, next = ''] = /The next \w+ begins at (\d{4}-\d\d-\d\d) 00:00 UTC\./.exec(messageOf(told)) ?? []
      const untilMs = Date.parse(next) - Date.now()
      assert.ok(untilMs > -60_000 && untilMs <= (period === 'day' ? 1 : 31) * 86_400_000, messageOf(told))
      assert.equal(period === 'month', period === 'month' && next.endsWith('-01'))
      const beyond = await call(url, secret, 'website_traffic_engagement')
      assert.match(messageOf(beyond), new RegExp(`This call alone exceeds the budget of a ${period}\\.$`))
    }
  })

  it('names the output limit that its rest allows', async () => {
    const rich = await makeCustomer(pool)
    const amount = await heldBy(rich.secret, 'openai', 250)
    const { secret } = await makeCustomer(pool, { key: budgeted('total', amount) })
    const told = await chat(secret, 'openai', ASKED)
    const fitting = Number(membersOf(told).fitting_output_limit)
    assert.ok(codeOf(told) === 'budget_exceeded' && fitting >= 249 && fitting <= 250, told.text)
    assert.equal((await chat(secret, 'openai', fitting)).status, 200)
  })
})

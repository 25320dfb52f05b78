import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GoogleGenAI } from '@google/genai'
import { systemClock } from '../../client/src/clock.ts'
import { CompletedError, Farebox, type FareboxOptions, UnexpectedAnswerError } from '../../client/src/index.ts'
import { DEFAULTS } from '../../client/src/options.ts'
import { FakeClock } from './fake-clock.ts'
import { answer } from './simulated-gateway.ts'

type Sending = { readonly url: URL; readonly init: RequestInit; readonly headers: Headers }
type Listed = { readonly data?: readonly object[]; readonly open?: readonly object[] }

/** A client whose calls fare as they are told, and whose look-ups find what they are told. */
function client(
  fare: (sending: Sending) => Response,
  { data = [], open = [] }: Listed = {},
  options: Partial<FareboxOptions> = {},
) {
  const clock = new FakeClock()
  const sent: Sending[] = []
  const looks: URLSearchParams[] = []
  const farebox = new Farebox({
    apiKey: 'fb_test_secret',
    baseUrl: 'https://gateway.invalid/base',
    clock,
    random: () => 0.5,
    async fetch(address, init) {
      const url = new URL(address)
      if (url.pathname === '/base/v1/requests' && url.searchParams.has('idempotency_key')) {
        looks.push(url.searchParams)
        return answer(200, { data, open, next_cursor: null }, { 'x-request-id': 'look' })
      }
      const sending = { url, init, headers: new Headers(init.headers) }
      sent.push(sending)
      return fare(sending)
    },
    ...options,
  })
  const came = <T>(work: Promise<T>) => clock.until(work.catch((error: unknown) => error))
  return { farebox, sent, looks, came }
}

function cut(): never {
  throw new TypeError('fetch failed')
}

const BASE = 'https://gateway.invalid/base'
const TAG = `${BASE}/apis/v1/reseller/social_c/web/fetch_tag_detail?tag_name=cats`
const CHAT = `${BASE}/v1/chat/completions`
const cost = { usd: '9.000000000', micros_usd: 9_000_000 }

describe('the fetch of the client', () => {
  it('CLIENT-2 puts a key and the cap on all that is no free route, whatever its method', async () => {
    const { farebox, sent, looks, came } = client(cut, {}, { maxCostUsd: '0.001' })
    const error = await came(farebox.fetch(TAG))
    assert.ok(error instanceof Error)
    const [first] = sent
    const key = first?.headers.get('idempotency-key')
    assert.ok(key)
    for (const { headers } of sent)
      assert.deepEqual([headers.get('idempotency-key'), headers.get('x-farebox-max-cost-usd')], [key, '0.001'])
    assert.equal(looks.length, sent.length, 'each that was cut is looked up before the next')
    assert.ok(looks.every((look) => look.get('operation') === 'tag_detail' && look.get('idempotency_key') === key))
  })

  it('takes a path that it does not know for one that is paid for, and leaves free ones alone', async () => {
    const { farebox, sent, came } = client(() => answer(200, {}, {}), {}, { maxCostUsd: '0.001' })
    const free = ['/v1/balance', '/v1/models/maker%2Fone', '/v1/models/maker/one', '/v1/requests/1?x=y']
    const paid = [
      '/v1/new-endpoint',
      '/v1/requests/1/again',
      '/v1beta/models/a/b:streamGenerateContent',
      '/v1/balance/',
    ]
    for (const path of [...free, ...paid]) await came(farebox.fetch(BASE + path))
    await came(farebox.fetch('https://elsewhere.invalid/v1/balance'))
    await came(farebox.fetch(`${BASE}/v1/balance`, { method: 'POST' }))
    const hasKey = sent.map(({ headers }) => headers.has('idempotency-key') && headers.has('x-farebox-max-cost-usd'))
    assert.deepEqual(hasKey, [...free.map(() => false), ...paid.map(() => true), true, true])
  })

  it('CLIENT-2 does not take the call of another operation, which has the same key, for its own', async () => {
    const other = { id: 'of-rerank', operation: 'rerank', outcome: 'posted', cost }
    const init = { method: 'POST', body: '{}', headers: { 'idempotency-key': 'order-42' } }
    const { farebox, sent, looks, came } = client(cut, { data: [other] })
    const error = await came(farebox.fetch(CHAT, init))
    assert.ok(!(error instanceof CompletedError), String(error))
    assert.equal(sent.length, 5)
    assert.equal(looks[0]?.get('operation'), 'chat_completions')
    const own = client(cut, { data: [other, { ...other, id: 'own', operation: 'chat_completions' }] })
    const known = await own.came(own.farebox.fetch(CHAT, init))
    assert.ok(known instanceof CompletedError && known.requestId === 'own' && own.sent.length === 1, String(known))
    assert.equal((await own.farebox.requests.find('order-42', 'rerank'))?.id, 'of-rerank')
    // Of a path that the client does not know, nobody can say whose it is.
    const unknown = client(cut, { data: [other] })
    await assert.rejects(unknown.came(unknown.farebox.fetch(`${BASE}/v1/new`, init)).then(thrown), {
      code: 'outcome_unknown',
    })
    assert.equal(unknown.sent.length, 1)
  })

  it('hands over what else it is given', async () => {
    const { farebox, sent, came } = client(() => answer(200, {}, {}))
    const dispatcher = { mine: true }
    const init: object = { method: 'POST', body: '{}', keepalive: true, duplex: 'half', dispatcher, redirect: 'follow' }
    await came(farebox.fetch(CHAT, init))
    const { keepalive, duplex, dispatcher: given, redirect } = Object(sent[0]?.init)
    assert.deepEqual([keepalive, duplex, given, redirect], [true, 'half', dispatcher, 'manual'])
  })
})

function thrown(came: unknown): never {
  throw came
}

describe('a quote', () => {
  it('QUOTE-1 that was cut is looked up by its key, as what it would be at a gateway that does not take it for one', async () => {
    const { farebox, sent, looks, came } = client(cut, {
      data: [{ id: 'made', operation: 'deep_research', outcome: 'posted', cost }],
    })
    const error = await came(farebox.quote('deep_research', { query: 'why' }))
    assert.ok(error instanceof CompletedError && error.cost?.usd === cost.usd, String(error))
    assert.equal(sent.length, 1)
    assert.equal(sent[0]?.headers.get('idempotency-key'), looks[0]?.get('idempotency_key'))
  })

  it('QUOTE-1 is never what is no quote: whoever was charged is told so', async () => {
    const money = { 'x-acme-cost-usd': '0.100000000', 'x-request-id': 'r' }
    for (const body of [{ results: [] }, { quote_id: 'a.b' }, { quote_id: '', max: { usd: '1' } }]) {
      const { farebox, came } = client(() => answer(200, body, money))
      const error = await came(farebox.quote('deep_research', { query: 'why' }))
      assert.ok(error instanceof UnexpectedAnswerError, JSON.stringify(error))
      assert.deepEqual([error.cost?.usd, error.requestId], ['0.100000000', 'r'])
      assert.match(error.message, /charged.*names\.provider/)
    }
  })
})

describe('a list', () => {
  it('ends where its cursors lead in a circle, so that nobody pays for ever', async () => {
    const next = new Map([
      [null, 'a'],
      ['a', 'b'],
      ['b', 'c'],
      ['c', 'a'],
    ])
    const { farebox, sent, came } = client(({ url }) =>
      answer(200, { tweets: [], has_next_page: true, next_cursor: next.get(url.searchParams.get('cursor')) }, {}),
    )
    const walk = async () => {
      let pages = 0
      for await (const _ of farebox.quotesOf('1').pages()) if (++pages > 50) break
      return pages
    }
    assert.equal(await came(walk()), 4)
    assert.equal(sent.length, 4)
  })
})

describe('what the SDKs are handed', () => {
  it('CLIENT-2 is a timeout beyond that of the client, which looks up what is late', async () => {
    const data = [{ id: 'late', operation: 'chat_completions', outcome: 'posted', cost }]
    const { farebox } = client(cut, { data })
    for (const settings of [farebox.sdk.openai(), farebox.sdk.anthropic()])
      assert.deepEqual([settings.timeout, settings.maxRetries, settings.fetch], [2_147_483_647, 0, farebox.fetch])
  })

  it('CLIENT-2 is a key and a cap for each protocol', async () => {
    const chunk = { candidates: [{ content: { role: 'model', parts: [{ text: 'a' }] }, finishReason: 'STOP' }] }
    const { farebox, sent } = client(() => Response.json(chunk), {}, { maxCostUsd: '0.001', clock: systemClock })
    const google = new GoogleGenAI(farebox.sdk.google())
    await google.models.generateContent({ model: 'maker/one', contents: 'a' })
    const [{ headers, url } = assert.fail()] = sent
    assert.match(url.pathname, /^\/base\/v1beta\/models\/.*:generateContent$/)
    assert.deepEqual([headers.has('idempotency-key'), headers.get('x-farebox-max-cost-usd')], [true, '0.001'])
  })

  it('is a fetch that waits less than that of Node, unless it is told otherwise', () => {
    assert.ok(DEFAULTS.timeoutMs < 300_000)
  })
})

describe('what could not be sent as it is meant', () => {
  const one = (options: Partial<FareboxOptions>) => () => client(cut, {}, options)

  it('is refused at once: times that timers do not have', async () => {
    for (const timeoutMs of [Number.POSITIVE_INFINITY, 2_147_483_648, 0, -1, 0.5, Number.NaN]) {
      assert.throws(one({ timeoutMs }), /timeoutMs must be a whole number from 1/)
      const { farebox, sent } = client(cut)
      await assert.rejects(farebox.call('tag_detail', { tag_name: 'cats' }, { timeoutMs }), TypeError)
      assert.equal(sent.length, 0)
    }
    for (const timeoutMs of [Number.POSITIVE_INFINITY, -1])
      await assert.rejects(client(cut).farebox.tasks.wait('a-task', { timeoutMs }), TypeError)
    assert.throws(one({ maxWaitMs: Number.POSITIVE_INFINITY }), TypeError)
    assert.throws(one({ maxRetries: -1 }), TypeError)
    assert.ok(one({ maxWaitMs: 0, maxRetries: 0, timeoutMs: 2_147_483_647 })())
  })

  it('is refused without a word of its secret: keys and addresses', () => {
    for (const options of [
      { apiKey: 'fb_live_SECRET\nx' },
      { apiKey: 'fb_live_SECRET ' },
      { apiKey: 'fb_live_SECRET\u2026' },
      { baseUrl: 'https://me:SECRET@gateway.invalid' },
      { baseUrl: 'https://gateway.invalid/?key=SECRET' },
      { baseUrl: 'ftp://gateway.invalid/SECRET' },
    ])
      assert.throws(one(options), (error) => error instanceof TypeError && !/SECRET/.test(error.stack ?? ''))
  })

  it('is not told as a call whose outcome nobody knows', async () => {
    const { farebox, sent, looks } = client(cut)
    for (const idempotencyKey of ['order 42', 'ö', '', 'x'.repeat(256), 'a\nb'])
      await assert.rejects(farebox.call('tag_detail', { tag_name: 'cats' }, { idempotencyKey }), TypeError)
    await assert.rejects(farebox.call('tag_detail', { tag_name: 'cats' }, { maxCostUsd: '0.1 \u20ac' }), TypeError)
    await assert.rejects(farebox.fetch(CHAT, { method: 'POST', headers: { 'idempotency-key': 'ö' } }), TypeError)
    await assert.rejects(farebox.fetch('/v1/balance'), TypeError)
    assert.deepEqual([sent.length, looks.length], [0, 0])
  })
})

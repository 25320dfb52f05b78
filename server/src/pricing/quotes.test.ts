import assert from 'node:assert/strict'
import { createHmac, hkdfSync } from 'node:crypto'
import { describe, it } from 'node:test'
import { testCaller } from '../../../harness/test-caller.ts'
import type { Caller } from '../identity/caller.ts'
import { Fault } from '../kernel/fault.ts'
import { perMillion } from '../kernel/money.ts'
import { rational } from '../kernel/rational.ts'
import { Secret } from '../kernel/secret.ts'
import type { Priced } from './priced.ts'
import { quoteBody } from './quote-body.ts'
import { createQuotes, readQuote } from './quotes.ts'
import { costOf, type Terms } from './terms.ts'

const NOW_MS = 1_000_000
const LIFE_MS = 300_000
const caller = testCaller({ mode: 'test' })
const asked = { caller, operation: { id: 'rerank' }, digest: 'digest' }
const masterKey = (fill: number) => new Secret(Buffer.alloc(32, fill).toString('base64'))
const KEY = masterKey(7)

const quotesAt = (nowMs: number, masterKeys = [KEY], more = {}) =>
  createQuotes({ time: { nowMs: () => nowMs }, masterKeys, ...more })
const quotes = quotesAt(NOW_MS)

const termsAt = (version: string, usd: string, unit = 'token'): Terms => {
  const price = perMillion(usd)
  return { version, rates: [{ unit, price, published: price, providerCost: null }] }
}
const plan: Priced = { terms: termsAt('1', '0.5'), most: [1_000n], expected: () => [10n], isExact: false }
const idOf = (priced: Priced = plan) => String(quotes.issue(asked, priced).quote_id)

describe('what a call with a quote is held for', () => {
  for (const [change, today] of [
    ['risen', '5'],
    ['fallen', '0.1'],
  ] as const)
    it(`has the quoted price of a unit, and not only the quoted maximum, when prices have ${change}`, () => {
      const held = quotes.redeem(idOf(), asked).held(termsAt('2', today))
      assert.deepEqual([held.most, held.mostCounts, held.terms.version], [500_000n, [1_000n], '1'])
      // A call that uses far less than the maximum would not meet it.
      assert.equal(costOf(held.terms, [10n]), 5_000n)
    })

  it('has each of several prices and counts in its place, and what we pay ourselves as it is today', () => {
    const rate = (unit: string, price: bigint) => ({
      unit,
      price: rational(price, 3n),
      published: rational(price + 1n),
      providerCost: null,
    })
    const terms = { version: 'account', rates: [rate('input', 4n), rate('output', 40n)] }
    const id = idOf({ terms, most: [3n, 6n], expected: () => [1n, 1n], isExact: false })
    const today = {
      version: '9',
      rates: terms.rates.map((one) => ({
        ...one,
        price: rational(99n),
        published: rational(99n),
        providerCost: rational(77n),
      })),
    }
    assert.deepEqual(quotes.redeem(id, asked).held(today), {
      terms: { version: 'account', rates: terms.rates.map((one) => ({ ...one, providerCost: rational(77n) })) },
      mostCounts: [3n, 6n],
      most: 84n,
    })
  })

  it('is nothing where the thing is sold in other units now', () => {
    const redeemed = quotes.redeem(idOf(), asked)
    for (const today of [
      termsAt('1', '0.5', 'page'),
      { version: '1', rates: [...plan.terms.rates, ...plan.terms.rates] },
      { version: '1', rates: [] },
    ])
      assert.throws(() => redeemed.held(today), refusedFor('units'))
  })

  it('tells units by all of their names, in their order', () => {
    const of = (...units: string[]): Terms => ({
      version: '1',
      rates: units.flatMap((unit) => termsAt('1', '1', unit).rates),
    })
    const redeemed = (terms: Terms) =>
      quotes.redeem(idOf({ ...plan, terms, most: [1n, 1n], expected: () => [1n, 1n] }), asked)
    assert.throws(() => redeemed(of('a', 'b')).held(of('b', 'a')), refusedFor('units'))
    assert.throws(() => redeemed(of('ab', 'c')).held(of('a', 'bc')), refusedFor('units'))
  })
})

function refusedFor(words: string) {
  return (fault: unknown) => fault instanceof Fault && fault.code === 'quote_invalid' && fault.message.includes(words)
}

describe('a quote', () => {
  it('says what it will probably cost, what it can at the most, and until when', () => {
    const body = quotes.issue(asked, { ...plan, assumption: () => 'Assumed: little.' })
    assert.deepEqual(quoteBody.omit({ admission: true }).parse(body), body)
    const { quote_id, ...told } = body
    assert.match(String(quote_id), /^[\w-]+\.[\w-]{43}$/)
    assert.deepEqual(told, {
      operation: 'rerank',
      currency: 'USD',
      expected: { usd: '0.000005000', micros_usd: 5 },
      max: { usd: '0.000500000', micros_usd: 500 },
      exact: false,
      assumption: 'Assumed: little.',
      price_version: '1',
      contract_hash: null,
      expires_at: new Date(NOW_MS + LIFE_MS).toISOString(),
    })
  })

  it('rounds micros so that no more is held than it says, and no more is expected', () => {
    const { expected, max } = quotes.issue(asked, { ...plan, most: [1_001n], expected: () => [11n] })
    assert.deepEqual([expected.micros_usd, max.micros_usd], [5, 501])
  })

  it('expects no more than the most', () => {
    const { expected, max } = quotes.issue(asked, { ...plan, expected: () => [2_000n] })
    assert.deepEqual(expected, max)
  })

  it('leaves out what it assumes where the price is exact, or nothing is assumed', () => {
    const exact = quotes.issue(asked, { ...plan, isExact: true, assumption: () => 'Assumed: nothing.' })
    assert.deepEqual(['assumption' in exact, exact.exact], [false, true])
    assert.equal('assumption' in quotes.issue(asked, plan), false)
  })

  it('says of several units what each costs, in USD', () => {
    const terms = { version: '1', rates: [...termsAt('1', '0.5', 'in').rates, ...termsAt('1', '2', 'out').rates] }
    assert.deepEqual(quotes.issue(asked, { ...plan, terms, most: [1n, 1n], expected: () => [1n, 1n] }).prices, [
      { unit: 'in', usd: '0.0000005' },
      { unit: 'out', usd: '0.000002' },
    ])
    assert.equal('prices' in quotes.issue(asked, plan), false)
  })

  it('names the contract, and lives as long as it is told, in whole milliseconds', () => {
    const { contract_hash, expires_at } = quotesAt(NOW_MS + 0.7, [KEY], {
      lifeSeconds: 60,
      contractHash: () => 'f'.repeat(64),
    }).issue(asked, plan)
    assert.deepEqual([contract_hash, expires_at], ['f'.repeat(64), new Date(NOW_MS + 60_000).toISOString()])
  })

  it('binds nobody where there is no master key', () => {
    assert.equal(quotesAt(NOW_MS, []).issue(asked, plan).quote_id, null)
    assert.throws(() => quotesAt(NOW_MS, []).redeem(idOf(), asked), refusedFor('not issued here'))
  })
})

describe('who may use a quote', () => {
  const id = idOf()

  it('is who asked for it, once, and this is remembered for longer than it is valid', () => {
    const { claim } = quotes.redeem(id, asked)
    const { key, ...rest } = claim
    assert.deepEqual(rest, {
      scope: 'quote',
      limit: 1,
      fingerprint: 'digest',
      keepSeconds: 86_400,
      endsWithOwner: false,
    })
    assert.equal(key, quotes.redeem(id, asked).claim.key, 'the same quote is the same use')
    assert.notEqual(key, quotes.redeem(idOf(), asked).claim.key, 'another one is another')
  })

  it('is a caller of either mode, in that one', () => {
    const live = { ...asked, caller: testCaller({ mode: 'live' }) }
    assert.ok(quotes.redeem(String(quotes.issue(live, plan).quote_id), live))
  })

  const other = (changes: Partial<Caller>) => ({ ...asked, caller: { ...caller, ...changes } })
  for (const [who, somebody, words] of [
    ['another account', other({ accountId: testCaller().accountId }), 'another account'],
    ['the same in its other mode', other({ mode: 'live' }), 'another account'],
    ['another key', other({ credentialId: testCaller().credentialId }), 'another key'],
    ['who asks for something else', { ...asked, operation: { id: 'search' } }, 'another request'],
    ['who asks for more of it', { ...asked, digest: 'other' }, 'another request'],
  ] as const)
    it(`is not ${who}`, () => assert.throws(() => quotes.redeem(id, somebody), refusedFor(words)))

  it('is nobody from the moment on at which it expires', () => {
    assert.ok(quotesAt(NOW_MS + LIFE_MS - 1).redeem(id, asked))
    assert.throws(() => quotesAt(NOW_MS + LIFE_MS).redeem(id, asked), refusedFor('expired'))
  })

  it('is who has one of the master key before, but none of another', () => {
    assert.ok(quotesAt(NOW_MS, [masterKey(8), KEY]).redeem(id, asked))
    assert.throws(() => quotesAt(NOW_MS, [masterKey(8)]).redeem(id, asked), refusedFor('not issued here'))
  })
})

describe('a quote that is not ours', () => {
  const [text = '', signature = ''] = idOf().split('.')

  for (const [what, forged] of [
    ['nothing', ''],
    ['without a signature', text],
    ['a signature of nothing', `.${signature}`],
    ['another signature', `${text}.${'A'.repeat(43)}`],
    ['a shorter signature', `${text}.${signature.slice(1)}`],
    ['a longer signature', `${text}.${signature}A`],
    ['something before it', ` ${text}.${signature}`],
    ['something after it', `${text}.${signature} `],
    ['another text', `${Buffer.from('{}').toString('base64url')}.${signature}`],
    ['a text without an end', `${'A'.repeat(8_001)}.${signature}`],
  ] as const)
    it(`is refused: ${what}`, () => assert.throws(() => quotes.redeem(forged, asked), refusedFor('not issued here')))

  const signed = (payload: unknown) => {
    const key = Buffer.from(hkdfSync('sha256', Buffer.alloc(32, 7), '', 'farebox quotes', 32))
    const forged = Buffer.from(JSON.stringify(payload)).toString('base64url')
    return `${forged}.${createHmac('sha256', key).update(forged).digest('base64url')}`
  }
  const payload: Record<string, unknown> = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))

  it('is known by our own key for quotes, and not by the master key itself', () => {
    assert.equal(quotes.redeem(signed(payload), asked).claim.key, payload.n)
  })

  for (const [member, values] of Object.entries({
    u: ['', '1', '1/', '/1', '-1/2', '1/2  1/2', ' 1/2', '1/2 ', '1/2x', `${'1'.repeat(61)}/1`, `1/${'1'.repeat(61)}`],
    p: ['', 'half'],
    s: ['', '1.5', '-1', '1  2', ' 1', '1 ', '1 x', '1'.repeat(31), `1 ${'1'.repeat(31)}`, '1 '.repeat(100) + 1],
    x: ['', '-1', '1.5', '1 2', 'x1', '1x', '1'.repeat(31)],
    e: ['1', 1.5],
    m: ['other'],
    v: [undefined],
  }))
    it(`is one that an earlier version of ours wrote in another form: ${member}`, () => {
      for (const value of values)
        assert.throws(
          () => quotes.redeem(signed({ ...payload, [member]: value }), asked),
          refusedFor('not issued here'),
          `${member} is ${value}`,
        )
    })

  it('is none as long as a hundred prices', () => {
    const many = { u: Array(100).fill('12/34').join(' '), p: '1/2', s: Array(100).fill('12').join(' '), x: '12' }
    assert.ok(quotes.redeem(signed({ ...payload, ...many }), asked))
  })
})

describe('what operators read of a quote', () => {
  it('is for whom and how much it was, also when it has expired, by either master key', () => {
    const id = idOf()
    const read = {
      nonce: quotes.redeem(id, asked).claim.key,
      accountId: caller.accountId,
      credentialId: caller.credentialId,
      operation: 'rerank',
      most: 500_000n,
      expiresAt: new Date(NOW_MS + LIFE_MS),
    }
    assert.deepEqual(readQuote(id, [KEY]), read)
    assert.deepEqual(readQuote(id, [masterKey(8), KEY]), read)
  })

  it('is nothing of one that is none of ours', () => {
    assert.equal(readQuote(idOf(), [masterKey(8)]), undefined)
    assert.equal(readQuote('whatever', [KEY]), undefined)
  })
})

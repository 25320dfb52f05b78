import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Usage } from '../calls/call.ts'
import { NANOS_LIMIT, nanos, perMillion } from '../kernel/money.ts'
import type { Measured } from '../pricing/priced.ts'
import type { Held } from '../pricing/terms.ts'
import { UpstreamFailure } from '../upstreams/failure.ts'
import { endingOf, judge } from './judge.ts'
import type { Sent } from './plan.ts'

const KIND = { forgiven: false, failed: false }

function heldAt(usd: string): Held {
  const price = perMillion(usd)
  const rates = [{ unit: 'token', price, published: price, providerCost: price }]
  return { terms: { version: '1', rates }, mostCounts: [1_000n], most: nanos(1n) }
}

describe('what an upstream claims beyond the hold', () => {
  it('is our loss as it is claimed, and not cut to what is likely', () => {
    const { amount, usage } = endingOf(heldAt('2'), { counts: [10n ** 9n], inputTokens: 10 ** 9 }, KIND)
    assert.equal(amount, 10n ** 9n * 2_000n)
    assert.equal(usage.upstreamCost, amount)
  })

  it('is not believed in what is added up: the value and the tokens of reports', () => {
    const { usage } = endingOf(heldAt('2'), { counts: [10n ** 9n], inputTokens: 10 ** 9 }, KIND)
    assert.deepEqual([usage.value, usage.inputTokens], [100n * 1_000n * 2_000n, 1_000])
  })

  it('is cut at what the ledger can hold, so that the call ends', () => {
    const { amount } = endingOf(heldAt('1000000'), { counts: [10n ** 12n] }, KIND)
    assert.equal(amount, NANOS_LIMIT)
  })
})

/** What an upstream said, measured as the test says, of which the caller is given something or nothing. */
async function endingFor(
  { status = 200, type, text = '{}', ...sent }: { status?: number; failure?: unknown; type?: string; text?: string },
  { measured, gives = true }: { measured?: Measured | 'unreadable'; gives?: boolean } = {},
) {
  const json = text === '{}' ? {} : undefined
  const reply = { status, headers: type === undefined ? {} : { 'content-type': type }, body: Buffer.from(text), json }
  const came: Exclude<Sent, { outcome: 'streaming' }> =
    'failure' in sent
      ? { attempts: [], kind: 'native', outcome: 'unknown', failure: sent.failure }
      : { attempts: [], kind: 'native', outcome: 'answered', reply }
  const plan = {
    measure() {
      if (measured === 'unreadable') throw new Error('it says nothing')
      return measured
    },
    answer: () => (gives ? { status, headers: {}, body: '{}' } : undefined),
    isAboutUs: () => status === 401,
  }
  const { ending } = await judge(plan, { ...heldAt('1000'), most: nanos(1_000_000_000n) }, came)
  return ending
}

const lossOf = async (...said: Parameters<typeof endingFor>) => (await endingFor(...said)).loss

const used = (count: bigint): Measured => ({ counts: [count] })

describe('an answer that is withheld', () => {
  it("is forgiven, is in nobody's report and uses up nobody's minute, whatever it says that it used", async () => {
    const measured = { counts: [10n], inputTokens: 10, outputTokens: 5, cacheReadTokens: 3, cacheWriteTokens: 2 }
    const tokensOf = ({ inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens }: Usage) =>
      inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens
    const given = await endingFor({}, { measured })
    assert.deepEqual([given.forgiven, tokensOf(given.usage), given.usage.value > 0n], [false, 20, true])
    for (const status of [200, 401, 429]) {
      const { forgiven, usage } = await endingFor({ status }, { measured, gives: false })
      assert.deepEqual([forgiven, tokensOf(usage), usage.value], [true, 0, 0n])
      assert.equal(usage.upstreamCost, given.usage.upstreamCost)
    }
  })
})

describe('the evidence of a loss', () => {
  it('is what was reported beyond the hold, with what was claimed in all', async () => {
    assert.deepEqual(await lossOf({}, { measured: used(1_500n) }), { nanos: 500_000_000n, claim: 1_500_000_000n })
    assert.equal(await lossOf({}, { measured: used(1_000n) }), undefined)
  })

  it('is what was delivered and can not be read: the hold, or what it says of itself where nothing of it could be given', async () => {
    const hold = { nanos: 1_000_000_000n, claim: null }
    assert.deepEqual(await lossOf({}, { measured: 'unreadable' }), hold)
    assert.deepEqual(await lossOf({}, { gives: false }), hold)
    assert.deepEqual(await lossOf({}, { gives: false, measured: used(10n) }), {
      nanos: 10_000_000n,
      claim: 10_000_000n,
    })
  })

  it('is nothing of what is presumed: no answer, errors, our own account, answers that gave nothing', async () => {
    for (const reason of ['reset', 'headers_timeout', 'total_timeout', 'too_large'] as const) {
      const failure = new UpstreamFailure('an upstream', { reason, certainty: 'unknown' })
      assert.equal(await lossOf({ failure }), undefined)
    }
    for (const status of [401, 429, 500, 503, 999]) {
      assert.equal(await lossOf({ status }, { gives: false }), undefined)
      assert.equal(await lossOf({ status }, { measured: 'unreadable' }), undefined)
    }
    assert.equal(await lossOf({}), undefined)
  })

  it('is no page that a vendor shows in an outage, and no empty body, however dear its length would be', async () => {
    const pages = [
      { type: 'text/html; charset=utf-8', text: 'We will be back soon.' },
      { text: ' <!doctype html><title>Maintenance</title>' },
      { type: 'application/json', text: ' \n' },
    ]
    for (const page of pages) {
      assert.equal(await lossOf(page, { measured: 'unreadable' }), undefined)
      assert.equal(await lossOf(page, { gives: false }), undefined)
      assert.equal(await lossOf(page, { measured: used(1_500n) }), undefined)
    }
    assert.ok((await lossOf({ text: 'half an answ' }, { measured: 'unreadable' })) !== undefined)
  })
})

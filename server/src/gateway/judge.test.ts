import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Usage } from '../calls/call.ts'
import { NO_USAGE } from '../calls/calls.ts'
import { Fault } from '../kernel/fault.ts'
import { NANOS_LIMIT, nanos, perMillion } from '../kernel/money.ts'
import type { Measured } from '../pricing/priced.ts'
import type { Held } from '../pricing/terms.ts'
import type { UpstreamKind } from '../upstreams/bindings.ts'
import { UpstreamFailure } from '../upstreams/failure.ts'
import { endingOf, judge, transportFault } from './judge.ts'
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

type Said = {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly text?: string
  /** As it is read from the text, unless the test says otherwise. */
  readonly json?: unknown
}

/** How it is measured, and whether the caller is given something of it. */
type Made = {
  readonly measured?: Measured | Promise<Measured> | 'unreadable' | Error
  readonly gives?: boolean
  readonly kind?: UpstreamKind
  /** Whether it speaks of our account with the upstream. */
  readonly isAboutUs?: boolean
}

/** 1,000 units are held for, which cost a million nano-dollars each. */
const HELD: Held = { ...heldAt('1000'), most: nanos(1_000_000_000n) }
const MOST = HELD.most

/** What is told and charged for an answer. */
async function judgeAnswer(
  { status = 200, headers = {}, text = '{}', json = text === '{}' ? {} : undefined }: Said,
  { measured, gives = true, kind = 'native', isAboutUs = status === 401 || status === 404 }: Made = {},
) {
  const given: (Measured | undefined)[] = []
  const plan = {
    measure() {
      if (measured === 'unreadable') throw new Error('it says nothing')
      if (measured instanceof Error) throw measured
      return measured
    },
    answer(_: unknown, billed?: Measured) {
      given.push(billed)
      return gives ? { status, headers: {}, body: '{}' } : undefined
    },
    isAboutUs: () => isAboutUs,
  }
  const reply = { status, headers, body: Buffer.from(text), json }
  const outcome = await judge(plan, HELD, { attempts: [], kind, outcome: 'answered', reply })
  return { ...outcome, given }
}

async function judgeFailure(
  failure: unknown,
  { kind = 'native', outcome = 'unknown', owed }: Partial<Extract<Sent, { failure: unknown }>> = {},
) {
  const unasked = () => assert.fail('there is no answer to look at')
  const plan = { measure: unasked, answer: unasked, isAboutUs: unasked }
  return judge(plan, HELD, { attempts: [], kind, outcome, failure, ...(owed && { owed }) })
}

const lossOf = async (...said: Parameters<typeof judgeAnswer>) => (await judgeAnswer(...said)).ending.loss
const failureOf = (certainty: 'not_sent' | 'unknown', retryAfterSeconds?: number) =>
  new UpstreamFailure('u', {
    reason: 'reset',
    certainty,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  })

const used = (count: bigint): Measured => ({ counts: [count] })
const tokensOf = ({ inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens }: Usage | Measured) => [
  inputTokens,
  outputTokens,
  cacheReadTokens,
  cacheWriteTokens,
]

describe('an answer that is given', () => {
  const measured = { counts: [10n], inputTokens: 10, outputTokens: 5, cacheReadTokens: 3, cacheWriteTokens: 2 }

  it('costs what was used, and says so in reports', async () => {
    const { ending, answer, fault, measured: told } = await judgeAnswer({}, { measured })
    assert.deepEqual([answer?.status, fault, told], [200, undefined, measured])
    assert.deepEqual(ending, {
      amount: 10_000_000n,
      forgiven: false,
      usage: {
        value: 10_000_000n,
        upstreamCost: 10_000_000n,
        executed: true,
        failed: false,
        inputTokens: 10,
        outputTokens: 5,
        cacheReadTokens: 3,
        cacheWriteTokens: 2,
      },
    })
  })

  it('is the same where its tokens had to be counted, which takes a moment', async () => {
    const [atOnce, later] = [
      await judgeAnswer({}, { measured }),
      await judgeAnswer({}, { measured: Promise.resolve(measured) }),
    ]
    assert.deepEqual(later, atOnce)
  })

  it('is charged though it is an error, if it says what it used, and counts as failed from 400 on', async () => {
    for (const [status, failed] of [
      [399, false],
      [400, true],
      [599, true],
    ] as const) {
      const { ending, answer } = await judgeAnswer({ status }, { measured })
      assert.deepEqual([answer?.status, ending.forgiven, ending.usage.failed], [status, false, failed])
    }
  })

  it('is given and not charged where it does not say what it used: the most that it can be is our loss', async () => {
    const { ending, answer, given } = await judgeAnswer({})
    assert.deepEqual([answer?.status, given], [200, [undefined]])
    const { amount, forgiven, usage, loss } = ending
    assert.deepEqual([amount, forgiven, loss, usage.failed], [MOST, true, undefined, false])
    assert.deepEqual([usage.value, usage.upstreamCost, usage.executed], [0n, MOST, true])
  })

  it('tells the caller no more tokens of any kind than the request can have had', async () => {
    const lies = {
      counts: [1n],
      inputTokens: 1_001,
      outputTokens: 2_000,
      cacheReadTokens: 3_000,
      cacheWriteTokens: 4_000,
    }
    const { given, ending } = await judgeAnswer({}, { measured: lies })
    const [billed] = given
    assert.deepEqual(billed && tokensOf(billed), [1_000, 1_000, 1_000, 1_000])
    assert.deepEqual(tokensOf(ending.usage), [1_000, 1_000, 1_000, 1_000])
  })
})

describe('an answer that is withheld', () => {
  const measured = { counts: [10n], inputTokens: 10, outputTokens: 5, cacheReadTokens: 3, cacheWriteTokens: 2 }

  it("is forgiven, is in nobody's report and uses up nobody's minute, whatever it says that it used", async () => {
    for (const status of [200, 401, 429]) {
      const { ending, answer, fault, measured: told } = await judgeAnswer({ status }, { measured, gives: false })
      assert.deepEqual([answer, fault !== undefined, told], [undefined, true, measured])
      assert.deepEqual([ending.forgiven, ending.usage.failed], [true, true])
      assert.deepEqual([tokensOf(ending.usage), ending.usage.value], [[0, 0, 0, 0], 0n])
      assert.equal(ending.usage.upstreamCost, 10_000_000n)
    }
  })

  it('is one with a status that HTTP does not have, from 600 on', async () => {
    const { answer, fault, given } = await judgeAnswer({ status: 600 }, { measured })
    assert.deepEqual([answer, fault?.code, given], [undefined, 'upstream_transport', []])
  })

  it('is told as a broken answer, of whichever kind the upstream is', async () => {
    const of = async (kind: UpstreamKind) => (await judgeAnswer({}, { measured, gives: false, kind })).fault?.code
    assert.deepEqual([await of('native'), await of('managed')], ['upstream_transport', 'managed_upstream_transport'])
  })

  it('is told by what is wrong where nobody can add it up, and the call ends as one that gave nothing', async () => {
    const own = new Fault('not_configured')
    assert.equal((await judgeAnswer({}, { measured: own })).fault, own)
    const { fault, ending } = await judgeAnswer({}, { measured: 'unreadable' })
    assert.equal(fault?.code, 'internal_error')
    const { amount, forgiven, usage } = ending
    assert.deepEqual([amount, forgiven, usage.failed, usage.executed], [MOST, true, true, true])
    assert.deepEqual([usage.upstreamCost, usage.value], [MOST, 0n])
  })
})

describe('what an upstream says about our own account', () => {
  const faultOf = async (status: number, headers = {}) => {
    const { fault, given } = await judgeAnswer({ status, headers }, { measured: used(1n) })
    assert.deepEqual(given, [], 'the caller is given nothing of it')
    return fault
  }

  it('is told as ours: refused, not found, or at its limit', async () => {
    assert.equal((await faultOf(401))?.code, 'upstream_account')
    assert.equal((await faultOf(404))?.code, 'upstream_not_found')
    assert.equal((await faultOf(429))?.code, 'upstream_rate_limit')
  })

  for (const [after, seconds] of [
    ['7', 7],
    ['1', 1],
    ['3600', 3_600],
    ['86400', 3_600],
    ['0', undefined],
    ['-5', undefined],
    ['1.5', undefined],
    ['Wed, 21 Oct 2026 07:28:00 GMT', undefined],
    [undefined, undefined],
  ] as const)
    it(`says how long to wait where the upstream does, for an hour at the most: ${after}`, async () => {
      const fault = await faultOf(429, after === undefined ? {} : { 'retry-after': after })
      assert.equal(fault?.retryAfterSeconds, seconds)
    })
})

describe('a call without an answer', () => {
  it('has failed and costs nothing where nothing of it was sent', async () => {
    const { ending, fault, measured } = await judgeFailure(failureOf('not_sent'), { outcome: 'not_sent' })
    assert.deepEqual(ending, { amount: null, forgiven: false, usage: { ...NO_USAGE, executed: true, failed: true } })
    assert.deepEqual([fault?.code, measured], ['upstream_unreachable', undefined])
  })

  it('is forgiven where it may have been sent, and what it may have cost is our loss, without evidence', async () => {
    const { ending, fault } = await judgeFailure(failureOf('unknown'))
    const usage = { ...NO_USAGE, executed: true, failed: true, upstreamCost: MOST }
    assert.deepEqual(ending, { amount: MOST, forgiven: true, usage })
    assert.equal(fault?.code, 'upstream_transport')
  })

  it('costs what was asked where its caller has left and it was given up for that, and has not failed', async () => {
    const owed = { counts: [7n], inputTokens: 7 }
    const { ending, fault, measured } = await judgeFailure(failureOf('unknown'), { owed: async () => owed })
    const usage = { ...NO_USAGE, executed: true, value: 7_000_000n, upstreamCost: 7_000_000n, inputTokens: 7 }
    assert.deepEqual(ending, { amount: 7_000_000n, forgiven: false, usage })
    assert.deepEqual([fault?.code, measured], ['upstream_transport', owed])
  })
})

describe('the fault of a failed exchange', () => {
  for (const [certainty, kind, code] of [
    ['not_sent', 'native', 'upstream_unreachable'],
    ['not_sent', 'managed', 'managed_upstream_unreachable'],
    ['unknown', 'native', 'upstream_transport'],
    ['unknown', 'managed', 'managed_upstream_transport'],
  ] as const)
    it(`says whether the caller may repeat it, and hides what happened: ${certainty}, ${kind}`, () => {
      const cause = failureOf(certainty, 9)
      const fault = transportFault(kind, cause)
      assert.deepEqual([fault.code, fault.cause, fault.retryAfterSeconds], [code, cause, 9])
    })

  it('says nothing of waiting where the upstream does not', () => {
    assert.equal(transportFault('native', failureOf('unknown')).retryAfterSeconds, undefined)
  })

  it('is one of our own as it is, and of anything else that it may have been sent', () => {
    const [own, other] = [new Fault('overloaded'), new Error('whatever')]
    assert.equal(transportFault('native', own), own)
    const fault = transportFault('managed', other)
    assert.deepEqual([fault.code, fault.cause], ['managed_upstream_transport', other])
  })
})

describe('the evidence of a loss', () => {
  it('is what was reported beyond the hold, with what was claimed in all', async () => {
    assert.deepEqual(await lossOf({}, { measured: used(1_500n) }), { nanos: 500_000_000n, claim: 1_500_000_000n })
    assert.equal(await lossOf({}, { measured: used(1_000n) }), undefined)
  })

  it('is what was delivered and can not be read: the hold, or what it says of itself where nothing of it could be given', async () => {
    const hold = { nanos: MOST, claim: null }
    assert.deepEqual(await lossOf({}, { measured: 'unreadable' }), hold)
    assert.deepEqual(await lossOf({}, { gives: false }), hold)
    assert.deepEqual(await lossOf({}, { gives: false, measured: used(10n) }), {
      nanos: 10_000_000n,
      claim: 10_000_000n,
    })
    assert.equal(await lossOf({}, { gives: false, measured: used(0n) }), undefined)
  })

  it('is delivered only by a status of success', async () => {
    const isEvidence = async (status: number) => (await lossOf({ status }, { measured: 'unreadable' })) !== undefined
    const found = await Promise.all([199, 200, 299, 300].map(isEvidence))
    assert.deepEqual(found, [false, true, true, false])
  })

  it('is nothing of what is presumed: no answer, errors, our own account, answers that gave nothing', async () => {
    for (const reason of ['reset', 'headers_timeout', 'total_timeout', 'too_large'] as const) {
      const failure = new UpstreamFailure('an upstream', { reason, certainty: 'unknown' })
      assert.equal((await judgeFailure(failure)).ending.loss, undefined)
    }
    for (const status of [401, 429, 500, 503, 999]) {
      assert.equal(await lossOf({ status }, { gives: false }), undefined)
      assert.equal(await lossOf({ status }, { measured: 'unreadable' }), undefined)
    }
    assert.equal(await lossOf({}), undefined)
    assert.equal(
      await lossOf({}, { isAboutUs: true }),
      undefined,
      'though the upstream says so with a status of success',
    )
  })

  it('is no page that a vendor shows in an outage, and no empty body, however dear its length would be', async () => {
    const pages = [
      { headers: { 'content-type': 'text/html; charset=utf-8' }, text: 'We will be back soon.' },
      { headers: { 'content-type': ' Text/HTML' }, text: 'We will be back soon.' },
      { text: ' <!doctype html><title>Maintenance</title>' },
      { headers: { 'content-type': 'application/json' }, text: ' \n' },
    ]
    for (const page of pages) {
      assert.equal(await lossOf(page, { measured: 'unreadable' }), undefined)
      assert.equal(await lossOf(page, { gives: false }), undefined)
      assert.equal(await lossOf(page, { measured: used(1_500n) }), undefined)
    }
  })

  it('is what is no such page: half an answer, and one in JSON whatever its header calls it', async () => {
    const json = { 'content-type': 'application/json' }
    assert.ok((await lossOf({ text: 'half an answ', headers: json }, { measured: 'unreadable' })) !== undefined)
    const html = { 'content-type': 'text/html' }
    assert.ok((await lossOf({ headers: html }, { measured: used(1_500n) })) !== undefined)
  })
})

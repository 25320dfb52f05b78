import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { CompletedError, Farebox, FareboxError, OutcomeUnknownError } from '../../client/src/index.ts'
import { count, recordProof, seed } from '../../harness/proof.ts'
import { FakeClock } from './fake-clock.ts'
import {
  createSimulatedGateway,
  type Event,
  type Fate,
  type LookFate,
  PRICE_NANOS,
  type Run,
} from './simulated-gateway.ts'

const SEQUENCES = count({ full: 10_000, reduced: 1_500 })
const MAX_RETRIES = 4
const MAX_WAIT_MS = 60_000
const TIMEOUT_MS = 60_000

const run: fc.Arbitrary<Run> = fc.record({
  forMs: fc.constantFrom(0, 50, 3_000, 30_000, 100_000),
  ends: fc.constantFrom('charged', 'charged', 'charged', 'charged error', 'provider error', 'no retry', 'unsettled'),
})
const waitSeconds = fc.constantFrom(null, 0, 1, 2, 7, 20, 45, 60, 61, 3_600)
const refusal = (status: number, codes: readonly string[], isLasting = false) =>
  fc.record({
    way: fc.constant('refused' as const),
    status: fc.constant(status),
    code: fc.constantFrom(...codes),
    retryAfterSeconds: waitSeconds,
    isLasting: fc.constant(isLasting),
  })
const fate: fc.Arbitrary<Fate> = fc.oneof(
  fc.record({ way: fc.constant('through' as const), call: run }),
  { weight: 3, arbitrary: refusal(429, ['rate_limit_exceeded', 'upstream_rate_limit']) },
  {
    weight: 2,
    arbitrary: refusal(503, ['overloaded', 'billing_dependency_timeout', 'managed_upstream_unreachable']),
  },
  refusal(429, ['quota_exceeded'], true),
  refusal(503, ['not_configured']),
  fc.oneof(...LASTING().map(([status, code]) => refusal(status, [code]))),
  {
    weight: 4,
    arbitrary: fc.record({
      way: fc.constant('cut' as const),
      afterMs: fc.constantFrom(0, 20, 5_000),
      arrivesAfterMs: fc.constantFrom(null, 0, 0, 500, 20_000),
      inBody: fc.boolean(),
      call: run,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      way: fc.constant('between' as const),
      status: fc.constantFrom(500, 502, 503, 504, 408),
      arrives: fc.boolean(),
      call: run,
    }),
  },
  fc.record({ way: fc.constant('silence' as const), arrives: fc.boolean(), call: run }),
)
const look: fc.Arbitrary<LookFate> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<LookFate>('through') },
  fc.constantFrom<LookFate>('cut', 'limited', 'unavailable', 'garbage'),
)
const script = fc.record({
  fates: fc.array(fate, { minLength: 1, maxLength: 7 }),
  looks: fc.array(look, { maxLength: 30 }),
  chance: fc.array(fc.double({ min: 0, max: 0.999_999, noNaN: true }), { minLength: 1, maxLength: 20 }),
})
type Script = typeof script extends fc.Arbitrary<infer T> ? T : never

/** What only the caller, or the operator, can mend. */
function LASTING(): readonly (readonly [number, string])[] {
  return [
    [400, 'invalid_request'],
    [401, 'invalid_credential'],
    [402, 'insufficient_balance'],
    [402, 'cost_cap_exceeded'],
    [403, 'forbidden'],
    [404, 'resource_not_found'],
    [409, 'quote_used'],
    [422, 'idempotency_mismatch'],
  ]
}

type Played = {
  readonly events: readonly Event[]
  readonly came: unknown
  readonly charged: bigint
  readonly key: string
}

async function play({ fates, looks, chance }: Script, again = false): Promise<Played> {
  const clock = new FakeClock()
  const gateway = createSimulatedGateway(clock, { fates, looks })
  let drawn = 0
  const farebox = new Farebox({
    apiKey: 'fb_test_simulated',
    baseUrl: 'https://simulated.invalid',
    fetch: gateway.fetch,
    clock,
    random: () => chance[drawn++ % chance.length] ?? 0,
    maxRetries: MAX_RETRIES,
    maxWaitMs: MAX_WAIT_MS,
    timeoutMs: TIMEOUT_MS,
  })
  const key = 'one-key'
  const call = () =>
    farebox.call('tag_detail', { tag_name: 'cats' }, { idempotencyKey: key }).catch((error: unknown) => error)
  let came = await clock.until(call())
  // Whoever was told to call again with the same key does so, until it is told something else.
  for (let times = 0; again && times < 3 && came instanceof FareboxError && came.cost === null; times += 1)
    came = await clock.until(call())
  await clock.toTheEnd()
  return { events: gateway.events, came, charged: gateway.charged(), key }
}

/** Whether an answer says that nothing has begun, or that nothing was charged. */
function saysUncharged(event: Event): boolean {
  if (event.kind !== 'heard' || !event.mayRepeat) return false
  if (event.status === 429) return event.code !== 'quota_exceeded'
  if (event.costNanos !== null) return event.status >= 500 && event.costNanos === 0n
  return ['overloaded', 'billing_dependency_timeout', 'managed_upstream_unreachable'].includes(event.code)
}

/** Each sending but the first stands on what was heard, or looked up, since the one before. */
function requireSafeRepetitions(events: readonly Event[]): void {
  let last: Event | undefined
  for (const event of events) {
    if (event.kind === 'sent' && last !== undefined) {
      const isSafe = saysUncharged(last) || (last.kind === 'looked' && last.found === null)
      assert.ok(
        isSafe,
        `sent again after ${JSON.stringify(last, (_, value) => (typeof value === 'bigint' ? String(value) : value))}`,
      )
    }
    last = event
  }
}

/** The waits, by the written rule and not by the client's own code. Returns how many of each kind there were. */
function requireWaits(events: readonly Event[]): { limited: number; transient: number } {
  const waits = { limited: 0, transient: 0 }
  let [limitedMs, transients] = [0, 0]
  let since: Event | undefined
  let retryAfterMs = 0
  let isLimited = false
  for (const event of events) {
    if (event.kind === 'heard') {
      retryAfterMs = event.retryAfterMs ?? 0
      isLimited = event.status === 429
    } else if (event.kind === 'cut') [retryAfterMs, isLimited] = [0, false]
    if (event.kind === 'sent' && since !== undefined) {
      const waited = event.atMs - since.atMs
      if (isLimited) limitedMs = Math.max(2 * limitedMs, retryAfterMs || 1_000)
      else transients += 1
      const base = isLimited ? limitedMs : Math.min(8_000, 500 * 2 ** (transients - 1))
      const most = isLimited ? 30_000 : Number.POSITIVE_INFINITY
      const [from, to] = [0.75, 1.25].map((part) => Math.max(retryAfterMs, Math.min(most, base * part)))
      assert.ok(waited >= (from ?? 0) - 1e-6 && waited <= (to ?? 0) + 1e-6, `waited ${waited} ms, not ${from} to ${to}`)
      assert.ok(retryAfterMs <= MAX_WAIT_MS, 'who is told to wait longer is told so')
      waits[isLimited ? 'limited' : 'transient'] += 1
    }
    since = event
  }
  return waits
}

/** What the caller was told about money is what was charged. */
function requireTruth({ came, charged }: Played): void {
  assert.ok(charged <= PRICE_NANOS, `charged ${charged}`)
  if (came instanceof FareboxError) {
    if (came.cost !== null) assert.equal(came.cost.nanos, charged, 'what it was told that it cost')
    if (came instanceof CompletedError) assert.equal(charged, PRICE_NANOS)
    assert.ok(came.fix.length > 10)
    assert.ok(!JSON.stringify(came).includes('fb_test_'))
    return
  }
  assert.ok(came !== null && typeof came === 'object' && 'cost' in came, String(came))
  const { cost } = came as { cost: { nanos: bigint } }
  assert.deepEqual([cost.nanos, charged], [PRICE_NANOS, PRICE_NANOS])
}

describe('a call among refusals, failures and cut connections', () => {
  it('CLIENT-1 CLIENT-2 CLIENT-5 waits as it is written, and is never repeated where that could be charged twice', async () => {
    const seen = { sendings: 0, lookUps: 0, limited: 0, transient: 0, answered: 0, completed: 0, unknown: 0, failed: 0 }
    await fc.assert(
      fc.asyncProperty(script, async (one) => {
        const played = await play(one)
        const { events, came } = played
        const sent = events.filter((event) => event.kind === 'sent')
        assert.ok(sent.length <= 1 + MAX_RETRIES)
        for (const { key, body, url } of sent)
          assert.deepEqual([key, body, url], [played.key, sent[0]?.body, sent[0]?.url])
        requireSafeRepetitions(events)
        const waits = requireWaits(events)
        requireTruth(played)
        seen.sendings += sent.length
        seen.lookUps += events.filter(({ kind }) => kind.startsWith('looked')).length
        seen.limited += waits.limited
        seen.transient += waits.transient
        if (!(came instanceof FareboxError)) seen.answered += 1
        else if (came instanceof CompletedError) seen.completed += 1
        else if (came instanceof OutcomeUnknownError) seen.unknown += 1
        else seen.failed += 1
      }),
      { numRuns: SEQUENCES, seed },
    )
    for (const [what, times] of Object.entries(seen)) assert.ok(times > SEQUENCES / 100, `${what}: ${times}`)
    recordProof('client-sequences', 'generated sequences', { sequences: SEQUENCES, ...seen, counterexamples: 0 })
  })

  it('CLIENT-2 is charged once, however often its caller makes it again with its key', async () => {
    const runs = Math.ceil(SEQUENCES / 4)
    await fc.assert(
      fc.asyncProperty(script, async (one) => {
        const { charged, events } = await play(one, true)
        assert.ok(charged <= PRICE_NANOS)
        assert.ok(new Set(events.flatMap((event) => (event.kind === 'sent' ? [event.key] : []))).size === 1)
      }),
      { numRuns: runs, seed },
    )
    recordProof('client-sequences', 'made again by their callers', { sequences: runs, charged_twice: 0 })
  })

  it('CLIENT-5 is sent once where only its caller or the operator can mend it', async () => {
    for (const [status, code] of [
      ...LASTING(),
      [503, 'not_configured'],
      [503, 'invalid_billing_configuration'],
      [429, 'quota_exceeded'],
    ] as const) {
      const fates: Fate[] = [{ way: 'refused', status, code, retryAfterSeconds: 1, isLasting: false }]
      const { events, came } = await play({ fates, looks: [], chance: [0.5] })
      assert.ok(came instanceof FareboxError && came.code === code, code)
      assert.deepEqual(
        events.map(({ kind }) => kind),
        ['sent', 'heard'],
        code,
      )
    }
  })

  it('CLIENT-2 whose outcome can not be looked up is not repeated, and is not called free', async () => {
    const clock = new FakeClock()
    const fates: Fate[] = [
      { way: 'cut', afterMs: 0, arrivesAfterMs: 0, inBody: false, call: { forMs: 10, ends: 'charged' } },
    ]
    const gateway = createSimulatedGateway(clock, { fates, looks: Array.from({ length: 20 }, () => 'cut' as const) })
    const farebox = new Farebox({
      apiKey: 'k',
      baseUrl: 'https://simulated.invalid',
      fetch: gateway.fetch,
      clock,
      random: () => 0,
    })
    const error = await clock.until(farebox.call('tag_detail', { tag_name: 'cats' }).catch((one: unknown) => one))
    assert.ok(error instanceof OutcomeUnknownError)
    assert.equal(error.cost, null)
    assert.equal(gateway.events.filter(({ kind }) => kind === 'sent').length, 1)
  })
})

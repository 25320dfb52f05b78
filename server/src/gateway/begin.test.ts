import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Judgement } from '../calls/call.ts'
import { TIERS } from '../catalogue/tiers.ts'
import { systemClock } from '../kernel/clock.ts'
import { Fault } from '../kernel/fault.ts'
import { createIds } from '../kernel/ids.ts'
import { ZERO } from '../kernel/money.ts'
import { rational } from '../kernel/rational.ts'
import { askOf } from '../limits/ask.ts'
import { createSpentWindows } from '../limits/spent-windows.ts'
import { createBegin } from './begin.ts'

const ids = createIds({ clock: systemClock })
const NOW_MS = 1_000_000
const time = { nowMs: () => NOW_MS }
const LIMITS = ['tokens'] as const
const [WINDOW] = askOf(TIERS.free, LIMITS).windows

/** What a caller is told whom PostgreSQL refuses so, with a window that ends then, and so many tokens reserved by calls that run here. */
async function refusalOf(
  outcome: 'requests_spent' | 'tokens_spent',
  { endsAtMs, left = 0, reserved = 0, tokens = 1_000 }: Refusing,
): Promise<Fault> {
  assert.ok(WINDOW !== undefined)
  const credentialId = ids.next()
  const caller = {
    workspaceId: ids.next(),
    accountId: ids.next(),
    credentialId,
    mode: 'live',
    tier: 'free',
    limits: TIERS.free,
    scopes: null,
    networks: null,
    allowances: [],
    token: null,
    priceMultiplier: rational(1n),
  } as const
  const rate = { limit: 60_000, left, resetAtMs: endsAtMs }
  const rates = { requests: { ...rate, limit: 60 }, tokens: rate }
  const judgement: Judgement = { outcome, window: WINDOW, free: ZERO, judgedAt: '', rates }
  const begin = createBegin({
    calls: {
      begin: async () => judgement,
      reservedTokens: (of, windowEndsAtMs) => (of === credentialId && windowEndsAtMs === endsAtMs ? reserved : 0),
    },
    spent: createSpentWindows({ time }),
    time,
  })
  const operation = { id: 'chat', limits: LIMITS }
  const wish = { id: ids.next(), caller, operation, hold: null, tokens, claims: [] }
  const [first, again] = [await thrownBy(() => begin(wish)), await thrownBy(() => begin(wish))]
  assert.deepEqual([again.message, again.retryAfterSeconds], [first.message, first.retryAfterSeconds])
  return first
}

type Refusing = {
  readonly endsAtMs: number
  readonly left?: number
  readonly reserved?: number
  readonly tokens?: number
}

async function thrownBy(work: () => Promise<unknown>): Promise<Fault> {
  const fault = await work().catch((thrown: unknown) => thrown)
  assert.ok(fault instanceof Fault)
  return fault
}

describe('how long a call that was refused for a limit is to wait', () => {
  for (const outcome of ['requests_spent', 'tokens_spent'] as const)
    it(`is never longer than the window, though its end is a little more than that ahead of our clock: ${outcome}`, async () => {
      assert.equal((await refusalOf(outcome, { endsAtMs: NOW_MS + 60_004 })).retryAfterSeconds, 60)
      assert.equal((await refusalOf(outcome, { endsAtMs: NOW_MS + 12_001 })).retryAfterSeconds, 13)
      assert.equal((await refusalOf(outcome, { endsAtMs: NOW_MS - 5 })).retryAfterSeconds, 1)
    })

  it('is a second where what calls that run here have reserved would make room, to the very token', async () => {
    const endsAtMs = NOW_MS + 40_000
    const enough = await refusalOf('tokens_spent', { endsAtMs, left: 300, reserved: 700 })
    assert.equal(enough.retryAfterSeconds, 1)
    assert.match(
      enough.message,
      /300 of 60,000 per 60 seconds are left\. The limit is that of your tier\. Your running calls hold .* Retry in 1 s\.$/,
    )
    const tooLittle = await refusalOf('tokens_spent', { endsAtMs, left: 300, reserved: 699 })
    assert.equal(tooLittle.retryAfterSeconds, 40)
    assert.match(
      tooLittle.message,
      /300 of 60,000 per 60 seconds are left\. The limit is that of your tier\. Retry in 40 s\.$/,
    )
  })
})

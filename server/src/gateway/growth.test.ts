import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createStillClock } from '../../../harness/still-clock.ts'
import type { Growth as Answer, Extension } from '../calls/call.ts'
import type { Unheard } from '../calls/calls.ts'
import { Fault } from '../kernel/fault.ts'
import { nanos } from '../kernel/money.ts'
import { type Counted, createGrowths, firstSlice, firstTokens, type GrowthPlan, HoldSpent } from './growth.ts'

const INPUT = 100
const BY_TEXT = { by: 'text', tokenBytes: 1 } as const
const BY_TIME = { by: 'time', tokensPerSecond: 600 } as const
const FIRST_TOKENS = firstTokens(BY_TEXT)
const call = { id: 'call', accountId: 'account', windows: [], ceilings: [] }

/** A token of output costs a nano-dollar. */
function planOf(counted: Counted, outputMost = 32_000, choices = 1): GrowthPlan {
  return {
    outputMost,
    counted,
    choices,
    sliceFor: (output) => ({
      held: { terms: { version: '1', rates: [] }, mostCounts: [BigInt(output)], most: nanos(BigInt(INPUT + output)) },
      tokens: output,
    }),
  }
}

type Limits = { money: number; tokens: number }

/** One stream and what there is for it, played by the test. */
function start(counted: Counted, limits: Partial<Limits> = {}, outputMost = 32_000, choices = 1) {
  const left: Limits = { money: Number.POSITIVE_INFINITY, tokens: Number.POSITIVE_INFINITY, ...limits }
  const clock = createStillClock()
  const asked: number[] = []
  const seen = { textBytes: 0, allowed: 0, stopped: undefined as unknown, isWritten: false }
  let held = { money: INPUT + firstTokens(counted), tokens: firstTokens(counted) }
  let answering: Promise<unknown> | undefined
  let fails: Answer['outcome'] | Unheard['outcome'] | undefined

  function judged({ amount, tokens }: Extension): Answer | Unheard {
    const now = { held: nanos(BigInt(held.money)), reserved: held.tokens, judgedAt: '' }
    if (fails === 'unanswered') return { outcome: 'unanswered' }
    if (fails !== undefined) return { outcome: fails, ...now } as Answer
    const more = { money: Number(amount) - held.money, tokens: tokens - held.tokens }
    if (more.tokens > left.tokens)
      return { outcome: 'tokens_spent', group: 'all', left: left.tokens, resetAtMs: 0, ...now }
    if (more.money > left.money) return { outcome: 'money_spent', left: nanos(BigInt(left.money)), ...now }
    left.money -= more.money
    left.tokens -= more.tokens
    held = { money: Number(amount), tokens }
    return { outcome: 'extended', held: amount, reserved: tokens, judgedAt: '' }
  }

  const growth = createGrowths({
    clock,
    async extend(extension) {
      asked.push(extension.tokens)
      await answering
      return judged(extension)
    },
  })(planOf(counted, outputMost, choices), call)

  function open(): void {
    seen.allowed = growth.start({
      textBytes: () => seen.textBytes,
      isWritten: () => seen.isWritten,
      allow: (textBytes) => {
        seen.allowed = textBytes
      },
      stop: (reason) => {
        seen.stopped = reason
      },
    })
  }

  return {
    growth,
    asked,
    seen,
    left,
    clock,
    open,
    /** Text that comes, as far as it may pass. */
    async write(bytes: number): Promise<void> {
      const isWaiting = seen.textBytes + bytes > seen.allowed
      seen.textBytes = Math.min(seen.textBytes + bytes, seen.allowed)
      growth.note(isWaiting)
      for (let turns = 0; turns < 8; turns += 1) await turn()
    },
    answerAfter(promise: Promise<unknown>): void {
      answering = promise
    },
    failWith(outcome: typeof fails): void {
      fails = outcome
    },
    brokenBy: () => (seen.stopped instanceof Fault ? seen.stopped.code : undefined),
    endedBy: () => (seen.stopped instanceof HoldSpent ? seen.stopped.endedBy : undefined),
    heldFor: () => Number(growth.held().most) - INPUT,
  }
}

describe('a hold that grows with the text', () => {
  it('begins with a slice, or with all where that is no more', () => {
    assert.equal(firstSlice(planOf(BY_TEXT))?.tokens, FIRST_TOKENS)
    assert.equal(firstSlice(planOf(BY_TEXT, FIRST_TOKENS)), undefined)
    assert.equal(firstSlice(undefined), undefined)
  })

  it('asks for twice as much each time before half of the last slice is left, and for nothing before that', async () => {
    const stream = start(BY_TEXT)
    stream.open()
    await stream.write(500)
    assert.deepEqual(stream.asked, [])
    await stream.write(20)
    assert.deepEqual(stream.asked, [1_024 + 2_048])
    await stream.write(1_500)
    assert.deepEqual(stream.asked, [3_072])
    await stream.write(40)
    assert.deepEqual(stream.asked, [3_072, 7_168])
    assert.equal(stream.heldFor(), 7_168)
    assert.ok(stream.seen.allowed < 7_168)
  })

  it('needs no more than a token for so many bytes as the route says', async () => {
    const stream = start({ by: 'text', tokenBytes: 3 })
    stream.open()
    await stream.write(1_500)
    assert.deepEqual(stream.asked, [])
    await stream.write(60)
    assert.deepEqual(stream.asked, [3_072])
  })

  it('asks for no more than can come, and lets everything pass then', async () => {
    const stream = start(BY_TEXT, {}, 2_000)
    stream.open()
    await stream.write(600)
    assert.deepEqual(stream.asked, [2_000])
    assert.equal(stream.seen.allowed, Number.POSITIVE_INFINITY)
    await stream.write(5_000)
    assert.deepEqual(stream.asked, [2_000])
  })

  it('takes what is left where there is less than a slice', async () => {
    const stream = start(BY_TEXT, { money: 300 })
    stream.open()
    await stream.write(600)
    assert.deepEqual(stream.asked, [3_072, 1_324])
    assert.equal(stream.heldFor(), 1_324)
    assert.equal(stream.seen.stopped, undefined)
  })

  for (const [limit, limits] of [
    ['balance', { money: 10 }],
    ['tokens_per_minute', { tokens: 10 }],
  ] as const)
    it(`waits for a while where there is no more (${limit}), and then stops`, async () => {
      const stream = start(BY_TEXT, limits)
      stream.open()
      await stream.write(900)
      await stream.clock.pass(10_000)
      assert.equal(stream.seen.stopped, undefined, 'nothing waits yet')
      await stream.write(500)
      await stream.clock.pass(1_500)
      assert.equal(stream.seen.stopped, undefined)
      await stream.clock.pass(1_000)
      assert.equal(stream.endedBy(), limit)
      assert.equal(stream.heldFor(), FIRST_TOKENS)
      assert.ok(stream.seen.textBytes <= FIRST_TOKENS)
    })

  it('asks for as long as something waits, however much of a slice is left', async () => {
    const stream = start(BY_TEXT)
    stream.open()
    stream.growth.note(true)
    for (let turns = 0; turns < 8; turns += 1) await turn()
    assert.deepEqual(stream.asked, [3_072])
    stream.growth.note(true)
    for (let turns = 0; turns < 8; turns += 1) await turn()
    assert.deepEqual(stream.asked, [3_072, 7_168])
  })

  it('leaves room for what is no text in each choice, and passes on many of them', async () => {
    for (const [choices, allowed] of [
      [1, FIRST_TOKENS - 64],
      [8, FIRST_TOKENS - 128],
      [128, 0],
    ] as const) {
      const stream = start(BY_TEXT, {}, 32_000, choices)
      stream.open()
      assert.equal(stream.seen.allowed, allowed)
      await stream.write(2_000)
      assert.ok(stream.seen.allowed > allowed)
    }
  })

  it('asks on from a slice that is too small to be half used', async () => {
    const stream = start(BY_TEXT, { money: 64 })
    stream.open()
    await stream.write(1_000)
    assert.equal(stream.heldFor(), FIRST_TOKENS + 64)
    await stream.write(500)
    stream.left.money = 10_000
    await stream.clock.pass(3_000)
    assert.equal(stream.seen.stopped, undefined)
    assert.ok(stream.heldFor() > FIRST_TOKENS + 64)
  })

  it('goes on where others settle while it waits', async () => {
    const stream = start(BY_TEXT, { money: 10 })
    stream.open()
    await stream.write(2_000)
    await stream.clock.pass(500)
    stream.left.money = 10_000
    await stream.clock.pass(1_000)
    assert.equal(stream.seen.stopped, undefined)
    assert.equal(stream.heldFor(), 3_072)
    await stream.clock.pass(10_000)
    assert.equal(stream.seen.stopped, undefined)
  })

  it('asks for one thing at a time, and is done when that is answered', async () => {
    const stream = start(BY_TEXT)
    stream.open()
    const { promise, resolve } = Promise.withResolvers<void>()
    stream.answerAfter(promise)
    await stream.write(600)
    await stream.write(200)
    assert.deepEqual(stream.asked, [3_072])
    let isDone = false
    const done = stream.growth.end().then(() => {
      isDone = true
    })
    await turn()
    assert.equal(isDone, false)
    resolve()
    await done
    assert.equal(stream.heldFor(), 3_072)
    await stream.write(2_000)
    assert.deepEqual(stream.asked, [3_072])
  })

  it('asks for nothing once the answer has been written', async () => {
    const stream = start(BY_TEXT)
    stream.open()
    stream.seen.isWritten = true
    await stream.write(900)
    assert.deepEqual(stream.asked, [])
  })

  it('asks again where nobody answers, and breaks off when text has waited for it', async () => {
    const stream = start(BY_TEXT)
    stream.open()
    stream.failWith('unanswered')
    await stream.write(600)
    await stream.clock.pass(10_000)
    assert.equal(stream.seen.stopped, undefined)
    await stream.write(1_000)
    await stream.clock.pass(3_000)
    assert.equal(stream.brokenBy(), 'billing_dependency_timeout')
  })

  it('breaks off where a question fails, and is settled with what is held', async () => {
    const stream = start(BY_TEXT)
    stream.open()
    stream.answerAfter(Promise.reject(new Error('a defect')))
    await stream.write(600)
    assert.equal(stream.brokenBy(), 'billing_dependency_timeout')
    await stream.growth.end()
    await stream.growth.cover(5_000)
    assert.equal(stream.heldFor(), FIRST_TOKENS)
  })

  it('holds for all of an answer in one piece, or says why it can not after it has asked for two seconds', async () => {
    const stream = start(BY_TEXT, { money: 3_000 })
    await stream.growth.end()
    assert.equal(await stream.growth.holdAll(FIRST_TOKENS), undefined)
    assert.equal(await stream.growth.holdAll(4_000), undefined)
    assert.equal(stream.heldFor(), 4_000)
    const waits = stream.growth.holdAll(9_000)
    await stream.clock.pass(1_000)
    stream.left.money = 10_000
    await stream.clock.pass(1_000)
    assert.equal(await waits, undefined)
    const short = stream.growth.holdAll(90_000)
    await stream.clock.pass(4_000)
    const reason = await short
    assert.ok(reason instanceof HoldSpent && reason.endedBy === 'balance')
    assert.equal(stream.heldFor(), 9_000)
    stream.answerAfter(Promise.reject(new Error('a defect')))
    const unknown = stream.growth.holdAll(10_000)
    await stream.clock.pass(4_000)
    const fault = await unknown
    assert.ok(fault instanceof Fault && fault.code === 'billing_dependency_timeout')
  })

  it('stops at once where the call has ended, and where the key is gone', async () => {
    for (const [outcome, isSpent] of [
      ['ended', false],
      ['disowned', false],
      ['credential_inactive', true],
      ['account_inactive', true],
      ['account_suspended', true],
    ] as const) {
      const stream = start(BY_TEXT)
      stream.open()
      stream.failWith(outcome)
      await stream.write(600)
      const { stopped } = stream.seen
      assert.equal(stopped instanceof HoldSpent, isSpent, outcome)
      assert.equal(stopped instanceof Fault && stopped.code === 'billing_dependency_timeout', !isSpent, outcome)
    }
  })
})

describe('a hold that grows with time', () => {
  it('is always ahead of what can have been made, also before anything has come', async () => {
    const stream = start(BY_TIME, {}, 12_000)
    for (let seconds = 0; seconds < 60; seconds += 1) {
      assert.ok(stream.heldFor() >= Math.min(12_000, seconds * 600), `${stream.heldFor()} after ${seconds} s`)
      await stream.clock.pass(1_000)
      if (seconds === 15) stream.open()
    }
    assert.deepEqual(stream.asked, [3_600, 8_400, 12_000])
    assert.equal(stream.seen.allowed, Number.POSITIVE_INFINITY)
  })

  it('stops a moment before more can have been made than is held for', async () => {
    const stream = start(BY_TIME, { money: 600 })
    stream.open()
    await stream.clock.pass(2_600)
    assert.equal(stream.endedBy(), undefined)
    await stream.clock.pass(250)
    assert.equal(stream.endedBy(), 'balance')
  })

  it('gives an upstream up that has not answered when there is no more', async () => {
    const stream = start(BY_TIME, { money: 0 })
    let isGivenUp = false
    stream.growth.whenShort(() => {
      isGivenUp = true
    })
    await stream.clock.pass(1_500)
    assert.equal(isGivenUp, false)
    await stream.clock.pass(500)
    assert.equal(isGivenUp, true)
    assert.ok(stream.growth.short() instanceof HoldSpent)
    stream.open()
    assert.equal(stream.endedBy(), 'balance')
  })

  it('breaks off in time where nobody answers', async () => {
    const stream = start(BY_TIME)
    stream.open()
    stream.answerAfter(new Promise(() => {}))
    await stream.clock.pass(1_500)
    assert.equal(stream.seen.stopped, undefined)
    await stream.clock.pass(400)
    assert.equal(stream.brokenBy(), 'billing_dependency_timeout')
  })

  it('asks no more once it is over', async () => {
    const stream = start(BY_TIME)
    stream.open()
    await stream.clock.pass(1_000)
    await stream.growth.end()
    const { length } = stream.asked
    await stream.clock.pass(600_000)
    assert.equal(stream.asked.length, length)
  })

  it('holds at the end what was made beyond that, as far as there is money', async () => {
    for (const [money, held] of [
      [10_000, 9_000],
      [3_000, 4_200],
      [10, 1_210],
    ] as const) {
      const stream = start(BY_TIME, { money })
      stream.open()
      await stream.growth.end()
      await stream.growth.cover(1_000)
      assert.deepEqual(stream.asked, [])
      await stream.growth.cover(9_000)
      assert.equal(stream.heldFor(), held)
    }
  })
})

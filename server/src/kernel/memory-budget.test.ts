import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { count, recordProof, seed } from '../../../harness/proof.ts'
import { createMemoryBudget, LARGE_BYTES, type Lease, leastBudgetFor, REPLY_MOST_BYTES } from './memory-budget.ts'

const MIB = 1_048_576
const TOTAL = 64 * MIB
/** As of a budget of 64 MiB. */
const LARGE_MOST = 48 * MIB
const ACCOUNT_MOST = 48 * MIB
const ACCOUNT_LARGE_MOST = 24 * MIB
const CASES = count({ full: 5_000, reduced: 300 })

/** Sleepers wake when the test says so. */
function createSleepers() {
  const sleepers = new Set<{ readonly durationMs: number; readonly wake: () => void }>()
  return {
    asleep: () => sleepers.size,
    sleep: (durationMs: number, signal?: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        const sleeper = { durationMs, wake: resolve }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', () => sleepers.delete(sleeper) && reject(signal.reason))
      }),
    async wake(most: number): Promise<void> {
      for (const sleeper of [...sleepers].filter(({ durationMs }) => durationMs <= most)) {
        sleepers.delete(sleeper)
        sleeper.wake()
        await turn()
      }
    },
  }
}

function start(totalBytes = TOTAL) {
  const clock = createSleepers()
  const budget = createMemoryBudget({ totalBytes, clock })
  /** A lease of so many bytes, which there is room for. */
  const take = (account: string, bytes: number): Lease => {
    const lease = budget.open(account)
    assert.equal(lease.reserve(bytes), true)
    return lease
  }
  return { clock, budget, take, reserved: () => budget.figures().reservedBytes }
}

describe('a budget of memory', () => {
  it('gives at once what there is room for, and gets it back once', () => {
    const { take, reserved, budget } = start()
    const lease = take('a', 5 * MIB)
    assert.equal(reserved(), 5 * MIB)
    assert.equal(lease.reserve(3 * MIB), true, 'less than it has is there')
    assert.equal(reserved(), 5 * MIB)
    lease.shrink(2 * MIB)
    assert.equal(reserved(), 2 * MIB)
    lease.release()
    lease.release()
    assert.deepEqual(budget.figures(), {
      ...{ reservedBytes: 0, largeBytes: 0, leases: 0, waiting: 0, waits: 0, refusals: 0 },
    })
  })

  it('keeps a lease until everybody who keeps it has released it', () => {
    const { take, reserved } = start()
    const lease = take('a', MIB)
    lease.keep()
    lease.release()
    assert.equal(reserved(), MIB)
    lease.release()
    assert.equal(reserved(), 0)
    lease.keep()
    assert.equal(lease.bytes, 0, 'what is over stays over')
  })

  it('gives a call that has not begun nothing more once its caller has left, and one that has begun what it needs', async () => {
    const { take, budget } = start()
    take('a', 24 * MIB)
    const other = take('b', 24 * MIB)
    const [waiting, late, begun] = [budget.open('c'), budget.open('d'), budget.open('e')]
    for (const lease of [waiting, late, begun]) lease.keep()
    const asked = waiting.reserveReply(2 * MIB)
    begun.reserveReply(65_536)
    const more = begun.growReply(2 * MIB, 4 * MIB)
    for (const lease of [waiting, late, begun]) lease.release()
    assert.equal(await asked, false)
    assert.equal(await late.reserveReply(1_000), false)
    assert.equal(budget.figures().waiting, 1)
    other.release()
    assert.equal(await more, true)
    for (const lease of [waiting, late, begun]) lease.release()
    assert.equal(budget.figures().leases, 1)
  })

  it('gives nothing to a lease that is over', async () => {
    const { take, reserved } = start()
    const lease = take('a', MIB)
    lease.release()
    assert.equal(await lease.reserve(MIB), false)
    assert.equal(await lease.reserveReply(MIB), false)
    assert.equal(reserved(), 0)
  })

  it('leaves a quarter to small ones, however many large ones there are', () => {
    const { take, budget } = start()
    take('a', 24 * MIB)
    take('b', 24 * MIB)
    assert.notEqual(budget.open('c').reserve(2 * MIB), true, 'no more large ones')
    for (let at = 0; at < 16; at += 1) take('c', MIB)
    assert.notEqual(budget.open('d').reserve(1), true, 'nothing is left')
  })

  it('gives one account half of the large part at the most', () => {
    const { take, budget } = start()
    take('a', 20 * MIB)
    assert.notEqual(budget.open('a').reserve(5 * MIB), true)
    take('b', 24 * MIB)
  })

  it('gives one account three quarters of all at the most', () => {
    const { take, budget } = start()
    for (let at = 0; at < 48; at += 1) take('a', MIB)
    assert.notEqual(budget.open('a').reserve(1), true)
    for (let at = 0; at < 16; at += 1) take('b', MIB)
  })

  it('lets those who wait have what comes free in the order in which they came', async () => {
    const { take, budget } = start()
    const [one, other] = [take('a', 24 * MIB), take('b', 24 * MIB)]
    const got: string[] = []
    for (const [account, mib] of [
      ['c', 20],
      ['d', 4],
      ['e', 2],
    ] as const) {
      const waiting = budget.open(account).reserve(mib * MIB)
      assert.ok(waiting !== true)
      waiting.then((isGiven) => isGiven && got.push(account))
    }
    await turn()
    assert.deepEqual(got, [])
    // The second and the third would fit, and the first was there before them.
    one.shrink(8 * MIB)
    await turn()
    assert.deepEqual(got, [])
    one.release()
    await turn()
    assert.deepEqual(got, ['c', 'd'])
    other.release()
    await turn()
    assert.deepEqual(got, ['c', 'd', 'e'])
  })

  it('does not let those whose account has too much keep others waiting', async () => {
    const { take, budget } = start()
    take('a', 24 * MIB)
    const waiting = budget.open('a').reserve(20 * MIB)
    assert.ok(waiting !== true)
    assert.equal(budget.open('b').reserve(20 * MIB), true)
    assert.equal(budget.figures().waiting, 1)
  })

  it('lets a reply that has begun go before calls that have not', async () => {
    const { take, budget } = start()
    const [one] = [take('a', 24 * MIB), take('b', 24 * MIB)]
    const fresh = budget.open('c').reserve(16 * MIB)
    const begun = budget.open('d')
    begun.reserveReply(65_536)
    const more = begun.growReply(2 * MIB, 16 * MIB)
    assert.ok(fresh !== true && more !== true)
    one.release()
    assert.equal(await more, true)
    assert.equal(begun.replyBytes, 16 * MIB)
    assert.equal(budget.figures().waiting, 1)
  })

  it('does not let a reply that waits for a large lease hold up those that need a small one', () => {
    const { take, budget } = start()
    take('a', 24 * MIB)
    take('b', 24 * MIB)
    const [large, stream] = [budget.open('c'), budget.open('d')]
    for (const lease of [large, stream]) lease.reserveReply(65_536)
    assert.notEqual(large.growReply(2 * MIB, 16 * MIB), true, 'there is no room for a large one')
    assert.equal(stream.growReply(100_000, 6 * MIB), true)
    assert.equal(budget.open('e').reserve(65_536), true, 'nor those that have not begun')
  })

  it('does not let new calls of an account take what a reply of its own waits for', async () => {
    const { take, budget } = start()
    const [one, other] = [take('a', 12 * MIB), take('a', 12 * MIB)]
    const begun = budget.open('a')
    begun.reserveReply(65_536)
    const more = begun.growReply(2 * MIB, 16 * MIB)
    const fresh = budget.open('a').reserve(12 * MIB)
    assert.ok(more !== true && fresh !== true)
    one.release()
    await turn()
    assert.equal(budget.figures().waiting, 2, 'what is free is kept for the reply')
    assert.equal(budget.open('a').reserve(65_536), true, 'a small call takes nothing of that')
    other.release()
    assert.equal(await more, true)
    assert.equal(budget.figures().waiting, 1)
  })

  it('refuses who has waited for long, one that has begun later', async () => {
    const { take, budget, clock } = start()
    take('a', 24 * MIB)
    take('b', 24 * MIB)
    const fresh = budget.open('c').reserve(16 * MIB)
    const begun = budget.open('d').growReply(2 * MIB, 16 * MIB)
    await clock.wake(1_000)
    assert.equal(await fresh, false)
    assert.equal(budget.figures().waiting, 1)
    await clock.wake(30_000)
    assert.equal(await begun, false)
    assert.deepEqual([budget.figures().waiting, budget.figures().refusals, clock.asleep()], [0, 2, 0])
  })

  it('refuses at once beyond so many who wait, and what could never fit', async () => {
    const { take, budget } = start()
    take('a', 24 * MIB)
    take('b', 24 * MIB)
    const waiting = Array.from({ length: 257 }, (_, at) => budget.open(`c${at}`).reserve(2 * MIB))
    assert.equal(budget.figures().waiting, 256)
    assert.equal(await waiting.at(-1), false)
    assert.equal(
      await start()
        .budget.open('a')
        .reserve(25 * MIB),
      false,
    )
  })

  it('forgets a caller who leaves while it waits, and whoever comes after moves up', async () => {
    const { take, budget, clock } = start()
    take('a', 24 * MIB)
    take('b', 20 * MIB)
    const leaving = budget.open('c')
    const first = leaving.reserve(8 * MIB)
    const second = budget.open('d').reserve(4 * MIB)
    assert.ok(first !== true && second !== true)
    leaving.release()
    assert.deepEqual([await first, await second], [false, true])
    assert.deepEqual([budget.figures().waiting, clock.asleep()], [0, 0])
  })

  it('does not wait for more once its reply is there', async () => {
    const { take, budget } = start()
    const [one] = [take('a', 24 * MIB), take('b', 24 * MIB)]
    const lease = budget.open('c')
    lease.reserveReply(65_536)
    const more = lease.growReply(2 * MIB, 16 * MIB)
    lease.shrinkReply(65_536)
    one.release()
    assert.equal(lease.bytes, 65_536)
    assert.equal(await more, false)
    assert.equal(budget.figures().waiting, 0)
  })

  it('lets a reply grow by twice what it needs while it is small, and then to its most at once', () => {
    const { take } = start()
    const lease = take('a', 10_000)
    lease.reserveReply(65_536)
    assert.equal(lease.replyBytes, 65_536)
    lease.growReply(100_000, 16 * MIB)
    assert.equal(lease.replyBytes, 200_000)
    lease.growReply(700_000, 16 * MIB)
    assert.equal(lease.bytes, LARGE_BYTES)
    lease.growReply(LARGE_BYTES, 16 * MIB)
    assert.equal(lease.replyBytes, 16 * MIB)
    lease.shrinkReply(5_000)
    assert.equal(lease.bytes, 15_000)
  })

  it('gives a reply to a large request all that it can need before it begins, so that it never waits', () => {
    const { take, budget } = start()
    const [large, small] = [take('a', 3 * MIB), take('a', 10_000)]
    large.reserveReply(65_536, 6 * MIB)
    small.reserveReply(65_536, 6 * MIB)
    assert.deepEqual([large.replyBytes, small.replyBytes], [6 * MIB, 65_536])
    // Others have the rest of the large part.
    for (let at = 0; at < 5; at += 1) take('a', 3 * MIB)
    take('b', 24 * MIB)
    assert.equal(large.growReply(5 * MIB, 6 * MIB), true)
    assert.equal(budget.figures().waiting, 0)
  })

  it('has room for the largest call where it is as large as it has to be', () => {
    const budget = createMemoryBudget({ totalBytes: leastBudgetFor(MIB), clock: createSleepers() })
    const lease = budget.open('a')
    assert.equal(lease.reserve(3 * MIB), true)
    assert.equal(lease.reserveReply(REPLY_MOST_BYTES), true)
    const smaller = createMemoryBudget({ totalBytes: leastBudgetFor(MIB) - 16, clock: createSleepers() })
    assert.notEqual(smaller.open('a').reserve(3 * MIB + REPLY_MOST_BYTES), true)
  })
})

type Act =
  | { readonly what: 'open'; readonly account: string; readonly bytes: number }
  | { readonly what: 'grow' | 'begun' | 'shrink'; readonly which: number; readonly bytes: number }
  | { readonly what: 'release'; readonly which: number }
  | { readonly what: 'wake' }

const bytes = fc.oneof(fc.nat(2 * MIB), fc.nat(30 * MIB))
const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ what: fc.constant('open' as const), account: fc.constantFrom('a', 'b', 'c', 'd'), bytes }),
  fc.record({ what: fc.constantFrom('grow' as const, 'begun' as const, 'shrink' as const), which: fc.nat(40), bytes }),
  fc.record({ what: fc.constant('release' as const), which: fc.nat(40) }),
  fc.constant({ what: 'wake' as const }),
)

describe('whatever happens to a budget', () => {
  it('is never above its bounds, adds up to its leases, and leaves nothing behind', async () => {
    let acts = 0
    await fc.assert(
      fc.asyncProperty(fc.array(act, { minLength: 1, maxLength: 60 }), async (list) => {
        const { budget, clock } = start()
        const leases: { readonly account: string; readonly lease: Lease }[] = []
        const waits: Promise<boolean>[] = []
        const note = (given: true | Promise<boolean>) => given !== true && waits.push(given)
        const check = () => {
          const { reservedBytes, largeBytes } = budget.figures()
          const sum = (some: typeof leases) => some.reduce((bytes, { lease }) => bytes + lease.bytes, 0)
          const large = leases.filter(({ lease }) => lease.bytes > LARGE_BYTES)
          assert.deepEqual([reservedBytes, largeBytes], [sum(leases), sum(large)])
          assert.ok(reservedBytes >= 0 && reservedBytes <= TOTAL && largeBytes <= LARGE_MOST)
          for (const account of 'abcd') {
            const ofAccount = (some: typeof leases) => sum(some.filter((one) => one.account === account))
            assert.ok(ofAccount(leases) <= ACCOUNT_MOST && ofAccount(large) <= ACCOUNT_LARGE_MOST)
          }
        }
        for (const one of list) {
          acts += 1
          const lease = 'which' in one ? leases[one.which % Math.max(1, leases.length)]?.lease : undefined
          if (one.what === 'open') {
            const opened = budget.open(one.account)
            leases.push({ account: one.account, lease: opened })
            note(opened.reserve(one.bytes))
          } else if (one.what === 'grow') note(lease?.reserve(one.bytes) ?? true)
          else if (one.what === 'begun') note(lease?.growReply(one.bytes, 16 * MIB) ?? true)
          else if (one.what === 'shrink') lease?.shrink(one.bytes)
          else if (one.what === 'release') lease?.release()
          else await clock.wake(1_000)
          check()
        }
        for (const { lease } of leases) lease.release()
        check()
        // Everybody who waited was told, and no timer is left.
        await Promise.all(waits)
        const { reservedBytes, leases: open, waiting } = budget.figures()
        assert.deepEqual([reservedBytes, open, waiting, clock.asleep()], [0, 0, 0, 0])
      }),
      { numRuns: CASES, seed },
    )
    recordProof('memory-budget-rules', 'whatever happens to a budget', { cases: CASES, acts, counterexamples: 0 })
  })
})

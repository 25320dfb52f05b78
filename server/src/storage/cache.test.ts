import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { systemClock } from '../kernel/clock.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createCache } from './cache.ts'
import type { ChangeListener } from './change-feed.ts'

/** A cache over loads that the test answers by hand, and a feed and a clock that it moves by hand. */
function createBench(options: { maxEntries?: number; maxAbsent?: number } = {}) {
  const loads: { key: string; answer: (value: string | undefined) => void; fail: (error: Error) => void }[] = []
  const metrics = createMetrics()
  let nowMs = 0
  let readAtMs = 0
  let listener: ChangeListener = { changed: () => {}, reset: () => {} }
  const cache = createCache<string>({
    name: 'bench',
    topic: 'thing',
    load: (key) =>
      new Promise((answer, fail) => {
        loads.push({ key, answer, fail })
      }),
    feed: {
      lagMs: () => nowMs - readAtMs,
      subscribe: (topic, given) => {
        assert.equal(topic, 'thing')
        listener = given
        return () => {}
      },
    },
    clock: { ...systemClock, monotonicMs: () => nowMs },
    metrics,
    maxEntries: 10,
    ...options,
  })
  return {
    cache,
    loads,
    metrics,
    changed: (key: string) => listener.changed(key),
    reset: () => listener.reset(),
    pass: (durationMs: number, { feedIsRead }: { feedIsRead: boolean }) => {
      nowMs += durationMs
      if (feedIsRead) readAtMs = nowMs
    },
    /** Looks a key up and answers the load that this makes, if it makes one. */
    async loadAndGet(key: string, value: string | undefined) {
      const before = loads.length
      const got = cache.get(key)
      await settle()
      for (const { answer } of loads.slice(before)) answer(value)
      return { value: await got, loads: loads.length - before }
    },
  }
}

const settle = () => new Promise((resolve) => setImmediate(resolve))

describe('the cache', () => {
  let bench: ReturnType<typeof createBench>
  beforeEach(() => {
    bench = createBench()
  })

  it('loads a value once, and counts the loads', async () => {
    assert.deepEqual(await bench.loadAndGet('a', 'one'), { value: 'one', loads: 1 })
    assert.deepEqual(await bench.loadAndGet('a', 'two'), { value: 'one', loads: 0 })
    assert.match(await bench.metrics.expose(), /farebox_cache_loads_total\{cache="bench"\} 1/)
  })

  it('remembers that there is no value', async () => {
    assert.deepEqual(await bench.loadAndGet('a', undefined), { value: undefined, loads: 1 })
    assert.deepEqual(await bench.loadAndGet('a', 'late'), { value: undefined, loads: 0 })
    bench.changed('a')
    assert.deepEqual(await bench.loadAndGet('a', 'late'), { value: 'late', loads: 1 })
  })

  it('asks once for all who look up the same key at once', async () => {
    const many = Array.from({ length: 1_000 }, () => bench.cache.get('a'))
    await settle()
    assert.equal(bench.loads.length, 1)
    bench.loads[0]?.answer('one')
    assert.deepEqual(new Set(await Promise.all(many)), new Set(['one']))
  })

  it('rejects all who wait for a load that fails, and asks again after', async () => {
    const many = Array.from({ length: 10 }, () => assert.rejects(bench.cache.get('a'), { message: 'no answer' }))
    await settle()
    bench.loads[0]?.fail(new Error('no answer'))
    await Promise.all(many)
    assert.deepEqual(await bench.loadAndGet('a', 'one'), { value: 'one', loads: 1 })
  })

  it('turns a load that throws at once into a rejection', async () => {
    const { metrics } = bench
    const cache = createCache<string>({
      name: 'broken',
      topic: 'thing',
      load: () => {
        throw new Error('at once')
      },
      feed: { lagMs: () => 0, subscribe: () => () => {} },
      clock: systemClock,
      metrics,
      maxEntries: 1,
    })
    await assert.rejects(cache.get('a'), { message: 'at once' })
    await assert.rejects(cache.get('a'), { message: 'at once' })
  })

  it('forgets a key that changed, and no other', async () => {
    await bench.loadAndGet('a', 'old')
    await bench.loadAndGet('b', 'old')
    bench.changed('a')
    assert.deepEqual(await bench.loadAndGet('a', 'new'), { value: 'new', loads: 1 })
    assert.deepEqual(await bench.loadAndGet('b', 'new'), { value: 'old', loads: 0 })
  })

  it('forgets everything when changes may have been missed', async () => {
    await bench.loadAndGet('a', 'old')
    await bench.loadAndGet('b', undefined)
    bench.reset()
    assert.deepEqual(await bench.loadAndGet('a', 'new'), { value: 'new', loads: 1 })
    assert.deepEqual(await bench.loadAndGet('b', 'new'), { value: 'new', loads: 1 })
  })

  for (const [happening, happen] of [
    ['a change', () => bench.changed('a')],
    ['a reset', () => bench.reset()],
  ] as const) {
    it(`keeps no value whose load began before ${happening}, and lets nobody join that load after`, async () => {
      const early = bench.cache.get('a')
      await settle()
      happen()
      const late = bench.cache.get('a')
      await settle()
      assert.equal(bench.loads.length, 2)
      bench.loads[1]?.answer('new')
      assert.equal(await late, 'new')
      bench.loads[0]?.answer('old')
      assert.equal(await early, 'old')
      assert.deepEqual(await bench.loadAndGet('a', 'newer'), { value: 'new', loads: 0 })
    })

    it(`keeps no value whose load began before ${happening} even when nobody asks again meanwhile`, async () => {
      const early = bench.cache.get('a')
      await settle()
      happen()
      bench.loads[0]?.answer('old')
      assert.equal(await early, 'old')
      assert.deepEqual(await bench.loadAndGet('a', 'new'), { value: 'new', loads: 1 })
    })
  }

  it('serves a value for as long as the feed is read, however old', async () => {
    await bench.loadAndGet('a', 'one')
    for (let hours = 0; hours < 10; hours += 1) bench.pass(3_600_000, { feedIsRead: true })
    assert.deepEqual(await bench.loadAndGet('a', 'two'), { value: 'one', loads: 0 })
  })

  it('loads again when the feed has not been read for a second, at most once a second', async () => {
    await bench.loadAndGet('a', 'one')
    bench.pass(1_000, { feedIsRead: false })
    assert.deepEqual(await bench.loadAndGet('a', 'two'), { value: 'one', loads: 0 })
    bench.pass(1, { feedIsRead: false })
    assert.deepEqual(await bench.loadAndGet('a', 'two'), { value: 'two', loads: 1 })
    bench.pass(1_000, { feedIsRead: false })
    assert.deepEqual(await bench.loadAndGet('a', 'three'), { value: 'two', loads: 0 })
    bench.pass(1, { feedIsRead: false })
    assert.deepEqual(await bench.loadAndGet('a', undefined), { value: undefined, loads: 1 })
    bench.pass(0, { feedIsRead: true })
    assert.deepEqual(await bench.loadAndGet('a', 'four'), { value: undefined, loads: 0 })
  })

  it('has a bound, and keeps keys without a value apart so that guessing evicts nothing', async () => {
    bench = createBench({ maxEntries: 8, maxAbsent: 4 })
    for (const key of ['a', 'b', 'c']) await bench.loadAndGet(key, 'here')
    for (let guess = 0; guess < 100; guess += 1) await bench.loadAndGet(`guess ${guess}`, undefined)
    for (const key of ['a', 'b', 'c']) assert.equal((await bench.loadAndGet(key, 'again')).loads, 0)
    assert.equal((await bench.loadAndGet('guess 99', undefined)).loads, 0)
    assert.equal((await bench.loadAndGet('guess 90', undefined)).loads, 1)
    for (const key of ['d', 'e', 'f', 'g', 'h', 'i', 'j', 'k']) await bench.loadAndGet(key, 'here')
    assert.equal((await bench.loadAndGet('a', 'again')).loads, 1)
  })
})

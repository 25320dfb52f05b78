import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { usageOf } from './openai-reply.ts'

describe('the usage of a chat completion', () => {
  const usage = (prompt: unknown, completion: unknown, details?: object) =>
    usageOf({ usage: { prompt_tokens: prompt, completion_tokens: completion, prompt_tokens_details: details } })

  it('counts what was cached apart from the rest of the prompt', () => {
    assert.deepEqual(usage(100, 5, { cached_tokens: 60, cache_write_tokens: 30 }), {
      input: 10,
      output: 5,
      cacheRead: 60,
      cacheWrite: 30,
    })
    assert.deepEqual(usage(100, 5), { input: 100, output: 5 })
  })

  it('never takes more from the prompt than it has', () => {
    assert.deepEqual(usage(100, 5, { cached_tokens: 80, cache_write_tokens: 30 }), {
      input: 0,
      output: 5,
      cacheRead: 80,
      cacheWrite: 20,
    })
    assert.deepEqual(usage(10, 5, { cached_tokens: 1e11, cache_write_tokens: 1e11 }), {
      input: 0,
      output: 5,
      cacheRead: 10,
      cacheWrite: 0,
    })
  })

  it('has caches beside the prompt where the total says so, and only the rest of its excess is output', () => {
    const counts = { prompt_tokens: 100, completion_tokens: 10, prompt_tokens_details: { cached_tokens: 10_000 } }
    const of = (total_tokens: number, more = {}) => usageOf({ usage: { ...counts, ...more, total_tokens } })
    assert.deepEqual(of(10_110), { input: 100, output: 10, cacheRead: 10_000 })
    assert.deepEqual(of(10_150), { input: 100, output: 50, cacheRead: 10_000 })
    assert.deepEqual(of(110), { input: 0, output: 10, cacheRead: 100 })
    const smaller = { prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 20 } }
    assert.deepEqual(of(190, smaller), { input: 100, output: 10, cacheRead: 60, cacheWrite: 20 })
    assert.deepEqual(of(150, smaller), { input: 20, output: 50, cacheRead: 60, cacheWrite: 20 })
  })

  it('takes a zero as a report', () => {
    assert.deepEqual(usage(0, 0, { cached_tokens: 0 }), { input: 0, output: 0, cacheRead: 0 })
  })

  it('hears nothing in what is no plausible count', () => {
    for (const bad of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1e13, '5', true, null, [5], { value: 5 }]) {
      assert.deepEqual(usage(bad, bad, { cached_tokens: bad, cache_write_tokens: bad }), {})
      assert.deepEqual(usage(9, 4, { cached_tokens: bad, cache_write_tokens: bad }), { input: 9, output: 4 })
    }
  })

  it('hears nothing of a part whose whole is not known', () => {
    assert.deepEqual(usage(undefined, 4, { cached_tokens: 3 }), { output: 4 })
  })

  it('is nothing where there is none', () => {
    for (const json of [undefined, null, 'x', 1, [], {}, { usage: null }, { usage: [] }, { usage: 'x' }]) {
      assert.deepEqual(usageOf(json), {})
    }
  })
})

describe('reasoning outside of the completion', () => {
  const output = (usage: object, profile?: Parameters<typeof usageOf>[1]) =>
    usageOf({ usage: { prompt_tokens: 7, completion_tokens: 3, ...usage } }, profile).output
  const apart = { reasoning: 'apart' } as const
  const details = { completion_tokens_details: { reasoning_tokens: 50 } }

  it('is output where the total has it, whatever the profile', () => {
    for (const profile of [undefined, apart]) {
      assert.equal(output({ total_tokens: 110 }, profile), 103)
      assert.equal(output({ total_tokens: 10 }, profile), 3)
      // A total that is less than its parts says nothing.
      assert.equal(output({ total_tokens: 5 }, profile), 3)
      assert.equal(output({ total_tokens: -1 }, profile), 3)
    }
  })

  it('is part of the completion in the details, unless the profile says that it is apart', () => {
    assert.equal(output(details), 3)
    assert.equal(output(details, apart), 53)
    assert.equal(output({ ...details, total_tokens: 110 }, apart), 103)
    assert.equal(output({ ...details, total_tokens: 40 }, apart), 53)
  })

  it('is not taken for caches that are counted beside the prompt, where it is by chance as much as they have', () => {
    const usage = {
      ...{ prompt_tokens: 42, completion_tokens: 41, total_tokens: 125 },
      ...{ prompt_tokens_details: { cache_write_tokens: 42 }, completion_tokens_details: { reasoning_tokens: 42 } },
    }
    assert.deepEqual(usageOf({ usage }, apart), { input: 0, output: 83, cacheWrite: 42 })
    // Where nobody knows which of the two it is, the caller pays for the cheaper one.
    assert.deepEqual(usageOf({ usage }), { input: 42, output: 41, cacheWrite: 42 })
  })

  it('is nothing by itself: what was written is to be counted where no completion is reported', () => {
    assert.equal(usageOf({ usage: { prompt_tokens: 7, total_tokens: 10, ...details } }, apart).output, undefined)
  })
})

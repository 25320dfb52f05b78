import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createCollected } from './collected.ts'

/** Answers each batch when the test says so. */
function bench(portion?: number) {
  const batches: { readonly asks: readonly string[]; readonly done: PromiseWithResolvers<readonly string[]> }[] = []
  const ask = createCollected(
    (one: string) => one,
    (asks) => {
      const done = Promise.withResolvers<readonly string[]>()
      batches.push({ asks, done })
      return done.promise
    },
    portion,
  )
  return { batches, ask }
}

describe('what is collected', () => {
  it('is asked for one statement at a time: who comes meanwhile is in the next, and the same is asked for once', async () => {
    const { batches, ask } = bench()
    const [first, same, second, third] = [ask('a'), ask('a'), ask('b'), ask('c')]
    assert.deepEqual(
      batches.map(({ asks }) => asks),
      [['a']],
    )
    batches[0]?.done.resolve(['A'])
    assert.deepEqual(await Promise.all([first, same]), ['A', 'A'])
    await Promise.resolve()
    assert.deepEqual(
      batches.map(({ asks }) => asks),
      [['a'], ['b', 'c']],
    )
    batches[1]?.done.resolve(['B', 'C'])
    assert.deepEqual(await Promise.all([second, third]), ['B', 'C'])
  })

  it('fails for those of a failed statement alone, and is asked for again', async () => {
    const { batches, ask } = bench(1)
    const [first, second] = [ask('a'), ask('b')]
    batches[0]?.done.reject(new Error('down'))
    await assert.rejects(first, /down/)
    await new Promise(setImmediate)
    batches[1]?.done.resolve(['B'])
    assert.equal(await second, 'B')
    await new Promise(setImmediate)
    const again = ask('a')
    batches[2]?.done.resolve(['A'])
    assert.equal(await again, 'A')
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createRounds } from './rounds.ts'

const numbered = (count: number, name: string) => Array.from({ length: count }, (_, at) => `${name}${1_000_000 + at}`)

function stage(...lists: readonly (readonly string[])[]) {
  let seen: string[] = []
  const listed = lists.map((ids) => async (after: string | null, limit: number) => {
    const from = after === null ? 0 : ids.indexOf(after) + 1
    return ids.slice(from, from + limit).map((id) => ({ after: id }))
  })
  const round = createRounds(listed, async (found) => {
    seen.push(...found.map(({ after }) => after))
    return found.filter(({ after }) => after.startsWith('bad')).map(({ after }) => after)
  })
  return {
    round,
    take() {
      const taken = seen
      seen = []
      return taken
    },
  }
}

describe('rounds', () => {
  it('look at all that there is, once, where it is little', async () => {
    const [few, some] = [numbered(3, 'a'), numbered(700, 'b')]
    const { round, take } = stage(few, some)
    for (let times = 0; times < 2; times += 1) {
      assert.deepEqual(await round(), [])
      assert.deepEqual(take(), [...few, ...some])
    }
  })

  it('look at 5,000 at a time where there are more, and come round', async () => {
    const [many, few] = [numbered(12_000, 'a'), numbered(3, 'b')]
    const { round, take } = stage(many, few)
    const looks: string[][] = []
    for (let times = 0; times < 4; times += 1) {
      await round()
      looks.push(take())
    }
    assert.deepEqual(
      looks.map(({ length }) => length),
      [5_000, 5_000, 2_003, 5_000],
    )
    assert.deepEqual(looks.slice(0, 3).flat(), [...many, ...few])
    assert.deepEqual(looks[3], many.slice(0, 5_000))
  })

  it('come round where a list ends with a whole portion', async () => {
    const list = numbered(500, 'a')
    const { round, take } = stage(list, numbered(1, 'b'))
    await round()
    assert.deepEqual(take(), [...list, ...numbered(1, 'b')])
  })

  it('say what failed, and go on', async () => {
    const { round, take } = stage(['bad1', 'good1'], ['bad2'])
    assert.deepEqual(await round(), ['bad1', 'bad2'])
    assert.deepEqual(take(), ['bad1', 'good1', 'bad2'])
  })

  it('go on behind a portion that can not be looked at, and to the next list behind one that can not be read', async () => {
    const list = numbered(1_100, 'a')
    const seen: number[] = []
    const read = async (after: string | null, limit: number) => {
      const from = after === null ? 0 : list.indexOf(after) + 1
      return list.slice(from, from + limit).map((id) => ({ after: id }))
    }
    const lost = new Error('lost')
    const unreadable = () => Promise.reject(lost)
    const round = createRounds([read, unreadable, read], async (found) => {
      seen.push(found.length)
      if (seen.length === 2) throw lost
      return []
    })
    assert.deepEqual(await round(), [lost, lost])
    assert.deepEqual(seen, [500, 500, 100, 500, 500, 100])
  })

  it('keep their place in a list where a portion can not be read once, and begin it anew where it can not be read again', async () => {
    const list = numbered(1_100, 'a')
    const lost = new Error('lost')
    for (const times of [1, 2]) {
      const firsts: (string | undefined)[] = []
      let failures = times
      const read = async (after: string | null, limit: number) => {
        const from = after === null ? 0 : list.indexOf(after) + 1
        if (from === 500 && failures > 0) {
          failures -= 1
          throw lost
        }
        return list.slice(from, from + limit).map((id) => ({ after: id }))
      }
      const round = createRounds([read], async (found) => {
        firsts.push(found[0]?.after)
        return []
      })
      for (let looks = 0; looks < times; looks += 1) assert.deepEqual(await round(), [lost])
      assert.deepEqual(await round(), [])
      const [first, second, third] = [list[0], list[500], list[1_000]]
      assert.deepEqual(firsts, times === 1 ? [first, second, third] : [first, first, second, third])
    }
  })
})

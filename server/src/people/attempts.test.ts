import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { Fault } from '../kernel/fault.ts'
import { Secret } from '../kernel/secret.ts'
import { createPools } from '../storage/pools.ts'
import { silentLog } from '../telemetry/log.ts'
import { createAttempts, type Limit } from './attempts.ts'
import { hashOf } from './tokens.ts'

const { url } = await freshDatabase()
const pools = Array.from({ length: 3 }, () => createPools({ url: new Secret(url), log: silentLog }))
after(() => Promise.all(pools.map(({ close }) => close())))
const doors = pools.map(({ rest: pool }) => createAttempts({ pool }))
const [door = assert.fail()] = doors
const pool = pools[0]?.rest ?? assert.fail()

const limit = (kind: string, most: number, seconds = 60): Limit => ({ kind, most, seconds })
const tried = (kind: string, most: number, key: string, seconds?: number) => ({
  limit: limit(kind, most, seconds),
  key: hashOf(key),
})

async function taken(many: number, of: (n: number) => readonly ReturnType<typeof tried>[]): Promise<number> {
  const results = await Promise.allSettled(
    Array.from({ length: many }, (_, n) => (doors[n % doors.length] ?? door).take(of(n))),
  )
  return results.filter(({ status }) => status === 'fulfilled').length
}

describe('attempts', () => {
  it('are counted exactly over connections of several processes', async () => {
    assert.equal(await taken(300, () => [tried('exact', 17, 'one')]), 17)
    assert.equal(await taken(300, () => [tried('exact', 17, 'other')]), 17)
  })

  it('are counted under all of their limits, or under none', async () => {
    await taken(5, () => [tried('narrow', 5, 'a')])
    const both = [tried('narrow', 5, 'a'), tried('wide', 100, 'a')]
    assert.equal(await taken(50, () => both), 0)
    const { rows } = await pool.query("select from door_attempts where kind = 'wide'")
    assert.equal(rows.length, 0, 'and who is refused leaves no row')
    assert.equal(await taken(120, () => [tried('wide', 100, 'a')]), 100)
  })

  it('meet each other in whichever order they name their limits', async () => {
    const kinds = ['m', 'n', 'o', 'p']
    const results = await taken(200, (n) =>
      kinds.map((_, at) => tried(kinds[(at + n) % kinds.length] ?? '', 60, `key ${(n + at) % 3}`)),
    )
    assert.ok(results >= 45 && results <= 180, `${results}`)
  })

  it('begin anew when their window has ended', async () => {
    await taken(3, () => [tried('window', 3, 'a')])
    await assert.rejects(door.take([tried('window', 3, 'a')]), (error: unknown) => {
      assert.ok(error instanceof Fault && error.code === 'rate_limit_exceeded')
      assert.ok((error.retryAfterSeconds ?? 0) >= 1 && (error.retryAfterSeconds ?? 0) <= 60)
      return true
    })
    await pool.query("update door_attempts set ends_at = clock_timestamp() where kind = 'window'")
    assert.equal(await taken(9, () => [tried('window', 3, 'a')]), 3)
  })

  it('are given back one by one, while others are taken', async () => {
    const one = [tried('back', 10, 'a'), tried('back too', 10, 'b')]
    await taken(10, () => one)
    await Promise.all([
      ...Array.from({ length: 4 }, () => door.giveBack(one)),
      ...doors.map((other) => other.left(one[0] ?? assert.fail())),
    ])
    assert.deepEqual((await door.left(one[0] ?? assert.fail())).left, 4)
    assert.equal(await taken(30, () => one), 4)
  })

  it('count where what they guess is wrong, and where it fails; not where it is right or was never looked at', async () => {
    const one = [tried('guess', 10, 'a')]
    const left = async () => (await door.left(one[0] ?? assert.fail())).left
    assert.equal(await door.guess(one, () => Promise.resolve('right')), 'right')
    assert.equal(await left(), 10)
    assert.equal(await door.guess(one, () => Promise.resolve(null)), null)
    assert.equal(await left(), 9)
    await assert.rejects(
      door.guess(one, () => Promise.reject(new Error('broken'))),
      /broken/,
    )
    assert.equal(await left(), 8)
    await assert.rejects(
      door.guess(one, () => Promise.reject(new Fault('overloaded'))),
      { code: 'overloaded' },
    )
    assert.equal(await left(), 8)
  })
})

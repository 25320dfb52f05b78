import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { systemClock } from '../kernel/clock.ts'
import { createIds } from '../kernel/ids.ts'
import { OpenCalls } from './open-calls.ts'

const ids = createIds({ clock: systemClock })

describe('the open calls of a process', () => {
  it('have reserved the tokens of those that were begun in a window, each key its own, until they end', () => {
    const [key, other] = [ids.next(), ids.next()]
    const calls = new OpenCalls()
    const begin = (credentialId: typeof key, tokens: number, endsAtMs: number) => {
      const id = ids.next()
      calls.add(id)
      calls.noteReserve({ id, credentialId, tokens }, endsAtMs)
      return id
    }
    calls.add(ids.next())
    const first = begin(key, 10, 60_000)
    const second = begin(key, 5, 60_000)
    begin(key, 100, 120_000)
    begin(other, 1_000, 60_000)
    assert.deepEqual(
      [calls.reservedTokens(key, 60_000), calls.reservedTokens(key, 120_000), calls.reservedTokens(other, 60_000)],
      [15, 100, 1_000],
    )
    calls.delete(first)
    calls.delete(first)
    assert.deepEqual([calls.reservedTokens(key, 60_000), calls.has(first), calls.has(second)], [5, false, true])
    for (const id of calls.ids()) calls.delete(id)
    assert.deepEqual([calls.size, calls.reservedTokens(key, 60_000), calls.reservedTokens(other, 60_000)], [0, 0, 0])
  })

  it('have reserved nothing for one that has ended already', () => {
    const [id, credentialId] = [ids.next(), ids.next()]
    const calls = new OpenCalls()
    calls.noteReserve({ id, credentialId, tokens: 10 }, 60_000)
    assert.deepEqual([calls.size, calls.reservedTokens(credentialId, 60_000)], [0, 0])
  })
})

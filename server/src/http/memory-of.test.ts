import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { systemClock } from '../kernel/clock.ts'
import { createMemoryBudget, REQUEST_COPIES } from '../kernel/memory-budget.ts'
import { hasRoomForTexts } from './memory-of.ts'

const MIB = 1_048_576

describe('room for the texts of a large body', () => {
  const ascii = Buffer.alloc(2 * MIB, 'a')
  const withOne = (text: string) => Buffer.concat([ascii, Buffer.from(text)])

  async function roomFor(body: Buffer, totalBytes = 100 * MIB) {
    const lease = createMemoryBudget({ totalBytes, clock: systemClock }).open('account')
    assert.equal(lease.reserve(REQUEST_COPIES * body.length), true)
    return { hasRoom: await hasRoomForTexts(lease, body), copies: lease.bytes / body.length }
  }

  it('is a copy more where one character may make them all two bytes each', async () => {
    for (const text of ['🦊', 'ü', '\\ud83e\\udd8a'])
      assert.deepEqual(await roomFor(withOne(text)), { hasRoom: true, copies: REQUEST_COPIES + 1 }, text)
  })

  it('is what was reserved where none can', async () => {
    assert.deepEqual(await roomFor(ascii), { hasRoom: true, copies: REQUEST_COPIES })
    assert.deepEqual(await roomFor(Buffer.from('🦊'.repeat(100))), { hasRoom: true, copies: REQUEST_COPIES })
  })

  it('is refused where there is none', async () => {
    // An account has three eighths of it for large leases.
    const { hasRoom } = await roomFor(withOne('🦊'), 20 * MIB)
    assert.equal(hasRoom, false)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Extension, Growth } from '../calls/call.ts'
import { type Nanos, nanos } from '../kernel/money.ts'
import { createExtend } from './refilled-extension.ts'

const EXTENSION: Extension = { id: 'call', accountId: 'account', windows: [], amount: nanos(500n), tokens: 10 }
const HELD = nanos(200n)
const answer = (outcome: 'extended' | 'ended') => ({ outcome, held: HELD, reserved: 0, judgedAt: '' }) as const
const SHORT: Growth = { outcome: 'money_spent', left: nanos(50n), held: HELD, reserved: 0, judgedAt: '' }

type House = {
  readonly refill?: () => Promise<boolean>
  readonly isKnownGiven?: boolean
  readonly told?: readonly Growth[]
}

/** Answers one growth after the other; what was short, and how often it was asked. */
function house({ refill = async () => true, isKnownGiven = false, told = [SHORT, answer('extended')] }: House = {}) {
  const shorts: Nanos[] = []
  let asked = 0
  const extend = createExtend({
    extend: async () => told[asked++] ?? assert.fail('asked too often'),
    testCredit: {
      isKnownGiven: () => isKnownGiven,
      refill(_, short) {
        shorts.push(short)
        return refill()
      },
    },
  })
  return { extend, shorts, asked: () => asked }
}

describe('a stream that is short of test money', () => {
  it('is held for once more when the day’s was given', async () => {
    const { extend, shorts } = house()
    assert.equal((await extend(EXTENSION)).outcome, 'extended')
    assert.deepEqual(shorts, [250n])
  })

  it('stays short where the day’s was given before, is too little, or can’t be given now', async () => {
    for (const one of [
      house({ isKnownGiven: true }),
      house({ refill: async () => false }),
      house({ refill: () => Promise.reject(new Error('down')) }),
    ]) {
      assert.equal(await one.extend(EXTENSION), SHORT)
      assert.equal(one.asked(), 1)
    }
  })

  it('is given nothing where it is short of nothing, or of something else', async () => {
    for (const told of [answer('extended'), answer('ended')]) {
      const { extend, shorts } = house({ told: [told] })
      assert.equal(await extend(EXTENSION), told)
      assert.deepEqual(shorts, [])
    }
  })
})

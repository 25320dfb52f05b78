import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { DEADLINES, failsWith, MIB } from '../../../test/upstreams/asking.ts'
import { systemClock } from '../kernel/clock.ts'
import { Exchange } from './exchange.ts'

function begin() {
  let left = 0
  const exchange = new Exchange(
    {
      upstreamId: 'one',
      maxBodyBytes: MIB,
      room: undefined,
      deadlines: DEADLINES,
      signal: undefined,
      clock: systemClock,
      watch: { watch: () => {}, forget: () => {}, close: () => {} },
      left: () => {
        left += 1
      },
      brokeOff: () => {},
    },
    true,
  )
  const controller = { aborted: false, paused: false, reason: null, abort: () => {}, pause: () => {}, resume: () => {} }
  return { exchange, controller, left: () => left }
}

describe('an exchange', () => {
  it('lets itself be sent once: undici may put a request back into its queue when a connection is lost', async () => {
    const { exchange, controller, left } = begin()
    exchange.onRequestStart(controller)
    assert.throws(() => exchange.onRequestStart(controller))
    exchange.onResponseError(controller, new Error('as undici does with what was thrown'))
    await failsWith(exchange.collected, 'reset', 'unknown')
    assert.equal(left(), 1)
  })

  it('does not go out after it was given up while it waited', async () => {
    const { exchange, controller, left } = begin()
    exchange.abandon()
    await failsWith(exchange.collected, 'aborted', 'not_sent')
    assert.equal(left(), 0)
    assert.throws(() => exchange.onRequestStart(controller))
    assert.equal(left(), 1)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { DEADLINES, failsWith, MIB } from '../../../test/upstreams/asking.ts'
import { systemClock } from '../kernel/clock.ts'
import type { ReplyRoom } from '../kernel/memory-budget.ts'
import { CollectedBody } from '../protocols/collected-body.ts'
import { UpstreamExchange } from './exchange.ts'

function begin(room?: ReplyRoom) {
  let left = 0
  const exchange = new UpstreamExchange(
    {
      upstream: 'one',
      maxBodyBytes: MIB,
      room,
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
  const controller = {
    ...{ aborted: false, paused: false, reason: null, abort: () => {} },
    pause() {
      controller.paused = true
    },
    resume() {
      controller.paused = false
    },
  }
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

describe('an answer that outgrows its place in memory', () => {
  function createRoom() {
    const asked: { readonly mostBytes: number; readonly give: (hasRoom: boolean) => void }[] = []
    const room = {
      replyBytes: 1_000,
      growReply(_: number, mostBytes: number) {
        const { promise, resolve } = Promise.withResolvers<boolean>()
        asked.push({ mostBytes, give: resolve })
        return promise
      },
    }
    return { room, asked }
  }

  it('is paused until it has another, and comes whole', async () => {
    const { room, asked } = createRoom()
    const { exchange, controller } = begin(room)
    exchange.onRequestStart(controller)
    exchange.onResponseStart(controller, 200, {})
    exchange.onResponseData(controller, Buffer.alloc(1_000, 'a'))
    assert.deepEqual([asked.length, controller.paused], [0, false])
    exchange.onResponseData(controller, Buffer.alloc(500, 'b'))
    assert.deepEqual([asked.length, asked[0]?.mostBytes, controller.paused], [1, MIB, true])
    room.replyBytes = 3_000
    asked[0]?.give(true)
    await Promise.resolve()
    assert.equal(controller.paused, false)
    exchange.onResponseData(controller, Buffer.alloc(1_500, 'c'))
    exchange.onResponseEnd()
    assert.equal((await exchange.collected).body.toString(), 'a'.repeat(1_000) + 'b'.repeat(500) + 'c'.repeat(1_500))
    assert.equal(asked.length, 1)
  })

  it('asks for its declared length before its first byte', () => {
    const { room, asked } = createRoom()
    const { exchange, controller } = begin(room)
    exchange.onRequestStart(controller)
    exchange.onResponseStart(controller, 200, { 'content-length': '5000' })
    assert.deepEqual([asked[0]?.mostBytes, controller.paused], [5_000, true])
    exchange.abandon()
    exchange.collected.catch(() => {})
  })

  it('is too large where there is none', async () => {
    const { room, asked } = createRoom()
    const { exchange, controller } = begin(room)
    exchange.onRequestStart(controller)
    exchange.onResponseStart(controller, 200, {})
    exchange.onResponseData(controller, Buffer.alloc(2_000))
    asked[0]?.give(false)
    await failsWith(exchange.collected, 'too_large', 'unknown')
  })
})

describe('a body of unknown length', () => {
  it('is what its pieces are, however many and however large', () => {
    for (const pieceBytes of [1_000, 65_536, 100_000, 700_001]) {
      const body = new CollectedBody(undefined, 4 * MIB)
      const pieces = Array.from({ length: Math.floor((3 * MIB) / pieceBytes) }, (_, at) =>
        Buffer.alloc(pieceBytes, at % 251),
      )
      for (const piece of pieces) body.add(piece)
      assert.ok(body.whole().equals(Buffer.concat(pieces)))
    }
  })
})

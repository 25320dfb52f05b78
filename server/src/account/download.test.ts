import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { describe, it, mock } from 'node:test'
import { downloadOf } from './download.ts'

async function* numbered(of: number) {
  for (let at = 0; at < of; at += 1) yield `${at}\n`
}

async function* large() {
  for (;;) yield 'x'.repeat(8_192)
}

describe('a download', () => {
  it('breaks off at its deadline where nobody reads on, and says once that it has ended', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    let ended = 0
    const body = downloadOf(numbered(1_000_000), { deadlineMs: 1_000, onEnd: () => (ended += 1) })
    const failure = once(body, 'error')
    const closed = once(body, 'close').catch(() => {})
    mock.timers.tick(999)
    assert.equal(body.destroyed, false)
    mock.timers.tick(1)
    assert.match(String(await failure), /longer than 1000 ms/)
    await closed
    mock.timers.reset()
    assert.deepEqual([body.destroyed, ended], [true, 1])
  })

  it('breaks off where less than 256 KiB of what is ready are read in a minute, and not while nothing is ready', async () => {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    const turn = () => new Promise(setImmediate)
    const read = async (body: Readable, bytes: number) => {
      for (let left = bytes; left > 0; ) {
        left -= body.read(Math.min(left, 16_384))?.length ?? 0
        await turn()
      }
    }
    let ended = 0
    const parts = { deadlineMs: 3_600_000, onEnd: () => (ended += 1) }
    const unread = downloadOf(large(), parts)
    const reading = downloadOf(large(), parts)
    const waiting = downloadOf(
      (async function* () {
        await new Promise(() => {})
        yield ''
      })(),
      parts,
    )
    const failure = once(unread, 'error')
    for (const body of [unread, reading, waiting]) body.read(0)
    await turn()
    await read(reading, 400_000)
    mock.timers.tick(60_000)
    assert.match(String(await failure), /less than 262144 bytes/)
    assert.deepEqual([unread.destroyed, reading.destroyed, waiting.destroyed], [true, false, false])
    mock.timers.tick(60_000)
    mock.timers.reset()
    assert.deepEqual([reading.destroyed, waiting.destroyed], [true, false])
    reading.on('error', () => {})
    await turn()
    assert.equal(ended, 2)
    waiting.on('error', () => {}).destroy()
  })

  it('says that it has ended when all is read, when it fails, and when its reader goes', async () => {
    let ended = 0
    const made = (parts: AsyncIterable<string>) => downloadOf(parts, { deadlineMs: 60_000, onEnd: () => (ended += 1) })
    assert.equal((await made(numbered(3)).toArray()).join(''), '0\n1\n2\n')
    assert.equal(ended, 1)
    const failing = async function* () {
      yield 'a'
      throw new Error('no page')
    }
    await assert.rejects(made(failing()).toArray(), /no page/)
    assert.equal(ended, 2)
    const left = made(numbered(1_000_000))
    left.destroy()
    await once(left, 'close')
    assert.equal(ended, 3)
  })
})

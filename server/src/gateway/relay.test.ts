import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { nanos, ZERO } from '../kernel/money.ts'
import { silentLog } from '../telemetry/log.ts'
import type { BodyReader } from '../upstreams/exchange.ts'
import { UpstreamFailure } from '../upstreams/failure.ts'
import { createReader as createGeminiReader } from '../upstreams/protocols/gemini-reply.ts'
import { createReader as createOpenaiReader } from '../upstreams/protocols/openai-reply.ts'
import type { Reported, StreamReader } from '../upstreams/protocols/protocol.ts'
import { createRelay, type OutletListener } from './relay.ts'

/** A clock that moves when the test says so. */
function createStillClock() {
  let nowMs = 0
  const sleepers = new Set<{ readonly atMs: number; readonly wake: () => void }>()
  return {
    monotonicMs: () => nowMs,
    sleep: (durationMs: number, signal?: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        const sleeper = { atMs: nowMs + durationMs, wake: resolve }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', () => sleepers.delete(sleeper) && reject(signal.reason))
      }),
    async pass(durationMs: number): Promise<void> {
      const untilMs = nowMs + durationMs
      for (;;) {
        const [next] = [...sleepers].filter(({ atMs }) => atMs <= untilMs).toSorted((a, b) => a.atMs - b.atMs)
        if (next === undefined) break
        nowMs = next.atMs
        sleepers.delete(next)
        next.wake()
        await turn()
      }
      nowMs = untilMs
      await turn()
    },
  }
}

/** One stream, between an upstream and a caller that the test plays. */
function startStream(reader: StreamReader) {
  const clock = createStillClock()
  const seen = { ended: [] as string[], got: '', isGood: undefined as boolean | undefined, counted: '' }
  const settled: Reported[] = []
  let upstream: BodyReader | undefined
  let caller: OutletListener | undefined
  let hasRoom = true
  const body = {
    read(to: BodyReader) {
      upstream = to
    },
    pause: () => {},
    resume: () => {},
    giveUp: () => {},
  }
  const take = (bytes: Buffer, isGood?: boolean) => {
    seen.got += bytes.toString()
    seen.isGood = isGood
    return hasRoom
  }
  const held = { terms: { version: '1', rates: [] }, mostCounts: [], most: ZERO }
  const relay = createRelay({ clock, log: silentLog, ended: (how) => seen.ended.push(how) })
  relay({
    stream: {
      reply: { status: 200, headers: {}, body, timing: { sentAtMs: 0, firstByteAtMs: 0, endedAtMs: 0 } },
      reader,
      measure(text) {
        seen.counted = text
        return { counts: [] }
      },
      lost: () => ({ counts: [] }),
      errorFrame: (text) => `data: ${text}\n\n`,
    },
    kind: 'native',
    held,
    settle: async () => {
      settled.push(reader.reported())
      return { outcome: 'posted', charged: nanos(1n), overrun: ZERO, free: ZERO, endedNow: true, settledAt: '' }
    },
    renderFault: ({ code }) => JSON.stringify({ error: code }),
  }).body.sendTo({
    listen(listener) {
      caller = listener
    },
    hasLeft: () => false,
    write: (bytes) => take(bytes),
    end: (bytes) => void take(bytes, true),
    breakOff: (bytes) => void take(bytes, false),
  })
  return {
    seen,
    settled,
    pass: clock.pass,
    say: (text: string) => upstream?.onPiece(Buffer.from(text)),
    end: () => upstream?.onEnd(),
    breakOff: () => upstream?.onFailure(new UpstreamFailure('u', { reason: 'reset', certainty: 'unknown' })),
    setRoom(has: boolean) {
      hasRoom = has
      if (has) caller?.onRoom()
    },
  }
}

const openai = () => startStream(createOpenaiReader({ choices: 1, wantsUsage: true }))
const frame = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
const saying = (content: string) => frame({ choices: [{ index: 0, delta: { content } }] })
const STOP = frame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
const USAGE = frame({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 3_000 } })
const DONE = 'data: [DONE]\n\n'

describe('a stream that is passed on', () => {
  it('is waited for until it has been silent for ten seconds after its stop', async () => {
    const { seen, settled, say, pass } = openai()
    say(saying('a') + STOP)
    await pass(9_000)
    say(': still here\n\n')
    await pass(9_999)
    assert.equal(settled.length, 0)
    await pass(2)
    assert.deepEqual([settled.length, seen.ended, seen.isGood], [1, ['complete'], true])
  })

  it('is not taken for silent while the caller has no room for it: its usage is what counts', async () => {
    const { seen, settled, say, pass, setRoom, end } = openai()
    setRoom(false)
    say(saying('a') + STOP)
    await pass(45_000)
    assert.equal(settled.length, 0)
    setRoom(true)
    await pass(9_000)
    say(USAGE + DONE)
    end()
    await pass(0)
    assert.deepEqual(settled, [{ input: 7, output: 3_000 }])
    assert.match(seen.got, /completion_tokens.*\[DONE\]/s)
  })

  it('is given as a whole where every frame has a finish reason, however long it takes', async () => {
    const { seen, say, pass, end } = startStream(createGeminiReader({ choices: 1 }))
    const part = (text: string) =>
      frame({ candidates: [{ index: 0, content: { parts: [{ text }] }, finishReason: 'STOP' }] })
    for (let at = 1; at <= 30; at += 1) {
      say(part(`part ${at}`))
      await pass(1_000)
    }
    end()
    await pass(0)
    assert.equal(seen.got.match(/part \d+/g)?.length, 30)
    assert.deepEqual([seen.ended, seen.isGood], [['complete'], true])
  })

  it('ends in good order where its upstream breaks off in a frame that is beyond all bounds', async () => {
    const { seen, settled, say, pass, breakOff } = openai()
    say(saying('a') + STOP)
    for (let at = 0; at < 4; at += 1) say(frame({ choices: [], x: 'p'.repeat(900_000) }))
    say(frame({ choices: [], x: 'q'.repeat(700_000) }).trimEnd())
    breakOff()
    await pass(0)
    assert.deepEqual([settled.length, seen.ended, seen.isGood], [1, ['upstream_failed'], false])
  })

  it('has everything that was said when its upstream breaks off, and is counted by that', async () => {
    const cut = (text: string) => text.trimEnd()
    const { seen, say, pass, breakOff } = openai()
    say(saying('hello') + cut(saying(' world')))
    breakOff()
    await pass(0)
    assert.equal(seen.counted, 'hello world')
    assert.match(seen.got, /hello.*world.*upstream_transport/s)
    const failing = openai()
    failing.say(saying('hello') + cut(frame({ error: { message: 'no more' } })))
    failing.breakOff()
    await failing.pass(0)
    assert.match(failing.seen.got, /no more/)
    assert.doesNotMatch(failing.seen.got, /upstream_transport/)
  })
})

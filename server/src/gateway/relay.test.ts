import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createStillClock } from '../../../harness/still-clock.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { type ReplyRoom, unboundedMemory } from '../kernel/memory-budget.ts'
import { nanos, ZERO } from '../kernel/money.ts'
import { createReader as createGeminiReader } from '../protocols/gemini-reply.ts'
import { createReader as createOpenaiReader } from '../protocols/openai-reply.ts'
import { createReader as createResponsesReader } from '../protocols/openai-responses-reply.ts'
import type { Reported, StreamReader } from '../protocols/protocol.ts'
import { silentLog } from '../telemetry/log.ts'
import type { BodyReader } from '../upstreams/exchange.ts'
import { UpstreamFailure } from '../upstreams/failure.ts'
import { createTokenCounter } from '../upstreams/tokens/count-tokens.ts'
import { createGrowths, type GrowthPlan } from './growth.ts'
import { createOutputGuard } from './output-guard.ts'
import { createRelay, type OutletListener } from './relay.ts'

const counter = createTokenCounter({ deadlineMs: PATIENCE_MS })
after(() => counter.close())

type Options = {
  readonly limit?: number
  readonly stopsOnAbort?: boolean
  readonly memory?: ReplyRoom
  readonly wantsUsage?: boolean
  /** Fails where the call can't be settled. */
  readonly settling?: Promise<unknown>
  /** Whether its hold grows, in a ledger that does not answer. */
  readonly growsUnanswered?: boolean
}

/** A token of output for a byte of text, and a first slice that holds for 1,024. */
const growthPlan: GrowthPlan = {
  outputMost: 32_000,
  choices: 1,
  counted: { by: 'text', tokenBytes: 1 },
  sliceFor: (output) => ({ held: { terms: { version: '1', rates: [] }, mostCounts: [], most: ZERO }, tokens: output }),
}

/** One stream, between an upstream and a caller that the test plays. */
function startStream(
  reader: StreamReader,
  { limit = 1_000, stopsOnAbort = false, memory, settling, growsUnanswered = false }: Options = {},
) {
  const clock = createStillClock()
  const createGrowth = createGrowths({ clock, extend: () => Promise.resolve({ outcome: 'unanswered' }) })
  const seen = {
    ended: [] as string[],
    brokenOff: 0,
    got: '',
    isGood: undefined as boolean | undefined,
    counted: '',
    isOwed: undefined as boolean | undefined,
    givenUp: 0,
    isPaused: false,
    timesCounted: 0,
    began: 0,
    drained: 0,
  }
  const settled: Reported[] = []
  let upstream: BodyReader | undefined
  let caller: OutletListener | undefined
  let hasRoom = true
  let hasLeft = false
  const body = {
    read(to: BodyReader) {
      upstream = to
    },
    pause() {
      seen.isPaused = true
    },
    resume() {
      seen.isPaused = false
    },
    giveUp() {
      seen.givenUp += 1
      upstream?.onFailure(new UpstreamFailure('u', { reason: 'aborted', certainty: 'unknown' }))
    },
  }
  const take = (bytes: Buffer, isGood?: boolean) => {
    seen.got += bytes.toString()
    seen.isGood = isGood
    return hasRoom
  }
  const held = { terms: { version: '1', rates: [] }, mostCounts: [], most: ZERO }
  const guard = createOutputGuard({ counter, tokenizer: 'o200k', limit })
  const room = memory ?? unboundedMemory(clock).open('')
  const relay = createRelay({ clock, log: silentLog, ended: (how) => seen.ended.push(how) })
  relay({
    stream: {
      reply: { status: 200, headers: {}, body, timing: { sentAtMs: 0, firstByteAtMs: 0, endedAtMs: 0 } },
      reader,
      measure(text, isOwed) {
        seen.counted = text
        seen.isOwed = isOwed
        return { counts: [] }
      },
      lost: () => ({ counts: [] }),
      errorFrame: (text) => `data: ${text}\n\n`,
      headers: {},
      outputGuard: {
        ...guard,
        isPassed(text, bytes) {
          seen.timesCounted += 1
          return guard.isPassed(text, bytes)
        },
      },
      stopsOnAbort,
    },
    kind: 'native',
    brokeOff: () => {
      seen.brokenOff += 1
    },
    held: () => held,
    growth: growsUnanswered
      ? createGrowth(growthPlan, { id: 'call', accountId: 'account', windows: [], ceilings: [] })
      : undefined,
    endedByHeader: 'X-Ended-By',
    room,
    began: () => {
      seen.began += 1
    },
    drains() {
      seen.drained += 1
      return () => {
        seen.drained -= 1
      }
    },
    settle: async () => {
      settled.push(reader.reported())
      await settling
      const money = { charged: nanos(1n), overrun: ZERO, free: ZERO, endedNow: true, settledAt: '', rates: null }
      return { outcome: 'posted', ...money }
    },
    requestId: 'request',
    renderFault: ({ code, message, members }) => JSON.stringify({ error: code, message, ...members }),
  }).body.sendTo({
    listen(listener) {
      caller = listener
    },
    hasLeft: () => hasLeft,
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
    leave() {
      hasLeft = true
      caller?.onLeft()
    },
    setRoom(has: boolean) {
      hasRoom = has
      if (has) caller?.onRoom()
    },
  }
}

const openai = ({ wantsUsage = true, ...options }: Options = {}) =>
  startStream(createOpenaiReader({ choices: 1, wantsUsage }), options)
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

  it('tells once that its first bytes go out, and never where nobody is there for them', async () => {
    const heard = openai()
    assert.equal(heard.seen.began, 0)
    heard.say(saying('a'))
    heard.say(saying('b') + STOP + DONE)
    heard.end()
    await heard.pass(0)
    assert.equal(heard.seen.began, 1)
    const left = openai()
    left.leave()
    left.say(saying('a') + STOP + DONE)
    left.end()
    await left.pass(0)
    assert.deepEqual([left.seen.began, left.settled.length], [0, 1])
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

  it('is passed on where its usage comes first, however long the upstream is silent after it and however much it says', async () => {
    const { seen, settled, say, pass, end } = openai({ limit: 100_000_000 })
    say(USAGE)
    await pass(30_000)
    assert.equal(settled.length, 0)
    const long = saying('a'.repeat(900_000))
    for (let at = 0; at < 6; at += 1) say(long)
    assert.equal(seen.got.length, USAGE.length + 6 * long.length)
    say(STOP + DONE)
    end()
    await pass(0)
    assert.deepEqual([settled.length, seen.ended, seen.isGood], [1, ['complete'], true])
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
    assert.match(failing.seen.got, /"no more","cost_usd":"0\.000000001"\},"request_id":"request"\}\n\n$/)
    assert.doesNotMatch(failing.seen.got, /upstream_transport/)
  })

  it('is told of as broken off where its upstream was to blame, and not where anybody else was', async () => {
    const brokenOff = async (act: (stream: ReturnType<typeof openai>) => void, options: Options = {}, passMs = 0) => {
      const stream = openai(options)
      stream.say(saying('hello'))
      act(stream)
      await stream.pass(passMs)
      assert.equal(stream.seen.ended.length, 1)
      return stream.seen.brokenOff
    }
    assert.equal(await brokenOff(({ breakOff }) => breakOff()), 1)
    assert.equal(await brokenOff(({ end }) => end()), 1)
    assert.equal(await brokenOff(({ say }) => say(frame({ error: { message: 'no more' } }))), 1)
    assert.equal(await brokenOff(({ say }) => say(STOP + USAGE + DONE)), 0)
    assert.equal(await brokenOff(({ leave }) => leave(), { stopsOnAbort: true }), 0)
    assert.equal(await brokenOff(({ say }) => say(saying('a'.repeat(2_000))), { growsUnanswered: true }, 5_000), 0)
  })

  it('does not say that nothing was charged where the ledger falls silent and what was received is charged', async () => {
    const { seen, say, pass } = openai({ growsUnanswered: true })
    say(saying('a'.repeat(900)))
    say(saying('b'.repeat(900)))
    await pass(5_000)
    assert.deepEqual([seen.ended, seen.isGood], [['upstream_failed'], false])
    assert.match(seen.got, /billing_dependency_timeout.*What you received is charged\.","cost_usd":"0\.000000001"/)
    assert.doesNotMatch(seen.got, /Nothing was charged/)
  })
})

describe('what a stream cost', () => {
  const COST = '"cost_usd":"0.000000001"'

  it('is told with the stop reason once the call is settled, and no word of the text waits for that', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const { seen, settled, say, pass, end } = openai({ wantsUsage: false, settling: promise })
    say(saying('hello'))
    assert.equal(seen.got, saying('hello'))
    say(STOP + USAGE + DONE)
    end()
    await pass(0)
    assert.deepEqual([settled.length, seen.got], [1, saying('hello')])
    resolve()
    await pass(0)
    assert.equal(seen.got, saying('hello') + STOP.replace(/\}\n\n$/, `,${COST}}\n\n`) + DONE)
    assert.equal(seen.isGood, true)
  })

  it('is told where its upstream breaks off between the stop reason and the usage', async () => {
    for (const wantsUsage of [true, false]) {
      const { seen, say, pass, breakOff } = openai({ wantsUsage })
      say(saying('hello') + STOP)
      breakOff()
      await pass(0)
      assert.deepEqual([seen.isGood, seen.got.split(COST).length - 1], [true, 1])
    }
  })

  it('is not told where it could not be settled, nor is the stop reason', async () => {
    for (const wantsUsage of [true, false]) {
      const { promise, reject } = Promise.withResolvers<void>()
      const { seen, say, pass, end } = openai({ wantsUsage, settling: promise })
      say(saying('hello') + STOP + USAGE + DONE)
      end()
      reject(new Error('nobody answers'))
      await pass(0)
      assert.deepEqual([seen.ended, seen.isGood], [['not_settled'], false])
      assert.doesNotMatch(seen.got, /cost_usd|finish_reason/)
    }
  })

  it('is in the error with which a stream that breaks off ends', async () => {
    const { seen, say, pass, breakOff } = openai({ wantsUsage: false })
    say(saying('hello'))
    breakOff()
    await pass(0)
    assert.match(seen.got, new RegExp(`upstream_transport.*${COST}`))
  })
})

describe('a stream whose caller leaves', () => {
  it('is counted by what was delivered, not by what was heard out after he had left', async () => {
    const { seen, say, leave, pass, end } = openai()
    say(saying('hello'))
    leave()
    say(saying(' and all that nobody has heard') + STOP + DONE)
    end()
    await pass(0)
    assert.deepEqual([seen.counted, seen.ended], ['hello', ['caller_left']])
  })

  it('is owed before its first word once it was given up, and not where its upstream failed meanwhile', async () => {
    const abandoned = openai()
    abandoned.leave()
    await abandoned.pass(29_999)
    assert.deepEqual([abandoned.seen.givenUp, abandoned.seen.drained], [0, 1])
    await abandoned.pass(1)
    assert.equal(abandoned.seen.drained, 0)
    assert.deepEqual([abandoned.seen.counted, abandoned.seen.isOwed, abandoned.seen.givenUp], ['', true, 1])
    const failed = openai()
    failed.leave()
    failed.breakOff()
    await failed.pass(0)
    assert.deepEqual([failed.seen.isOwed, failed.seen.givenUp], [false, 0])
  })

  it('is not owed where the upstream fails before its first word and he is still there', async () => {
    const { seen, breakOff, pass } = openai()
    breakOff()
    await pass(0)
    assert.deepEqual([seen.counted, seen.isOwed, seen.ended], ['', false, ['upstream_failed']])
  })

  it('is given up at once where that stops the meter of its upstream', async () => {
    const { seen, say, leave, pass } = openai({ stopsOnAbort: true })
    say(saying('hello'))
    leave()
    await pass(0)
    assert.deepEqual([seen.counted, seen.isOwed, seen.givenUp], ['hello', true, 1])
  })
})

describe('a stream whose caller leaves an upstream that stops its meter', () => {
  it('is waited for where the answer has ended, because its usage comes next', async () => {
    const { seen, settled, say, leave, pass, end } = openai({ stopsOnAbort: true })
    say(saying('hello') + STOP)
    leave()
    await pass(1_000)
    assert.equal(seen.givenUp, 0)
    say(USAGE + DONE)
    end()
    await pass(0)
    assert.deepEqual([settled, seen.ended], [[{ input: 7, output: 3_000 }], ['caller_left']])
  })
})

describe('a stream beyond its output limit', () => {
  const WORDS = 'one of many words that nobody has paid for '
  const counted = async (pass: (ms: number) => Promise<void>, seen: { ended: string[] }) => {
    // The tokenizer runs in a thread of its own.
    const isEnded = async () => {
      await pass(0)
      return seen.ended.length > 0
    }
    await until(isEnded, PATIENCE_MS, 'the count')
  }

  it('is cut, its upstream is given up, and it ends as nothing that anybody could take for an answer', async () => {
    const { seen, say, pass } = openai({ limit: 10 })
    for (let at = 0; at < 200; at += 1) say(saying(WORDS))
    await counted(pass, seen)
    assert.deepEqual([seen.ended, seen.isGood, seen.givenUp, seen.isOwed], [['over_limit'], false, 1, true])
    assert.equal(seen.brokenOff, 0)
    assert.match(seen.got, /output_limit_passed.*The limit is 10 tokens/)
    assert.equal(seen.counted, WORDS.repeat(200))
  })

  it('is cut where its words stand where no text is expected, and is counted by them', async () => {
    const { seen, say, pass } = openai({ limit: 10 })
    for (let at = 0; at < 200; at += 1) say(frame({ choices: [{ index: 0, text: WORDS }] }))
    await counted(pass, seen)
    assert.deepEqual([seen.ended, seen.givenUp], [['over_limit'], 1])
    assert.equal(seen.counted, WORDS.repeat(200))
  })

  it('is owed by a caller who left before its first word', async () => {
    const { seen, say, leave, pass } = openai({ limit: 10 })
    leave()
    for (let at = 0; at < 200; at += 1) say(saying(WORDS))
    await counted(pass, seen)
    assert.deepEqual([seen.ended, seen.counted, seen.isOwed, seen.givenUp], [['over_limit'], '', true, 1])
  })

  it('is let be where it has many bytes and few tokens: a run of spaces is not many words', async () => {
    const { seen, say, pass, end } = openai({ limit: 100 })
    for (let at = 0; at < 200; at += 1) say(saying(`${' '.repeat(100)}x`))
    for (let turns = 0; turns < 100; turns += 1) await delay(5)
    // Counted again only when there is twice as much.
    assert.deepEqual([seen.timesCounted, seen.givenUp], [3, 0])
    say(STOP + USAGE + DONE)
    end()
    await pass(0)
    assert.deepEqual([seen.ended, seen.isGood], [['complete'], true])
  })

  it('is not counted at all while it has no more bytes than such a limit allows', async () => {
    const { seen, say, pass, end } = openai({ limit: 2_000 })
    for (let at = 0; at < 370; at += 1) say(saying(WORDS))
    say(STOP + USAGE + DONE)
    end()
    await pass(0)
    assert.deepEqual([seen.ended, seen.timesCounted], [['complete'], 0])
  })
})

describe('a stream whose text needs more memory', () => {
  /** Has room for a reply of so many bytes; more is given when the test says so. */
  function createRoom(replyBytes: number) {
    const asked: { readonly neededBytes: number; readonly give: (hasRoom: boolean) => void }[] = []
    const room = {
      replyBytes,
      growReply(neededBytes: number) {
        const { promise, resolve } = Promise.withResolvers<boolean>()
        asked.push({ neededBytes, give: resolve })
        return promise
      },
    }
    return { room, asked }
  }

  it('waits with its upstream until there is some, also where its caller has room meanwhile', async () => {
    const { room, asked } = createRoom(65_536)
    const { seen, settled, say, pass, setRoom, end } = openai({ limit: 100_000, memory: room })
    say(saying('x'.repeat(30_000)))
    assert.deepEqual([asked.length, seen.isPaused], [0, false])
    say(saying('x'.repeat(10_000)))
    assert.deepEqual([asked.length, seen.isPaused], [1, true])
    assert.ok((asked[0]?.neededBytes ?? 0) >= 40_000)
    setRoom(true)
    assert.equal(seen.isPaused, true)
    room.replyBytes = 200_000
    asked[0]?.give(true)
    await pass(0)
    assert.equal(seen.isPaused, false)
    say(STOP + USAGE + DONE)
    end()
    await pass(0)
    assert.deepEqual([settled.length, seen.ended, seen.isGood], [1, ['complete'], true])
  })

  it('asks for some for a last frame that repeats all of it, and has ended well whether or not it gets any', async () => {
    for (const isGiven of [true, false]) {
      const { room, asked } = createRoom(65_536)
      const { seen, say, pass } = startStream(createResponsesReader({}), { memory: room })
      const content = [{ type: 'output_text', text: 'Seven.' }]
      const response = { instructions: 'x'.repeat(60_000), output: [{ type: 'message', content }], usage: {} }
      say(frame({ type: 'response.output_text.delta', delta: 'Seven.' }))
      assert.equal(asked.length, 0)
      say(frame({ type: 'response.completed', response }))
      assert.ok((asked[0]?.neededBytes ?? 0) >= 60_000)
      asked[0]?.give(isGiven)
      await pass(0)
      assert.deepEqual([seen.ended, seen.isGood, seen.counted, seen.isPaused], [['complete'], true, 'Seven.', false])
    }
  })

  it('is cut where there is none, and what came of it is charged', async () => {
    const { room, asked } = createRoom(65_536)
    const { seen, say, pass } = openai({ limit: 100_000, memory: room })
    say(saying('x'.repeat(40_000)))
    asked[0]?.give(false)
    await pass(0)
    assert.deepEqual([seen.givenUp, seen.isGood, seen.counted.length], [1, false, 40_000])
    assert.match(seen.got, /overloaded/)
  })
})

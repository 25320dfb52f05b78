import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Gauge, Registry } from '@prometheus-io/client'
import { failsWith, post, startTransport } from '../../../test/upstreams/asking.ts'
import { okay, startUpstream } from '../../../test/upstreams/raw-upstream.ts'
import { type LogFields, silentLog } from '../telemetry/log.ts'
import { createBreakers, FAILURES_IN_A_ROW, OPEN_FIRST_MS, OPEN_MOST_MS } from './breakers.ts'
import { type FailureReason, UpstreamFailure } from './failure.ts'

/** Breakers on a clock that the test moves by hand. */
function createBench(maxUpstreams?: number) {
  const registry = new Registry()
  let nowMs = 5_000_000
  const lines: [string, LogFields][] = []
  const upstreamBreakers = new Gauge({
    name: 'breakers',
    help: '-',
    labelNames: ['upstream', 'id'] as const,
    registers: [registry],
  })
  const breakers = createBreakers({
    clock: { monotonicMs: () => nowMs },
    metrics: { upstreamBreakers },
    log: { warn: (message, fields = {}) => void lines.push([message, fields]) },
    ...(maxUpstreams === undefined ? {} : { maxUpstreams }),
  })
  let asked = 0
  const ask = (upstream: string, work: () => Promise<string>) =>
    breakers.run({ id: upstream, name: `name of ${upstream}` }, () => {
      asked += 1
      return work()
    })
  return {
    lines,
    asked: () => asked,
    pass: (durationMs: number) => {
      nowMs += durationMs
    },
    succeed: (upstream = 'a') => ask(upstream, async () => 'fine'),
    fail: (reason: FailureReason = 'reset', upstream = 'a') =>
      failsWith(
        ask(upstream, async () => {
          throw new UpstreamFailure(upstream, { reason, certainty: 'unknown' })
        }),
        reason,
        'unknown',
      ),
    ask,
    refused: async (upstream = 'a') =>
      (
        await failsWith(
          ask(upstream, async () => 'fine'),
          'breaker',
          'not_sent',
        )
      ).retryAfterSeconds,
    async failOften(reason: FailureReason = 'reset', upstream = 'a') {
      for (let time = 0; time < FAILURES_IN_A_ROW; time += 1) await this.fail(reason, upstream)
    },
    state: async (upstream = 'a') =>
      new RegExp(`breakers\\{upstream="name of ${upstream}",id="${upstream}"\\} (\\d)`).exec(
        await registry.metrics(),
      )?.[1],
  }
}

describe('a breaker', () => {
  it('opens after so many failures in a row, and then asks nobody', async () => {
    const bench = createBench()
    for (let time = 1; time < FAILURES_IN_A_ROW; time += 1) await bench.fail()
    await bench.succeed()
    for (let time = 1; time < FAILURES_IN_A_ROW; time += 1) await bench.fail()
    assert.equal(await bench.state(), '0')
    await bench.fail()
    assert.equal(await bench.state(), '2')
    const asked = bench.asked()
    assert.equal(await bench.refused(), OPEN_FIRST_MS / 1_000)
    assert.equal(bench.asked(), asked)
  })

  it('lets one call try after a while, refuses others meanwhile, and closes when it succeeds', async () => {
    const bench = createBench()
    await bench.failOften()
    bench.pass(OPEN_FIRST_MS - 1)
    await bench.refused()
    bench.pass(1)
    const trial = Promise.withResolvers<string>()
    const tried = bench.ask('a', () => trial.promise)
    assert.equal(await bench.state(), '1')
    for (let time = 0; time < 5; time += 1) assert.equal(await bench.refused(), 1)
    trial.resolve('fine')
    assert.equal(await tried, 'fine')
    assert.equal(await bench.state(), '0')
    for (let time = 1; time < FAILURES_IN_A_ROW; time += 1) await bench.fail()
    await bench.succeed()
  })

  it('stays open twice as long after each trial that fails, up to a bound', async () => {
    const bench = createBench()
    await bench.failOften()
    let openMs = OPEN_FIRST_MS
    for (let trial = 0; trial < 8; trial += 1) {
      bench.pass(openMs)
      await bench.fail('connect')
      openMs = Math.min(2 * openMs, OPEN_MOST_MS)
      assert.equal(await bench.refused(), openMs / 1_000)
      bench.pass(openMs - 1)
      assert.equal(await bench.refused(), 1)
      bench.pass(1 - openMs)
    }
    bench.pass(OPEN_MOST_MS)
    await bench.succeed()
    await bench.failOften()
    assert.equal(await bench.refused(), OPEN_FIRST_MS / 1_000)
  })

  it('does not open for what the upstream is not to blame for', async () => {
    const bench = createBench()
    for (const reason of ['aborted', 'too_large', 'breaker'] as const) {
      await bench.failOften(reason)
      await bench.failOften(reason)
    }
    const notSent = new UpstreamFailure('a', { reason: 'protocol', certainty: 'not_sent' })
    for (let time = 0; time < 20; time += 1)
      await failsWith(
        bench.ask('a', () => Promise.reject(notSent)),
        'protocol',
        'not_sent',
      )
    for (let time = 0; time < 20; time += 1)
      await assert.rejects(
        bench.ask('a', () => Promise.reject(new TypeError('ours'))),
        TypeError,
      )
    assert.equal(await bench.state(), '0')
  })

  it('is not closed by a trial that was given up, and is by an answer that is too large', async () => {
    const bench = createBench()
    await bench.failOften()
    bench.pass(OPEN_FIRST_MS)
    await bench.fail('aborted')
    assert.equal(await bench.state(), '2')
    bench.pass(2 * OPEN_FIRST_MS)
    await bench.fail('too_large')
    assert.equal(await bench.state(), '0')
  })

  it('is one for each upstream, and of a bounded number', async () => {
    const bench = createBench(2)
    await bench.failOften('reset', 'a')
    await bench.succeed('b')
    await bench.refused('a')
    await bench.succeed('b')
    await bench.succeed('c')
    assert.deepEqual([await bench.state('a'), await bench.state('b'), await bench.state('c')], [undefined, '0', '0'])
    await bench.succeed('a')
  })
})

describe('a breaker that opens', () => {
  it('is one line of the log, and one when its upstream is back, however often it was tried in between', async () => {
    const bench = createBench()
    await bench.failOften('reset')
    const down = 'an upstream is down: it is not asked until a trial succeeds'
    const named = { upstream: 'name of a', upstream_id: 'a' }
    const first: [string, LogFields] = [down, { ...named, reason: 'reset', count: FAILURES_IN_A_ROW }]
    assert.deepEqual(bench.lines, [first])
    await bench.refused()
    bench.pass(OPEN_FIRST_MS)
    await bench.fail()
    bench.pass(2 * OPEN_FIRST_MS)
    await bench.fail()
    bench.pass(4 * OPEN_FIRST_MS)
    await bench.succeed()
    await bench.succeed()
    const back: [string, LogFields] = ['an upstream is back', { ...named, duration_ms: 7 * OPEN_FIRST_MS }]
    assert.deepEqual(bench.lines, [first, back])
    await bench.failOften('connect')
    assert.deepEqual(bench.lines.slice(2), [[down, { ...first[1], reason: 'connect' }]])
  })
})

describe('a transport with breakers', () => {
  it('does not open them for answers of whatever status, and for failures it does', async () => {
    const upstream = await startUpstream(({ socket, place, head }) => {
      if (head.includes('/dead')) socket.destroy()
      else socket.write(okay('').replace('200 OK', place % 2 === 0 ? '500 Sorry' : '429 Later'))
    })
    let nowMs = 0
    const metrics = { upstreamBreakers: { set: () => {}, remove: () => {} } }
    const transport = startTransport({
      breakers: createBreakers({ clock: { monotonicMs: () => nowMs }, metrics, log: silentLog }),
    })
    for (let call = 0; call < 3 * FAILURES_IN_A_ROW; call += 1)
      assert.ok((await transport.send(post(upstream.url))).status >= 429)
    for (let call = 0; call < FAILURES_IN_A_ROW; call += 1)
      await failsWith(transport.send(post(upstream.url, { target: '/dead' })), 'reset', 'unknown')
    const received = upstream.received.length
    await failsWith(transport.send(post(upstream.url)), 'breaker', 'not_sent')
    await failsWith(transport.open(post(upstream.url)), 'breaker', 'not_sent')
    assert.equal(upstream.received.length, received)
    nowMs += OPEN_FIRST_MS
    assert.equal((await transport.open(post(upstream.url))).status >= 429, true)
    await transport.send(post(upstream.url))
  })
})

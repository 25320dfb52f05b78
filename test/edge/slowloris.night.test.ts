import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { count, isFullProof, recordProof } from '../../harness/proof.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { type ChildEdge, startChildEdge } from './child-edge.ts'
import { KEY } from './probe-edge.ts'
import { open } from './raw-http.ts'

const ATTACKERS = 500
const CUT_WITHIN_MS = 12_000
const HANGS_MS = 120_000
/** Of the p99 of others with the attackers to that without. */
const RATIO_LIMIT = 2
const WINDOW_MS = 2_000
const AUTHORIZATION = { authorization: `Bearer ${KEY}` }

/** Ways to hold a connection without ever finishing a request's headers: what is sent first, and then every second. */
const SLOW: readonly (readonly [first: string, then: string])[] = [
  ['', ''],
  ['G', ''],
  ['GET /apis/v1/probe HTTP/1.1\r\n', 'X: a\r\n'],
  ['POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nContent-Length: 100000\r\n', 'a: b\r\n'],
  ['GET / HTTP/1.1\r\nX: ', 'a'],
]

describe('connections that never finish their headers', () => {
  it(`are all cut, ${ATTACKERS} of them, while others are served`, async () => {
    const edge = await startChildEdge()
    try {
      await latencies(edge, sleep(WINDOW_MS))
      const attempts = await untilGood(isFullProof ? 3 : 1, () => compare(edge))
      console.log(attempts)
      const figures = attempts.at(-1)
      assert.ok(figures !== undefined)
      for (const { failed, left_open, requests } of attempts) {
        assert.deepEqual({ failed, left_open }, { failed: 0, left_open: 0 })
        assert.ok(requests > 0)
      }
      if (isFullProof) {
        assert.ok(figures.slowest_cut_ms <= CUT_WITHIN_MS, `the last was cut after ${figures.slowest_cut_ms} ms`)
        assert.ok(figures.ratio < RATIO_LIMIT, `p99 rose ${figures.ratio} times`)
      }
      recordProof('edge-slowloris', `${ATTACKERS} slow connections`, {
        ...figures,
        tries: attempts.length,
        worst_try: {
          ratio: Math.max(...attempts.map(({ ratio }) => ratio)),
          slowest_cut_ms: Math.max(...attempts.map(({ slowest_cut_ms }) => slowest_cut_ms)),
          longest_stall_ms: Math.max(...attempts.map(({ longest_stall_ms }) => longest_stall_ms)),
        },
      })
    } finally {
      await edge.child.stop()
    }
  })

  it('give way to others where the number of connections is limited below theirs', async () => {
    // None of them is cut because it is slow.
    const limits = { connections: 100, headersTimeoutMs: 600_000, requestTimeoutMs: 600_000 }
    const edge = await startChildEdge({ limits })
    try {
      const attackers = await attack(edge.port)
      for (let index = 0; index < 100; index += 1) {
        const pool = new Pool(`http://127.0.0.1:${edge.port}`, { connections: 1 })
        const { statusCode, body } = await pool.request({
          method: 'GET',
          path: '/apis/v1/probe',
          headers: AUTHORIZATION,
        })
        await body.dump()
        await pool.close()
        assert.equal(statusCode, 200)
      }
      const stillOpen = () => attackers.sockets.filter(({ closed }) => !closed).length
      await until(() => stillOpen() <= 100, PATIENCE_MS, 'that others gave way')
      attackers.end()
    } finally {
      await edge.child.stop()
    }
  })
})

type Figures = Awaited<ReturnType<typeof compare>>

/** Other programs share the processors: what holds for us holds in a quiet run too, and a fault of ours in every run. */
async function untilGood(triesMax: number, attempt: () => Promise<Figures>): Promise<readonly Figures[]> {
  const first = await attempt()
  if (triesMax === 1 || (first.ratio < RATIO_LIMIT && first.slowest_cut_ms <= CUT_WITHIN_MS)) return [first]
  return [first, ...(await untilGood(triesMax - 1, attempt))]
}

async function compare(edge: ChildEdge) {
  // Joined, not pushed: a quick machine brings more figures than a call takes arguments.
  let without: number[] = []
  let during: number[] = []
  let slowestCutMs = 0
  let [failed, leftOpen] = [0, 0]
  for (let round = 0; round < count({ full: 5, reduced: 1 }); round += 1) {
    const before = await latencies(edge, sleep(WINDOW_MS))
    const allCut = (await attack(edge.port)).allCut()
    const meanwhile = await latencies(edge, allCut)
    slowestCutMs = Math.max(slowestCutMs, (await allCut).slowestMs)
    leftOpen += (await allCut).stillOpen
    const after = await latencies(edge, sleep(WINDOW_MS))
    without = without.concat(before.took, after.took)
    during = during.concat(meanwhile.took)
    failed += before.failed + meanwhile.failed + after.failed
  }
  const { stalledMs } = await edge.measure()
  const [p99, p99During] = [percentile(without, 0.99), percentile(during, 0.99)]
  return {
    connections: ATTACKERS,
    slowest_cut_ms: Math.round(slowestCutMs),
    p99_without_ms: Number(p99.toFixed(2)),
    p99_during_ms: Number(p99During.toFixed(2)),
    ratio: Number((p99During / p99).toFixed(2)),
    requests: without.length + during.length,
    failed,
    left_open: leftOpen,
    longest_stall_ms: Math.round(stalledMs),
  }
}

async function attack(port: number) {
  const sockets: { readonly socket: Socket; readonly then: string; closed: boolean }[] = []
  const startedMs = performance.now()
  let lastCutMs = 0
  for (let index = 0; index < ATTACKERS; index += 1) {
    const [first, then] = SLOW[index % SLOW.length] ?? ['', '']
    const one = { socket: await open(port), then, closed: false }
    one.socket.on('data', () => {})
    one.socket.once('close', () => {
      one.closed = true
      lastCutMs = performance.now()
    })
    if (first !== '') one.socket.write(first)
    sockets.push(one)
  }
  const openedMs = performance.now()
  if (isFullProof) assert.ok(openedMs - startedMs < 5_000, 'all attackers are there before the first is cut')
  // Each sends a little once a second, a few of them at a time, so that we ourselves never stand in the way.
  let turn = 0
  const trickle = setInterval(() => {
    turn = (turn + 1) % 50
    for (let index = turn; index < sockets.length; index += 50) {
      const { socket, then = '', closed } = sockets[index] ?? { closed: true }
      if (!closed && then !== '') socket?.write(then)
    }
  }, 20)
  const end = () => {
    clearInterval(trickle)
    for (const { socket } of sockets) socket.destroy()
  }
  return {
    sockets,
    end,
    /** Resolves with the time from the last one's arrival to the last one's end, and with how many were never cut. */
    async allCut() {
      const deadlineMs = openedMs + HANGS_MS
      while (sockets.some(({ closed }) => !closed) && performance.now() < deadlineMs) await sleep(20)
      const stillOpen = sockets.filter(({ closed }) => !closed).length
      end()
      return { slowestMs: lastCutMs - openedMs, stillOpen }
    },
  }
}

/** How long requests of ordinary callers take: a few connections, each asking again when it has its answer. */
async function latencies({ port }: ChildEdge, end: Promise<unknown>) {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 4 })
  const took: number[] = []
  let failed = 0
  let isOver = false
  end.then(() => {
    isOver = true
  })
  const caller = async () => {
    while (!isOver) {
      const startedMs = performance.now()
      const { statusCode, body } = await pool.request({ method: 'GET', path: '/apis/v1/probe', headers: AUTHORIZATION })
      await body.dump()
      took.push(performance.now() - startedMs)
      if (statusCode !== 200) failed += 1
    }
  }
  await Promise.all(Array.from({ length: 4 }, caller))
  await pool.close()
  return { took, failed }
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

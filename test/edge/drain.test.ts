import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { judge } from '../../harness/figures.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { startProbeEdge } from './probe-edge.ts'
import { converse, open } from './raw-http.ts'
import { GOOD, HEAD } from './smuggling-cases.ts'

const PROOF = 'edge-drain-deadlines'
const NEVER_MS = 600_000
const slow = (durationMs: number) => `GET /apis/v1/probe/slow?ms=${durationMs} HTTP/1.1\r\n${HEAD}\r\n`

describe('draining', () => {
  it('is unready at once, and takes connections until load balancers had time to notice', async () => {
    const { edge, url } = await startProbeEdge()
    assert.equal((await fetch(`${url}/readyz`)).status, 200)
    const drained = edge.drain({ pauseMs: 3_000, idleGraceMs: 0 })
    assert.equal((await fetch(`${url}/readyz`)).status, 503)
    assert.equal((await fetch(`${url}/livez`)).status, 200)
    assert.deepEqual(await drained, { cutRequests: 0 })
    await assert.rejects(fetch(`${url}/livez`))
  })

  it('answers what runs, and says that it is the last answer', async () => {
    const { edge, port, handled } = await startProbeEdge()
    const running = converse(port, slow(400), { quietMs: 3_000 })
    await until(() => handled.length === 1, PATIENCE_MS, 'that it runs')
    assert.deepEqual(await edge.drain(), { cutRequests: 0 })
    const { responses, closed } = await running
    assert.deepEqual([responses[0]?.status, responses[0]?.headers.get('connection')], [200, 'close'])
    assert.ok(closed)
  })

  it('answers all that a connection has sent already', async () => {
    const { edge, port, handled } = await startProbeEdge()
    const running = converse(port, slow(300) + GOOD + GOOD, { quietMs: 3_000, expected: 3 })
    await until(() => handled.length === 1, PATIENCE_MS, 'that the first runs')
    assert.deepEqual(await edge.drain(), { cutRequests: 0 })
    const { responses } = await running
    assert.deepEqual(
      responses.map(({ status, headers }) => [status, headers.get('connection')]),
      [
        [200, 'keep-alive'],
        [200, 'keep-alive'],
        [200, 'close'],
      ],
    )
  })

  it('lets a stream that has begun come to its end', async () => {
    const { edge, port, handled } = await startProbeEdge()
    const running = converse(port, `GET /apis/v1/probe/stream HTTP/1.1\r\n${HEAD}\r\n`, { quietMs: 3_000 })
    await until(() => handled.length === 1, PATIENCE_MS, 'that it runs')
    assert.deepEqual(await edge.drain(), { cutRequests: 0 })
    assert.match((await running).responses[0]?.body ?? '', /data: 1[\s\S]*data: 2/)
  })

  it('still answers a request that comes on an open connection while the grace lasts', async () => {
    const { edge, port } = await startProbeEdge()
    const socket = await open(port)
    socket.write(GOOD)
    await once(socket, 'data')
    const drained = edge.drain({ idleGraceMs: 30_000 })
    await sleep(200)
    socket.write(GOOD)
    const [answer] = await once(socket, 'data')
    assert.match(String(answer), /^HTTP\/1\.1 200 [\s\S]*connection: close/)
    await drained
  })

  it('closes silent connections after the grace, and those that dawdle', async () => {
    // Nothing else would close them in that time.
    const { edge, port } = await startProbeEdge({ limits: { headersTimeoutMs: NEVER_MS, requestTimeoutMs: NEVER_MS } })
    const sockets = await Promise.all([open(port), open(port), open(port)])
    sockets[1]?.write('GET / HTTP')
    const startedMs = performance.now()
    assert.deepEqual(await edge.drain({ idleGraceMs: 200 }), { cutRequests: 0 })
    const tookMs = performance.now() - startedMs
    assert.ok(tookMs >= 200, `${tookMs} ms`)
    judge(PROOF, 'silent connections closed after a grace of 200 ms', { unit: 'ms', atMost: 2_000 }, [tookMs])
  })

  it('cuts what still runs at the deadline, and says how many', async () => {
    const { edge, port, handled } = await startProbeEdge()
    const running = [converse(port, slow(20_000)), converse(port, slow(20_000)), converse(port, GOOD)]
    await until(() => handled.length === 3, PATIENCE_MS, 'that all run')
    await running[2]
    const startedMs = performance.now()
    assert.deepEqual(await edge.drain({ deadlineMs: 300 }), { cutRequests: 2 })
    const tookMs = performance.now() - startedMs
    judge(PROOF, 'what runs cut at a deadline of 300 ms', { unit: 'ms', atMost: 2_000 }, [tookMs])
    const answered = (await Promise.all(running)).map(({ responses }) => responses.length)
    assert.deepEqual(answered, [0, 0, 1])
  })

  it('asked for twice is done once', async () => {
    const { edge } = await startProbeEdge()
    const first = edge.drain()
    assert.equal(edge.drain(), first)
    await first
  })
})

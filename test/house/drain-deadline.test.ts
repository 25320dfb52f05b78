import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startProbeEdge } from '../edge/probe-edge.ts'
import { converse } from '../edge/raw-http.ts'
import { HEAD } from '../edge/smuggling-cases.ts'

describe('http.drain_ms', () => {
  it('counts from the signal, so that http.drain_pause_ms is a part of it', async () => {
    const { edge, port } = await startProbeEdge()
    const running = converse(port, `GET /apis/v1/probe/slow?ms=10000 HTTP/1.1\r\n${HEAD}\r\n`, { quietMs: 5_000 })
    await sleep(100)
    const startedMs = performance.now()
    assert.deepEqual(await edge.drain({ pauseMs: 1_500, deadlineMs: 1_600 }), { cutRequests: 1 })
    const tookMs = performance.now() - startedMs
    assert.ok(tookMs >= 1_500 && tookMs < 2_800, `${tookMs} ms`)
    assert.deepEqual((await running).responses, [])
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { judge } from '../../harness/figures.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { startProbeEdge } from '../edge/probe-edge.ts'
import { converse } from '../edge/raw-http.ts'
import { HEAD } from '../edge/smuggling-cases.ts'

const PAUSE_MS = 3_000
const DEADLINE_MS = 3_100
/** Answered long after the deadline, and before it if the deadline counted from the end of the pause. */
const REQUEST_MS = 5_800

describe('http.drain_ms', () => {
  it('counts from the signal, so that http.drain_pause_ms is a part of it', async () => {
    const { edge, port, handled } = await startProbeEdge()
    const slow = `GET /apis/v1/probe/slow?ms=${REQUEST_MS} HTTP/1.1\r\n${HEAD}\r\n`
    const running = converse(port, slow, { quietMs: 5_000 })
    await until(() => handled.length === 1, PATIENCE_MS, 'that it runs')
    const startedMs = performance.now()
    assert.deepEqual(await edge.drain({ pauseMs: PAUSE_MS, deadlineMs: DEADLINE_MS }), { cutRequests: 1 })
    const tookMs = performance.now() - startedMs
    assert.ok(tookMs >= PAUSE_MS, `${tookMs} ms`)
    assert.deepEqual((await running).responses, [])
    judge('drain-deadline', 'a drain that ends at its deadline', { unit: 'ms', atMost: DEADLINE_MS + 1_200 }, [tookMs])
  })
})

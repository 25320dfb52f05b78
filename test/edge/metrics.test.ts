import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { createMetrics } from '../../server/src/telemetry/metrics.ts'
import { KEY, startProbeEdge } from './probe-edge.ts'
import { converse, open } from './raw-http.ts'
import { GOOD, HEAD } from './smuggling-cases.ts'

describe('the metrics of the edge', () => {
  it('count requests by family, method and status, and the faults by code; nothing stays open', async () => {
    const metrics = createMetrics()
    const { edge, port, url } = await startProbeEdge({ metrics })
    await converse(port, GOOD + GOOD, { quietMs: 100, expected: 2 })
    await fetch(`${url}/v1/models`)
    await fetch(`${url}/v1/${KEY}`, { method: 'PROPFIND', headers: { authorization: `Bearer ${KEY}` } })
    await fetch(`${url}/livez`)
    await converse(port, 'rubbish\r\n\r\n')
    const left = await open(port)
    left.write(`GET /apis/v1/probe/slow?ms=3000 HTTP/1.1\r\n${HEAD}\r\n`)
    const isOpen = async () => /^farebox_http_requests_open 1$/m.test(await metrics.expose())
    await until(isOpen, PATIENCE_MS, 'an open request')
    left.destroy()
    await edge.drain({ idleGraceMs: 0 })

    const text = await metrics.expose()
    for (const line of [
      'farebox_http_requests_total{family="data",method="GET",status="200"} 2',
      'farebox_http_requests_total{family="chat",method="GET",status="401"} 1',
      'farebox_http_requests_total{family="chat",method="other",status="404"} 1',
      'farebox_http_requests_total{family="health",method="GET",status="200"} 1',
      'farebox_http_requests_total{family="data",method="GET",status="aborted"} 1',
      'farebox_http_request_seconds_count{family="data"} 3',
      'farebox_faults_total{code="missing_credential"} 1',
      'farebox_faults_total{code="invalid_request"} 1',
      'farebox_http_requests_open 0',
    ]) {
      assert.ok(text.includes(`${line}\n`), `${line}\n${text.slice(text.indexOf('farebox_http'))}`)
    }
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Fault } from '../kernel/fault.ts'
import { type LogFields, silentLog } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { UpstreamFailure } from '../upstreams/failure.ts'
import { createTraffic } from './traffic.ts'

function start() {
  const written: (readonly [level: string, fields: LogFields | undefined])[] = []
  let nowMs = 5_000
  const metrics = createMetrics()
  const traffic = createTraffic({
    clock: { monotonicMs: () => nowMs },
    metrics,
    log: {
      ...silentLog,
      error: (_message, fields) => written.push(['error', fields]),
      warn: (_message, fields) => written.push(['warn', fields]),
    },
  })
  const pass = (durationMs: number) => {
    nowMs += durationMs
  }
  return { traffic, metrics, written, pass }
}

describe('what is said about requests', () => {
  it('is a line for every failure of ours, with its cause, and none for a refusal', () => {
    const { traffic, written } = start()
    const cause = new Error('why')
    traffic.refused(new Fault('rate_limit_exceeded', { cause }))
    traffic.refused(new Fault('internal_error', { cause }), undefined, { route: '/v1/models' })
    traffic.refused(new Fault('upstream_transport'))
    assert.deepEqual(written, [
      ['error', { code: 'internal_error', status: 500, route: '/v1/models', error: cause }],
      ['warn', { code: 'upstream_transport', status: 502 }],
    ])
  })

  it('says of an upstream that failed which it is, what happened and after how long', () => {
    const { traffic, written } = start()
    const cause = new UpstreamFailure('u-1', { reason: 'connect', certainty: 'not_sent', afterMs: 5_000.4 })
    traffic.refused(new Fault('upstream_unreachable', { cause }))
    const told = { code: 'upstream_unreachable', status: 502, upstream: 'u-1', reason: 'connect', duration_ms: 5_000 }
    assert.deepEqual(written, [['warn', { ...told, error: cause }]])
  })

  it('is at most fifty lines a second, while every fault is counted', async () => {
    const { traffic, metrics, written, pass } = start()
    for (let index = 0; index < 200; index += 1) traffic.refused(new Fault('overloaded'))
    assert.equal(written.length, 50)
    pass(1_000)
    traffic.refused(new Fault('overloaded'))
    assert.equal(written.length, 51)
    assert.match(await metrics.expose(), /farebox_faults_total\{code="overloaded"\} 201/)
  })
})

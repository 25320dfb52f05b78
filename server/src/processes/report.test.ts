import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type ProcessReport, REPORT_BYTES, type ReportedUpstream, reportIn, reportText } from './report.ts'
import { upstreamsOf } from './upstreams.ts'

const LANE = { waiting: 20_000, lagMs: 2_500 }
const REPORT: Omit<ProcessReport, 'upstreamsLeftOut'> = {
  version: '0.2.0',
  roles: ['gateway', 'admin', 'site', 'worker', 'agent'],
  host: 'a-machine-with-a-long-name.region-1.internal.example',
  pid: 4_194_304,
  upSeconds: 31_536_000,
  contract: 'a'.repeat(64),
  memory: { rssBytes: 2 ** 40, heapBytes: 2 ** 40, reservedBytes: 2 ** 40, budgetBytes: 2 ** 40, waiting: 10_000 },
  eventLoop: 0.999,
  openCalls: 20_000,
  lanes: { begin: LANE, extend: LANE, end: LANE },
  changesLagMs: 100_000,
  upstreams: [],
}
const upstream = (at: number, breaker: ReportedUpstream['breaker'] = 'closed'): ReportedUpstream => ({
  id: `0199c5e0-0000-7000-8000-${String(at).padStart(12, '0')}`,
  name: `provider-${at}`,
  breaker,
  changedSecondsAgo: null,
  asked: at,
  failed: 0,
  p50Ms: 1_000,
  p95Ms: 10_000,
})

describe('the report of a process', () => {
  it('is at most 8 KiB: upstreams that are down come first, then those that were asked most, and it says how many are left out', () => {
    const upstreams = Array.from({ length: 500 }, (_, at) => upstream(at, at === 3 ? 'open' : 'closed'))
    const text = reportText({ ...REPORT, upstreams })
    assert.ok(Buffer.byteLength(text) <= REPORT_BYTES)
    const read = reportIn(text) ?? assert.fail('it can’t be read')
    const asked = read.upstreams.map((one) => one.asked)
    assert.deepEqual(asked.slice(0, 3), [3, 499, 498])
    assert.equal(read.upstreams.length + read.upstreamsLeftOut, 500)
    assert.ok(read.upstreams.length >= 40, `${read.upstreams.length} fit`)
  })

  it('is read as it was written, and is nothing where a release writes another one', () => {
    const text = reportText({ ...REPORT, upstreams: [upstream(1)] })
    assert.deepEqual(reportIn(text), { ...REPORT, upstreams: [upstream(1)], upstreamsLeftOut: 0 })
    for (const other of ['', '{', 'null', '{"version":"9"}']) assert.equal(reportIn(other), undefined)
  })
})

describe('an upstream over all processes', () => {
  const at = new Date('2026-11-17T01:00:00Z')
  const process = (one: ReportedUpstream, isAlive = true) => ({
    id: 'p',
    isAlive,
    seenAt: at,
    heldSince: at,
    report: { ...REPORT, upstreams: [one], upstreamsLeftOut: 0 },
  })
  const open = { ...upstream(5, 'open'), changedSecondsAgo: 30 }
  const closed = { ...upstream(5), changedSecondsAgo: 90 }
  const states = (...all: readonly ReturnType<typeof process>[]) =>
    upstreamsOf(all).map(({ state, since, asked }) => [state, since?.toISOString().slice(11, 19), asked])

  it('is up, down, or down for some, and one that did not ask it lately does not know', () => {
    assert.deepEqual(states(process(closed), process(closed)), [['up', '00:58:30', 10]])
    assert.deepEqual(states(process(closed), process(open)), [['partly', '00:59:30', 10]])
    assert.deepEqual(states(process({ ...closed, asked: 0 }), process(open)), [['down', '00:59:30', 5]])
    assert.deepEqual(states(process(closed), process(open, false)), [['up', '00:58:30', 5]])
    assert.deepEqual(states(), [])
  })
})

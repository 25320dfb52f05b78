import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ProcessView } from '../../processes/processes.ts'
import type { ProcessReport, ReportedUpstream } from '../../processes/report.ts'
import type { Reading } from './kept-processes.ts'
import { statusRoutes } from './status.ts'

const AT = new Date('2026-11-17T01:00:00Z')
const LANE = { waiting: 0, lagMs: 0 }
const REPORT: ProcessReport = {
  version: '0.2.0',
  roles: ['site', 'gateway', 'agent', 'worker'],
  host: 'one',
  pid: 1,
  upSeconds: 60,
  contract: 'a'.repeat(64),
  memory: { rssBytes: 1, heapBytes: 1, reservedBytes: 0, budgetBytes: 1, waiting: 0 },
  eventLoop: 0.1,
  openCalls: 0,
  lanes: { begin: LANE, extend: LANE, end: LANE },
  changesLagMs: 100,
  upstreams: [],
  upstreamsLeftOut: 0,
}

function processOf(report: Partial<ProcessReport> | null, isAlive = true): ProcessView {
  return { id: 'one', isAlive, seenAt: AT, heldSince: AT, report: report === null ? null : { ...REPORT, ...report } }
}

const upstream = (name: string, breaker: ReportedUpstream['breaker']): ReportedUpstream => ({
  id: name,
  name,
  breaker,
  changedSecondsAgo: breaker === 'closed' ? null : 30,
  asked: 10,
  failed: 0,
  p50Ms: 100,
  p95Ms: 200,
})

async function told(processes: readonly ProcessView[], reading: Partial<Reading> = {}): Promise<string> {
  const shell = {
    isShown: () => true,
    page: ({ main }: { readonly main: object }) => ({ status: 200, headers: {}, body: String(main) }),
    text: ({ body }: { readonly body: string }) => ({ status: 200, headers: {}, body }),
  }
  const now = () => ({ processes, readAt: AT, isFresh: true, ...reading })
  const [route] = statusRoutes({ shell, processes: now, names: { social_a: 'clips' } })
  const request = { params: {}, query: new URLSearchParams() }
  return String(
    Object(await Reflect.apply(route?.answer ?? assert.fail('there is no route'), undefined, [request])).body,
  )
}

describe('the status page tells what all processes say of themselves', () => {
  it('of each part by the processes that have its role', async () => {
    const both = await told([processOf({ roles: ['site'] }), processOf({ roles: ['gateway', 'worker'] })])
    assert.match(both, /Calls are accepted, held for and settled/)
    assert.match(both, /as all 2 processes that run say of themselves/)
    assert.match(both, /Five tools over MCP<\/span>.*Not running<\/span>/)
    const alone = await told([processOf({ roles: ['site'] })])
    assert.match(alone, /In trouble: gateway, worker\./)
    assert.match(alone, /Tasks, mail, sums of usage<\/span>.*Not seen<\/span>/)
    const lagging = await told([processOf({}), processOf({ changesLagMs: 6_000 })])
    assert.match(lagging, /2 processes<\/span>.*1 of 2 answer<\/span>/)
    const starting = await told([processOf({}), processOf({ changesLagMs: null, upSeconds: 2 })])
    assert.match(starting, /Calls are accepted/, 'one that has just begun is no trouble')
  })

  it('and of none that has died, or of a release that says it otherwise', async () => {
    assert.match(await told([processOf({}, false)]), /No process has reached the ledger/)
    assert.match(await told([processOf(null)]), /In trouble: gateway, worker\./)
  })

  it('of the ledger that it does not answer, where the reports can’t be read', async () => {
    const down = await told([processOf({})], { isFresh: false })
    assert.match(down, /The ledger does not answer/)
    assert.match(down, /billing_dependency_timeout/)
    assert.match(down, /Not known<\/span>/)
  })

  it('of each provider by its name, and since when it is in trouble', async () => {
    const shown = await told([
      processOf({ upstreams: [upstream('social_a', 'open'), upstream('openai', 'closed')] }),
      processOf({ upstreams: [upstream('openai', 'open')] }),
    ])
    assert.match(shown, /clips<span class="fb-sub">Provider\. It kept failing since .*Not asked<\/span>/)
    assert.match(shown, /openai<span class="fb-sub">Provider\. It kept failing.*Asked in part<\/span>/)
    assert.match(shown, /In trouble: clips, openai\./)
    assert.match(await told([processOf({ upstreams: [upstream('openai', 'closed')] })]), /Provider<\/span>.*Answers/)
    assert.match(await told([processOf({})]), /None was called yet/)
  })
})

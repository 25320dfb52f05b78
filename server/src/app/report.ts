import { hostname } from 'node:os'
import { performance } from 'node:perf_hooks'
import { VERSION } from '../cli/version.ts'
import { reportText } from '../processes/report.ts'
import type { Contracts } from './contracts.ts'
import type { Gateway } from './gateway.ts'
import type { Infrastructure } from './infrastructure.ts'
import type { Money } from './money.ts'

/** What this process says of itself whenever it renews its lease. Nothing here waits for anybody. */
export function createReport(
  { config, clock, feed, memory }: Infrastructure,
  { calls }: Money,
  { breakers, figures }: Gateway,
  { current }: Contracts,
): () => string {
  const startedMs = clock.monotonicMs()
  const host = hostname()
  let busy = performance.eventLoopUtilization()

  function utilization(): number {
    const now = performance.eventLoopUtilization()
    const { utilization: share } = performance.eventLoopUtilization(now, busy)
    busy = now
    return Math.round(share * 1_000) / 1_000
  }

  return () => {
    const { rss: rssBytes, heapUsed: heapBytes } = process.memoryUsage()
    const { reservedBytes, waiting } = memory.figures()
    const lagMs = feed.lagMs()
    return reportText({
      version: VERSION,
      roles: [...config.roles],
      host,
      pid: process.pid,
      upSeconds: Math.round((clock.monotonicMs() - startedMs) / 1_000),
      contract: current()?.contentHash ?? null,
      memory: { rssBytes, heapBytes, reservedBytes, budgetBytes: config.memory.budget_bytes, waiting },
      eventLoop: utilization(),
      openCalls: calls.open().length,
      lanes: calls.lanes(),
      changesLagMs: Number.isFinite(lagMs) ? Math.round(lagMs) : null,
      upstreams: breakers.all().map(({ id, slot, state, changedMsAgo }) => ({
        id,
        name: slot,
        breaker: state,
        changedSecondsAgo: changedMsAgo === null ? null : Math.round(changedMsAgo / 1_000),
        ...figures.of(id),
      })),
    })
  }
}

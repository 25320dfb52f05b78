import { z } from 'zod'

/**
 * What a process says of itself: written with its lease every few seconds, and read by the status page and by commands, so that nobody tells of one process
 * alone. Times are ages, so that a clock that is wrong says nothing wrong.
 */

export const REPORT_BYTES = 8_192
/** For so long, what is said of upstreams is remembered. The running minute is one of them. */
export const FIGURES_MINUTES = 5

const whole = z.int().nonnegative()
const lane = z.object({ waiting: whole, lagMs: whole })

const upstream = z.object({
  id: z.string(),
  /** The slot that it fills. */
  name: z.string(),
  breaker: z.enum(['closed', 'half_open', 'open']),
  /** Since the breaker closed, or opened; null where it was closed from the start. */
  changedSecondsAgo: whole.nullable(),
  /** In the last minutes. */
  asked: whole,
  failed: whole,
  p50Ms: whole.nullable(),
  p95Ms: whole.nullable(),
})

const report = z.object({
  version: z.string(),
  roles: z.array(z.string()),
  host: z.string(),
  pid: whole,
  upSeconds: whole,
  /** The hash of the contract that it serves; null where it has none. */
  contract: z.string().nullable(),
  memory: z.object({ rssBytes: whole, heapBytes: whole, reservedBytes: whole, budgetBytes: whole, waiting: whole }),
  /** The share of the last seconds in which the event loop was busy. */
  eventLoop: z.number().min(0).max(1),
  openCalls: whole,
  lanes: z.object({ begin: lane, extend: lane, end: lane }),
  /** Since the change log was last read to its end; null where that was never. */
  changesLagMs: whole.nullable(),
  upstreams: z.array(upstream),
  /** Upstreams that did not fit: of those that answer, the ones that were asked least. */
  upstreamsLeftOut: whole,
})

export type ProcessReport = Readonly<z.output<typeof report>>
export type ReportedUpstream = ProcessReport['upstreams'][number]

/** At most so many bytes, whatever is in it: those of the upstreams that matter most, and how many were left out. */
export function reportText(given: Omit<ProcessReport, 'upstreamsLeftOut'>): string {
  const upstreams = given.upstreams.toSorted(
    (one, other) => Number(one.breaker === 'closed') - Number(other.breaker === 'closed') || other.asked - one.asked,
  )
  const frame: ProcessReport = { ...given, upstreams: [], upstreamsLeftOut: upstreams.length }
  let bytes = Buffer.byteLength(JSON.stringify(frame))
  let fitting = 0
  for (const one of upstreams) {
    bytes += Buffer.byteLength(JSON.stringify(one)) + 1
    if (bytes > REPORT_BYTES) break
    fitting += 1
  }
  const text: ProcessReport = {
    ...frame,
    upstreams: upstreams.slice(0, fitting),
    upstreamsLeftOut: upstreams.length - fitting,
  }
  return JSON.stringify(text)
}

/** Undefined where it was written by a release that says it otherwise. */
export function reportIn(text: string): ProcessReport | undefined {
  try {
    return report.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

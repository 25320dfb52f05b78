import type { Load, LoadReport } from './load.ts'

/** What the windows of a benchmark have in common: how they are sent, warmed up for, judged and read. */

export type Window = Pick<Load, 'connections' | 'rate' | 'warmUpMs' | 'measureMs'>

/** Sends a load to one server. */
export type Send = (window: Window) => Promise<LoadReport>

export const SETTLE_MS = 300

/** V8 goes on compiling for 150,000 calls or so; each part of the warm-up opens its connections anew, as the windows do. */
export const WARM_UP = { full: { times: 12, measureMs: 5_000 }, reduced: { times: 1, measureMs: 500 } }

/** Code that has not run often is slow, and says nothing about a server that has run for an hour. */
export async function warmUp(
  sends: readonly Send[],
  { times, measureMs }: { readonly times: number; readonly measureMs: number },
): Promise<void> {
  for (let at = 0; at < times; at += 1)
    for (const send of sends) await send({ connections: 200, warmUpMs: 100, measureMs })
}

/** A figure of a run in which something was refused would be one of something else. */
export function sound(report: LoadReport): LoadReport {
  if (report.answered > 0 && report.refused === 0 && report.broken === 0 && report.generatorShare < 0.9) return report
  const { answered, statuses, broken, generatorShare } = report
  throw new Error(`the load was not answered: ${JSON.stringify({ answered, statuses, broken, generatorShare })}`)
}

/** CPU-µs of one of those that were measured, for a request. */
export function perRequest({ cpuUs, answered }: LoadReport, name: string): number {
  return (cpuUs[name] ?? Number.NaN) / answered
}

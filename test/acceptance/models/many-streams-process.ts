import { readFileSync } from 'node:fs'
import type { Gateway } from '../../../harness/gateways.ts'

const KIB_IN_MB = 1_024 / 1_000_000

/** Memory that the kernel has given a process, in MB of a million bytes. */
export function rssMb({ pid }: Gateway): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * KIB_IN_MB
}

const TICKS_PER_SECOND = 100

/** Processor time that a process has used. */
export function cpuSeconds({ pid }: Gateway): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const [userTicks, systemTicks] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
  return (Number(userTicks) + Number(systemTicks)) / TICKS_PER_SECOND
}

export type LoopDelay = { readonly p50Ms: number; readonly p99Ms: number; readonly maxMs: number }

/**
 * The delay of a process's event loop since it was asked the last time: the process begins anew with every answer. It is
 * the time between two ticks of a timer of 10 ms, those 10 ms included.
 */
export async function loopDelay({ adminUrl }: Gateway): Promise<LoopDelay> {
  const exposed = await (await fetch(`${adminUrl}/metrics`)).text()
  const ms = (name: string) => {
    const seconds = new RegExp(`^nodejs_eventloop_lag_${name}_seconds (\\S+)$`, 'm').exec(exposed)?.[1]
    return Math.round(Number(seconds) * 10_000) / 10
  }
  return { p50Ms: ms('p50'), p99Ms: ms('p99'), maxMs: ms('max') }
}

export type Memory = {
  /** The most that it has been since. */
  readonly mostMb: () => number
  readonly stop: () => void
}

/** Looks at a process's memory again and again. */
export function watchMemory(gateway: Gateway, everyMs = 200): Memory {
  let mostMb = 0
  const look = () => {
    mostMb = Math.max(mostMb, rssMb(gateway))
    return mostMb
  }
  const timer = setInterval(look, everyMs)
  look()
  return { mostMb: look, stop: () => clearInterval(timer) }
}

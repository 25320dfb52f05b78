import path from 'node:path'
import { startChild } from '../../harness/child.ts'
import { ROOT } from '../../harness/root.ts'
import { type Layout, pinned } from './cores.ts'

/** What the generator is told to send. */
export type Load = {
  readonly port: number
  readonly path: string
  /** As they go over the wire, each with its line end. */
  readonly headers: string
  readonly body: string
  /** A secret a line; each request has one of them, by chance. */
  readonly secretsFile: string
  readonly connections: number
  /** Requests a second; without it, every connection sends the next as soon as it has its answer. */
  readonly rate?: number
  readonly warmUpMs: number
  readonly measureMs: number
  /** Processes whose CPU time is measured, by a name for them together; what they started counts as well. */
  readonly pids: Readonly<Record<string, readonly number[]>>
  /** Who measures: what it started is ours, and everything else on the machine is others'. */
  readonly runnerPid: number
}

export type LoadReport = {
  /** With 200; everything else was refused. */
  readonly answered: number
  readonly refused: number
  readonly statuses: Readonly<Record<string, number>>
  /** Connections that ended while an answer was due. */
  readonly broken: number
  /** All that came in the window, and what one whole answer has. */
  readonly bytes: number
  readonly bytesOfOne: number
  readonly measuredMs: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Of those with 200, from when they were sent: without the wait for a free connection. */
  readonly servedP50Ms: number
  readonly servedP99Ms: number
  readonly refusedP50Ms: number
  readonly refusedP99Ms: number
  readonly seconds: readonly { readonly answered: number; readonly p50Ms: number }[]
  readonly cpuUs: Readonly<Record<string, number>>
  /** How much of a core the generator used: near 1 it measures itself. */
  readonly generatorShare: number
  /** How many cores others used in the window and its warm-up: all that is not ours. */
  readonly othersCores: number
}

/** Sends it from a process of its own. */
export async function send(given: Omit<Load, 'runnerPid'>, layout: Layout = 'shared'): Promise<LoadReport> {
  const load: Load = { ...given, runnerPid: process.pid }
  const program = path.join(ROOT, 'bench/load/generator.ts')
  let last = ''
  const command = pinned('others', process.execPath, [program, '--load', JSON.stringify(load)], layout)
  const child = startChild(...command, {
    onLine: (line) => {
      last = line
    },
  })
  const { code } = await child.exited
  if (code !== 0 || !last.startsWith('{')) throw new Error(`the generator failed:\n${child.output()}`)
  return JSON.parse(last) as LoadReport
}

import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { type Child, startChild } from '../../harness/child.ts'

const Measured = z.object({ stalledMs: z.number(), smuggled: z.number(), handled: z.number() })
const MAIN = path.join(import.meta.dirname, 'edge-main.ts')

export type ChildEdge = {
  readonly port: number
  readonly child: Child
  /** Since it was last asked. */
  readonly measure: () => Promise<z.infer<typeof Measured>>
  /** Every line that it wrote to either output. */
  readonly lines: readonly string[]
}

/** The probe edge in a process of its own. */
export async function startChildEdge(wishes: object = {}): Promise<ChildEdge> {
  const lines: string[] = []
  const child = startChild(process.execPath, [MAIN, JSON.stringify(wishes)], { onLine: (line) => lines.push(line) })
  while (lines.length === 0) {
    if (child.hasExited()) throw new Error(`the edge did not start: ${child.output()}`)
    await sleep(10)
  }
  const { port } = JSON.parse(lines[0] ?? '{}')
  if (typeof port !== 'number') throw new Error(`the edge printed no port: ${child.output()}`)
  return {
    port,
    child,
    lines,
    async measure() {
      return Measured.parse(await (await fetch(`http://127.0.0.1:${port}/control/stall`)).json())
    },
  }
}

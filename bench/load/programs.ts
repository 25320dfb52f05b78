import path from 'node:path'
import { type Child, startChild } from '../../harness/child.ts'
import { ROOT } from '../../harness/root.ts'
import { pinned } from './cores.ts'

/** One of the programs that a measurement is made of, and the port that it listens on. */
export type Listening = Child & { readonly port: number }

type Where = Parameters<typeof pinned>[0]

const READY_DEADLINE_MS = 180_000

/** Starts a program of this folder, which says when it is ready. */
export async function startProgram(where: Where, name: string, args: readonly string[]): Promise<Listening> {
  const ready = Promise.withResolvers<number>()
  const child = startChild(...pinned(where, process.execPath, [path.join(ROOT, 'bench/load', name), ...args]), {
    onLine: (line) => line.startsWith('{"ready"') && ready.resolve(JSON.parse(line).port),
  })
  return listening(child, ready.promise)
}

/** Waits until it listens, ends or takes too long. */
export async function listening(child: Child, ready: Promise<number>): Promise<Listening> {
  const late = new Promise<undefined>((resolve) => {
    setTimeout(() => resolve(undefined), READY_DEADLINE_MS).unref()
  })
  const port = await Promise.race([ready, child.exited.then(() => undefined), late])
  if (port !== undefined) return { ...child, port }
  await child.kill()
  throw new Error(`a program did not become ready:\n${child.output()}`)
}

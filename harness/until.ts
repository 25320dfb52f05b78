import { setTimeout as delay } from 'node:timers/promises'

const PAUSE_MS = 3
/** Long enough that only what hangs meets it, however busy the machine is. No test decides anything by it. */
export const PATIENCE_MS = 180_000

/** Waits until something is so; how long that took. */
export async function until(isSo: () => boolean | Promise<boolean>, deadlineMs: number, what = 'it'): Promise<number> {
  const startedAtMs = performance.now()
  while (!(await isSo())) {
    if (performance.now() - startedAtMs > deadlineMs) throw new Error(`${what} did not happen in ${deadlineMs} ms`)
    await delay(PAUSE_MS)
  }
  return performance.now() - startedAtMs
}
